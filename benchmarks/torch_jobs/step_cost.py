"""What being attached costs a DDP step, by pairs: two jobs of two ranks on this machine take turns, one is attached.

With a controller, the job speaks with one of its own, which does not know the addresses of the loopback interface: the
job is observed, and its ranks report, but nothing is registered. Without one, nobody answers where it is said to be.
"""

import asyncio
import os
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.torch_jobs import stepping_rank
from controller.config import ControllerConfig, SwitchAddress
from experiments.scenarios.controller_process import ControllerProcess
from topologies.specification import StarSpecification

_RANKS = 2
_PAIRS, _STEPS, _WARM_UP_STEPS = 200, 1, 10
"""Short blocks: what slows the machine down for a while slows both jobs."""

Figures = dict[str, object]


def step_figures(runs: int) -> Figures:
    """Measure so often with a controller, and so often without."""
    with tempfile.TemporaryDirectory(prefix="trainyard-") as folder:
        overheads = [asyncio.run(_with_controller(Path(folder))) for _ in range(runs)]
        slowdowns = [_overhead(f"unix:{folder}/nobody.sock") for _ in range(runs)]
    return {
        "attach_step_overhead": round(statistics.median(overheads), 5),
        "fail_open_slowdown": round(statistics.median(slowdowns), 5),
        "attach_step_overhead_runs": [round(each, 5) for each in overheads],
        "fail_open_slowdown_runs": [round(each, 5) for each in slowdowns],
    }


async def _with_controller(folder: Path) -> float:
    config = ControllerConfig(
        listen=f"unix:{folder}/controller.sock",
        topology=StarSpecification(kind="star", hosts=_RANKS, host_link_gbps=1),
        switches=(SwitchAddress(name="t0", address="127.0.0.1:1", device_id=1),),
    )
    async with ControllerProcess(config, folder=folder) as process:
        return await asyncio.to_thread(_overhead, process.address)


def _overhead(controller: str) -> float:
    """Return by how much the median pair's attached block takes longer than the other, as a fraction."""
    with _job(controller, "attach") as attached, _job(controller) as plain:
        for job in (attached, plain):
            job.block_s(_WARM_UP_STEPS)
        ratios = []
        for pair in range(_PAIRS):
            first, second = (attached, plain) if pair % 2 else (plain, attached)
            took_s = {job: job.block_s(_STEPS) for job in (first, second)}
            ratios.append(took_s[attached] / took_s[plain])
    return statistics.median(ratios) - 1


class _Job:
    """A job of ranks that do steps in blocks."""

    def __init__(self, ranks: list["subprocess.Popen[str]"]) -> None:
        self._ranks = ranks

    def block_s(self, steps: int) -> float:
        """Return how long so many steps take. Raises RuntimeError where a rank has ended."""
        for rank in self._ranks:
            assert rank.stdin is not None
            rank.stdin.write(f"{steps}\n")
            rank.stdin.flush()
        lines = [rank.stdout.readline() for rank in self._ranks if rank.stdout is not None]
        if not all(lines):
            raise RuntimeError("a rank of the step benchmark has ended")
        return float(lines[0])


@contextmanager
def _job(controller: str, *arguments: str) -> Iterator[_Job]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(_RANKS),
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
        "TRAINYARD_CONTROLLER": controller,
        "TRAINYARD_JOB": "steps",
    }
    ranks = [
        subprocess.Popen(
            (sys.executable, "-P", stepping_rank.__file__, *arguments),
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
