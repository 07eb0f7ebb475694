"""What being attached costs a DDP step: a job of two ranks on this machine attaches and detaches by turns.

Two jobs side by side would not do: the same program differs by several percent from one process to the next. Steps of
one job differ by as much, so the interval in which the median lies is part of the figures, and so is what is not noisy:
the processor time that the host library takes of a step.

With a controller, the job speaks with one of its own, which does not know the addresses of the loopback interface: the
job is observed, and its ranks report, but nothing is registered. Without one, nobody answers where it is said to be.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.torch_jobs import stepping_rank
from controller.config import ControllerConfig
from controller.switch_addresses import SwitchAddress
from experiments.scenarios.controller_process import ControllerProcess
from tests.ports import free_port
from topologies.specification import StarSpecification

_RANKS = 2
_TURNS, _STEPS, _SETTLING_STEPS = 20, 10, 10
"""A turn is so many steps attached and so many detached, in turn first; before each the job settles, and profiles."""

Figures = dict[str, object]


@dataclass(frozen=True, slots=True)
class _Turns:
    """What was measured in some turns.

    Attributes:
        ratios: By turn, how long the median step took attached over detached.
        processor_shares: By turn, the processor time of the host library's threads over that of the attached steps.
        step_s: How long a detached step takes, the median.
        collectives: Of an attached step.
    """

    ratios: list[float]
    processor_shares: list[float]
    step_s: float
    collectives: float


def step_figures(runs: int, s_per_collective: float) -> Figures:
    """Measure so often with a controller, and so often without.

    Args:
        runs: How often.
        s_per_collective: Processor time that observing a collective takes, in the thread that issues it.
    """
    with tempfile.TemporaryDirectory(prefix="trainyard-") as folder:
        attached = [asyncio.run(_with_controller(Path(folder))) for _ in range(runs)]
        alone = [_turns(f"unix:{folder}/nobody.sock") for _ in range(runs)]
    return {
        key: value
        for name, measured in (("attach_step_overhead", attached), ("fail_open_slowdown", alone))
        for key, value in _figures(name, measured, s_per_collective).items()
    }


def _figures(name: str, runs: Sequence[_Turns], s_per_collective: float) -> Figures:
    ratios = sorted(ratio for run in runs for ratio in run.ratios)
    low, high = median_interval(ratios)
    shares = [share for run in runs for share in run.processor_shares]
    observing = statistics.median(run.collectives * s_per_collective / run.step_s for run in runs)
    return {
        name: round(statistics.median(ratios) - 1, 5),
        f"{name}_interval": [round(low - 1, 5), round(high - 1, 5)],
        f"{name}_runs": [round(statistics.median(run.ratios) - 1, 5) for run in runs],
        f"{name}_processor_share": round(statistics.median(shares) + observing, 5),
    }


def median_interval(ordered: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % confidence interval of the median, from order statistics by the binomial's normal approximation.

    ::

        >>> median_interval(range(1, 101))
        (40, 61)
    """
    half = 1.96 * len(ordered) ** 0.5 / 2
    low = max(0, int(len(ordered) / 2 - half) - 1)
    return ordered[low], ordered[len(ordered) - 1 - low]


async def _with_controller(folder: Path) -> _Turns:
    config = ControllerConfig(
        listen=f"unix:{folder}/controller.sock",
        topology=StarSpecification(kind="star", hosts=_RANKS, host_link_gbps=1),
        switches=(SwitchAddress(name="t0", address="127.0.0.1:1", device_id=1),),
    )
    async with ControllerProcess(config, folder=folder) as process:
        return await asyncio.to_thread(_turns, process.address)


def _turns(controller: str) -> _Turns:
    ratios, shares, plain_s, collectives = [], [], [], []
    with _job(controller) as job:
        job.step(_SETTLING_STEPS)
        for turn in range(_TURNS):
            took_s = {}
            for word in ("attach", "detach") if turn % 2 else ("detach", "attach"):
                job.say(word)
                job.step(_SETTLING_STEPS)
                steps = job.step(_STEPS)
                took_s[word] = statistics.median(steps.times_s)
                if word == "attach":
                    shares.append(steps.processor_s / sum(steps.times_s))
                    collectives.append(steps.collectives / _STEPS)
            ratios.append(took_s["attach"] / took_s["detach"])
            plain_s.append(took_s["detach"])
    return _Turns(ratios, shares, statistics.median(plain_s), statistics.median(collectives))


@dataclass(frozen=True, slots=True)
class _Steps:
    """What ``stepping_rank`` answers about some steps."""

    times_s: list[float]
    collectives: int
    processor_s: float


class _Job:
    """A job of ranks that do what they are told."""

    def __init__(self, ranks: list["subprocess.Popen[str]"]) -> None:
        self._ranks = ranks

    def say(self, word: str) -> str:
        """Tell all ranks something, and return what the first one answers. Raises RuntimeError where one has ended."""
        for rank in self._ranks:
            assert rank.stdin is not None
            rank.stdin.write(f"{word}\n")
            rank.stdin.flush()
        lines = [rank.stdout.readline() for rank in self._ranks if rank.stdout is not None]
        if not all(lines):
            raise RuntimeError("a rank of the step benchmark has ended")
        return lines[0]

    def step(self, steps: int) -> _Steps:
        """Do so many steps."""
        return _Steps(**json.loads(self.say(str(steps))))


@contextmanager
def _job(controller: str) -> Iterator[_Job]:
    environment = os.environ | {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "WORLD_SIZE": str(_RANKS),
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
        "TRAINYARD_CONTROLLER": controller,
        "TRAINYARD_JOB": "steps",
    }
    ranks = [
        subprocess.Popen(
            (sys.executable, "-P", stepping_rank.__file__),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment | {"RANK": str(rank)},
            text=True,
        )
        for rank in range(_RANKS)
    ]
    try:
        yield _Job(ranks)
    finally:
        for rank in ranks:
            rank.kill()
            rank.communicate()
