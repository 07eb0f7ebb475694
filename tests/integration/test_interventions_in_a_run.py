"""Planning is paused, all is released, a level and a path are pinned in a run: no job loses a packet by any of it."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import astuple
from typing import Any

import pytest

from controller.api.operations.client import Operations
from controller.api.operations.methods import LIST_CONTROLLERS, LIST_FLOWS, LIST_PINS, LIST_RULES
from controller.api.operations.sentences import path_words
from emulator.fabric import EmulatedFabric
from experiments.scenarios.emulated import run_on_emulator
from experiments.scenarios.interfaces import ControllerAnswer
from experiments.scenarios.live_session import LiveSession
from tests.integration.three_jobs import MIX, three_jobs

STEP_S = 0.8
STEPS = 5


class Operator:
    """What an operator does, step by step: before the controller hears of the jobs of a step, or after it has planned.

    Directives of a new job come with a Plan, and the run waits for them: pauses begin after one, and end before one.
    """

    def __init__(self) -> None:
        self.done: list[str] = []
        self.before: dict[int, Callable[[Operations], None]] = {
            2: self.resume,
            3: self.pin,
            4: self.unpin,
            5: self.resume,
        }
        self.after: dict[int, Callable[[Operations], None]] = {1: self.pause, 4: self.release}

    def pause(self, operations: Operations) -> None:
        assert operations.pause("maintenance").is_changed
        [state] = operations.list(LIST_CONTROLLERS)
        assert (state.pause.reason, state.pause.is_released) == ("maintenance", False)

    def resume(self, operations: Operations) -> None:
        assert operations.resume().is_changed
        [state] = operations.list(LIST_CONTROLLERS)
        assert not state.HasField("pause")

    def pin(self, operations: Operations) -> None:
        flows = [flow for flow in operations.list(LIST_FLOWS) if flow.job == "job-0"]
        taken = path_words(flows[0].path.nodes, flows[0].path.links)
        name = f"job-0/{flows[0].flow_group}/{flows[0].flow}"
        candidates = operations.explain(name).flow.candidates
        others = [path_words(each.path.nodes, each.path.links) for each in candidates]
        self.pinned = name, next(path for path in others if path != taken)
        operations.pin(name, 3600.0, path=self.pinned[1])
        operations.pin("job-1", 3600.0, level=7)

    def unpin(self, operations: Operations) -> None:
        assert all(pin.holds for pin in operations.list(LIST_PINS))
        name, path = self.pinned
        pinned = operations.explain(name).flow
        assert path_words(pinned.state.path.nodes, pinned.state.path.links) == pinned.pin.path == path
        assert {flow.level for flow in operations.list(LIST_FLOWS) if flow.job == "job-1"} == {7}
        for each in (name, "job-1"):
            operations.unpin(each)

    def release(self, operations: Operations) -> None:
        answer = operations.release("all out")
        assert answer.is_changed
        assert list(answer.behind) == []
        assert operations.list(LIST_RULES) == []
        assert {flow.level for flow in operations.list(LIST_FLOWS)} == {0}

    def do(self, what: Callable[[Operations], None], session: LiveSession) -> None:
        with Operations(session._process.address) as operations:
            what(operations)
        self.done.append(what.__name__)


def test_a_mix_goes_on_whatever_an_operator_does(monkeypatch: pytest.MonkeyPatch) -> None:
    update, made, operator = LiveSession.update, list[EmulatedFabric](), Operator()

    async def intervened(
        session: LiveSession, now_s: float, arrived: Iterable[str], departed: Iterable[str], **more: Any
    ) -> ControllerAnswer:
        made[:] = [session._network.emulated]
        arrived = tuple(arrived)
        step = next((int(name.partition(" ")[2]) for name in arrived if name.startswith("step")), 0)
        if step in operator.before:
            await asyncio.to_thread(operator.do, operator.before[step], session)
        answer = await update(session, now_s, arrived, departed, **more)
        if step in operator.after:
            await asyncio.to_thread(operator.do, operator.after[step], session)
        return answer

    monkeypatch.setattr(LiveSession, "update", intervened)
    visits = [(f"step {step}", f"h{step}", STEP_S * step) for step in range(1, STEPS + 1)]
    scenario = three_jobs(STEP_S * (STEPS + 1), visits)
    result = asyncio.run(run_on_emulator(scenario, "crux", on_progress=lambda *_: None))
    assert operator.done == ["pause", "resume", "pin", "unpin", "release", "resume"]
    [emulated] = made
    lost = {name: emulated.drops(name) for name in emulated.switches} | {"hosts": emulated.host_drops()}
    assert not any(any(astuple(drops)) for drops in lost.values())
    for job in result.jobs:
        if job.name in MIX:
            ends_s = [interval.end_s for interval in job.computing]
            for step in range(1, 6):
                assert any(STEP_S * step < end_s < STEP_S * (step + 1) for end_s in ends_s), (job.name, step)
