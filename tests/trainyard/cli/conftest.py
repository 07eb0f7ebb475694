"""The command line as a user calls it, and a runner that returns made-up results at once."""

import sys
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TypeVar

import pytest
import yaml
from typer.testing import CliRunner

from experiments.scenarios.results import RunResult
from experiments.sweeps.processes import Failure
from policies.policy import Policy
from tests.experiments.report.builders import make_result
from trainyard.cli.application import application
from workloads.events import ScenarioEvent
from workloads.scenario import Scenario

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Ended:
    """What is left of a command that has ended."""

    exit_code: int
    stdout: str
    stderr: str


Trainyard = Callable[..., Ended]


@pytest.fixture
def trainyard() -> Trainyard:
    """Calls ``trainyard`` with these arguments. Without ``--controller`` it reaches nobody."""
    runner = CliRunner(env={"TRAINYARD_CONTROLLER": "127.0.0.1:1"})

    def call(*arguments: str | Path) -> Ended:
        result = runner.invoke(application, [str(argument) for argument in arguments])
        return Ended(result.exit_code, result.stdout, result.stderr)

    return call


@pytest.fixture
def document() -> dict[str, object]:
    """A sound scenario of two jobs."""
    workload = {"type": "phases", "compute_s": 1.0, "comm_start": 0.5, "bytes": 1e9, "pattern": "ring"}
    return {
        "name": "small",
        "topology": {"kind": "dumbbell", "hosts_per_side": 2, "host_link_gbps": 100, "bottleneck_gbps": 100},
        "jobs": [
            {"name": name, "hosts": hosts, "gpus_per_host": 8, "iterations": 3, "workload": workload}
            for name, hosts in (("a", ["h0", "h2"]), ("b", ["h1", "h3"]))
        ],
    }


@pytest.fixture
def write(tmp_path: Path) -> Callable[[object], Path]:
    """Writes a document into a YAML file."""

    def write_document(document: object) -> Path:
        path = tmp_path / "scenario.yaml"
        path.write_text(yaml.safe_dump(document))
        return path

    return write_document


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Scenario, str]]:
    """What the emulator would have run; utilisation is 0.5 under ECMP and 0.75 otherwise. Seed 13 breaks down."""
    calls: list[tuple[Scenario, str]] = []

    async def run_on_emulator(
        scenario: Scenario, policy: Policy, *, on_progress: Callable[[float, float], None]
    ) -> RunResult:
        calls.append((scenario, policy.name))
        on_progress(0.0, float("inf"))
        on_progress(1.0, 2.0)
        if scenario.seed == 13:
            raise ValueError("no job has departed")
        share = 0.5 if policy.name == "ecmp" else 0.75
        return make_result(policy.name, share, scenario=scenario.name, events=within(scenario.events))

    emulated = ModuleType("experiments.scenarios.emulated")
    emulated.run_on_emulator = run_on_emulator  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "experiments.scenarios.emulated", emulated)
    return calls


def within(events: Sequence[ScenarioEvent]) -> tuple[ScenarioEvent, ...]:
    """The events, at times within the made-up window."""
    return tuple(event.model_copy(update={"at_s": 2.0 + number}) for number, event in enumerate(events))


def in_this_process(
    work: Callable[[T], R],
    items: Sequence[T],
    workers: int,
    most: int | None = None,
    failing: type[Exception] | tuple[()] = (),
) -> Generator[tuple[T, R | Failure], None, None]:
    """Stands for processes that would be started; the user interrupts after so many items.

    An item fails where the work raises an exception of the type ``failing``.
    """
    assert workers >= 1
    for item in items[:most]:
        try:
            answer: R | Failure = work(item)
        except failing as error:
            answer = Failure(f"{type(error).__name__}: {error}")
        yield item, answer
    if most is not None:
        raise KeyboardInterrupt
