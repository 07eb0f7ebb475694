"""A live policy that misbehaves makes no Plan, and the controller goes on."""

import asyncio
import gc
import threading
import time
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import pytest

from controller.planning.contained_policy import MAX_ABANDONED, ContainedPolicy
from controller.planning.decision_pipeline import DecisionPipeline
from policies.crux.policy import crux
from policies.plan import Plan
from policies.snapshot import Snapshot
from tests.patience import PATIENCE_S
from tests.policies.builders import GBPS, make_job, make_links

_SNAPSHOT = Snapshot(0.0, make_links(GBPS), (make_job("a", [(1e9, ((0,),))]),))


@pytest.mark.parametrize("error", [RuntimeError("no"), SystemExit("no"), KeyboardInterrupt("no"), MemoryError("no")])
def test_any_error_of_a_policy_is_counted_and_not_raised(error: BaseException) -> None:
    def policy(_: Snapshot) -> Plan:
        raise error

    contained = ContainedPolicy("mine", policy, time_limit_s=None)
    assert asyncio.run(contained.decide(_SNAPSHOT)) is None
    assert (contained.num_failures, contained.problem) == (1, f"{type(error).__name__}: no")


def test_an_invalid_plan_is_none() -> None:
    def policy(snapshot: Snapshot) -> Plan:
        return replace(crux(snapshot), jobs=())

    contained = ContainedPolicy("mine", DecisionPipeline(policy).decide, time_limit_s=None)
    assert asyncio.run(contained.decide(_SNAPSHOT)) is None
    assert contained.problem == "InvalidPlanError: job 'a': is missing"


_LIMIT_S = 1.0


class _Loop(asyncio.SelectorEventLoop):
    """An event loop whose time stands still unless somebody has it pass."""

    now_s = 0.0

    def time(self) -> float:
        return self.now_s

    def let_pass(self, time_s: float) -> None:
        self.now_s += time_s


class _Hanging:
    """Decides as crux does, once it is let go; the time limit passes once a call hangs. ``calls`` counts the calls."""

    def __init__(self) -> None:
        self.loop = _Loop()
        self.go_on = threading.Event()
        self.calls = 0

    def __call__(self, snapshot: Snapshot) -> Plan:
        self.calls += 1
        if not self.go_on.is_set():
            gc.disable()
            self.loop.call_soon_threadsafe(self.loop.let_pass, _LIMIT_S)
            self.go_on.wait()
        return crux(snapshot)

    def run(self, scenario: Coroutine[Any, Any, None]) -> None:
        """Run a scenario in the loop, and let all calls go once the loop has ended."""
        try:
            with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
                runner.run(scenario)
        finally:
            self.go_on.set()
            gc.enable()


def test_calls_that_hang_are_abandoned_up_to_a_number_and_the_next_one_does_not_wait() -> None:
    hanging = _Hanging()
    contained = ContainedPolicy("mine", hanging, _LIMIT_S)

    async def scenario() -> None:
        for _ in range(MAX_ABANDONED):
            assert await contained.decide(_SNAPSHOT) is None
            assert contained.problem == "it has taken longer than 1 s"
            assert gc.isenabled()
        assert await contained.decide(_SNAPSHOT) is None
        assert contained.problem == f"{MAX_ABANDONED} calls that were abandoned are still running"
        assert (hanging.calls, contained.num_failures) == (MAX_ABANDONED, MAX_ABANDONED + 1)
        hanging.go_on.set()
        patience_ends_s = time.monotonic() + PATIENCE_S
        while await contained.decide(_SNAPSHOT) is None:
            assert time.monotonic() < patience_ends_s
            await asyncio.sleep(0)
        assert contained.problem == ""

    hanging.run(scenario())


def test_a_loop_ends_while_a_policy_hangs() -> None:
    hanging = _Hanging()
    contained = ContainedPolicy("mine", hanging, _LIMIT_S)

    async def scenario() -> None:
        assert await contained.decide(_SNAPSHOT) is None

    hanging.run(scenario())  # it returns before the call is let go
