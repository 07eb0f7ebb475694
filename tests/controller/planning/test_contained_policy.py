"""A live policy that misbehaves makes no Plan, and the controller goes on."""

import asyncio
import gc
import threading
from dataclasses import replace

import pytest

from controller.planning.contained_policy import MAX_ABANDONED, ContainedPolicy
from controller.planning.decision_pipeline import DecisionPipeline
from policies.crux.policy import crux
from policies.plan import Plan
from policies.snapshot import Snapshot
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


class _Hanging:
    """Decides as crux does, once it is let go; ``calls`` counts the calls."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.calls = 0

    def __call__(self, snapshot: Snapshot) -> Plan:
        self.calls += 1
        gc.disable()
        self.go_on.wait()
        return crux(snapshot)


def test_calls_that_hang_are_abandoned_up_to_a_number_and_the_next_one_does_not_wait() -> None:
    hanging = _Hanging()

    async def scenario() -> None:
        contained = ContainedPolicy("mine", hanging, time_limit_s=0.01)
        for _ in range(MAX_ABANDONED):
            assert await contained.decide(_SNAPSHOT) is None
            assert contained.problem == "it has taken longer than 0.01 s"
            assert gc.isenabled()
        assert await contained.decide(_SNAPSHOT) is None
        assert contained.problem == f"{MAX_ABANDONED} calls that were abandoned are still running"
        assert (hanging.calls, contained.num_failures) == (MAX_ABANDONED, MAX_ABANDONED + 1)
        hanging.go_on.set()
        async with asyncio.timeout(30):
            while await contained.decide(_SNAPSHOT) is None:
                await asyncio.sleep(0.01)
        assert contained.problem == ""

    try:
        asyncio.run(scenario())
    finally:
        hanging.go_on.set()
        gc.enable()


def test_a_loop_ends_while_a_policy_hangs() -> None:
    hanging = _Hanging()
    try:
        asyncio.run(ContainedPolicy("mine", hanging, time_limit_s=0.01).decide(_SNAPSHOT))
    finally:
        hanging.go_on.set()
