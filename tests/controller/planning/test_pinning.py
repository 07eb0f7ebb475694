"""Operators pin levels and paths: until they expire, by the names of jobs, and in the record."""

import asyncio
import logging
from pathlib import Path as File

import pytest

from controller.links.drains import DrainKind, DrainTarget
from controller.planning.decision_pipeline import DecisionPipeline
from controller.planning.intervening import LONGEST_PIN_S
from controller.planning.pin_requests import UnfitPinError, UnknownPinError
from controller.record.lines import read_decisions
from controller.record.replay import Verdict, replay
from controller.registry.errors import InvalidFieldError
from controller.registry.requests import JobRequest
from policies.plan import Plan
from policies.registry import find_policy
from tests.controller.planning.hands import World, run


def test_a_pinned_level_holds_until_it_expires(tmp_path: File, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def test(world: World) -> None:
        decided = {job.name: job.level for job in world.decision.plan.jobs}
        level = (decided["gpt"] + 2) % 4
        state = await world.hands.pin("gpt", level, None, 10.0, "alice")
        assert (state.pin.by, state.problem) == ("alice", "waits for the next Plan")
        await world.settle()
        assert {job.name: job.level for job in world.decision.plan.jobs} == decided | {"gpt": level}
        assert world.planned("gpt/ring/1").level == level
        assert [each.problem for each in world.hands.pin_states()] == [""]
        expiry_s = world.planner.next_timer_s
        assert expiry_s is not None
        assert expiry_s <= world.clock.now_s() + 10.0
        registry = world.life.controller.registry
        world.clock.advance_to(world.clock.now_s() + 10.0)
        for job in registry.jobs:
            registry.renew(job.request.name, world.clock.now_s())
        await world.planner.settle()  # nobody has marked a change
        assert {job.name: job.level for job in world.decision.plan.jobs} == decided
        assert list(world.hands.pin_states()) == []
        assert caplog.text.count("gpt: no longer pinned: its time is over") == 1

    run(tmp_path, test)


def test_a_pinned_path_is_left_when_it_dies_and_taken_again(tmp_path: File) -> None:
    async def test(world: World) -> None:
        path = world.other_path("gpt/ring/0")
        await world.hands.pin("gpt/ring/0", None, world.named(path), 60.0, "alice")
        await world.settle()
        assert world.planned("gpt/ring/0").path == path
        world.fail(path[1])
        await world.planner.leave_dead_links()
        dead = f"is not used now: {world.named(path).split('>')[1]}>{world.fabric.links[path[1]].destination} (down)"
        assert [state.problem for state in world.hands.pin_states()] == [dead]
        await world.settle()
        assert world.planned("gpt/ring/0").path != path
        assert world.planner.routing.dead.isdisjoint(
            world.planned("gpt/ring/0").path or world.flow("gpt/ring/0").hashed_path
        )
        with pytest.raises(UnfitPinError, match=r"is not used now: .* \(down\)"):
            await world.hands.pin("gpt/ring/0", None, world.named(path), 60.0, "alice")
        world.life.fail()
        await world.settle(after_s=60.0 / 4)  # damping holds it no longer
        await world.settle(after_s=1.0)
        assert world.planned("gpt/ring/0").path == path
        assert [state.problem for state in world.hands.pin_states()] == [""]
        await world.hands.unpin("gpt/ring/0")
        await world.settle()
        assert list(world.hands.pin_states()) == []

    run(tmp_path, test)


def test_a_path_of_what_is_drained_is_refused(tmp_path: File) -> None:
    async def test(world: World) -> None:
        path = world.other_path("gpt/ring/0")
        agg = world.fabric.links[path[1]].destination
        await world.draining.drain(DrainTarget(DrainKind.SWITCH, agg), "bob", is_forced=False)
        with pytest.raises(UnfitPinError, match=r"is not used now: .* \(drained\)"):
            await world.hands.pin("gpt/ring/0", None, world.named(path), 60.0, "alice")
        assert list(world.hands.pin_states()) == []

    run(tmp_path, test)


def test_a_pin_stays_with_the_name_of_its_job(tmp_path: File) -> None:
    async def test(world: World) -> None:
        await world.hands.pin("bert", 2, None, 60.0, "alice")
        world.life.controller.registry.deregister("bert")
        await world.settle()
        assert [state.problem for state in world.hands.pin_states()] == ["no job of the name is registered now"]
        world.register("bert", ("h1", "h3"))
        await world.settle()
        assert [state.problem for state in world.hands.pin_states()] == [""]
        assert world.planned("bert/ring/0").level == 2

    run(tmp_path, test)


@pytest.mark.parametrize(
    ("name", "level", "path", "for_s", "said"),
    [
        ("nobody", 1, None, 1.0, "no job 'nobody' is registered; registered: bert, gpt"),
        ("gpt/ring/0", 1, None, 1.0, "level: is pinned for a job, not for a flow"),
        ("gpt", 4, None, 1.0, "level: must lie between 0 and 3, not 4"),
        ("gpt", None, "h0>t0", 1.0, "path: is pinned for a flow JOB/GROUP/NUMBER, not for a job"),
        ("gpt", 1, "h0>t0", 1.0, "level: a pin has a level or a path"),
        ("gpt", None, None, 1.0, "level: a pin has a level or a path"),
        ("gpt", 1, None, 0.0, "for_s: a pin for 0 s has expired already"),
        ("gpt", 1, None, -1.0, "for_s: a pin for -1 s has expired already"),
        ("gpt", 1, None, float("nan"), "for_s: a pin holds for 604800 s"),
        ("gpt", 1, None, LONGEST_PIN_S + 1, "for_s: a pin holds for 604800 s"),
        ("gpt/ring/2", None, "h0>t0", 1.0, "job 'gpt' has no flow 'gpt/ring/2'; its flows: gpt/ring/0 to gpt/ring/1"),
        ("gpt/ring/00", None, "h0>t0", 1.0, "job 'gpt' has no flow 'gpt/ring/00'"),
        ("gpt/ring/0/1", None, "h0>t0", 1.0, "job 'gpt' has no flow 'gpt/ring/0/1'"),
        ("gpt/other/0", None, "h0>t0", 1.0, "job 'gpt' has no flow 'gpt/other/0'"),
        ("gpt/ring/0", None, "h0", 1.0, "path: 'h0' is not a path"),
        ("gpt/ring/0", None, "h0>t7>h2", 1.0, "path: no node 't7' is in the topology; gpt/ring/0 has h0.0>t0.0>a0.0>"),
        ("gpt/ring/0", None, "h0>t0>h2", 1.0, "path: no link leads from t0 to h2; t0 has some to"),
        ("gpt/ring/0", None, "h0>t0>a0>t1>h2", 1.0, "path: 2 links lead from t0 to a0: say which, from t0.0 to t0.1"),
        ("gpt/ring/0", None, "h0>t0.2>a0.0>t1>h2", 1.0, "path: the links from t0 to a0 are 0 to 1, not 2"),
        ("gpt/ring/0", None, "h0>t0.0>a0.0>t1>h3", 1.0, "path: h0.0>t0.0>a0.0>t1.0>h3 is no path of this flow"),
        ("gpt/ring/0", None, "h0>" + "x" * 10_000, 1.0, "10,000 characters"),
    ],
)
def test_what_cannot_be_pinned_is_refused_by_name(
    tmp_path: File, name: str, level: int | None, path: str | None, for_s: float, said: str
) -> None:
    async def test(world: World) -> None:
        with pytest.raises((UnknownPinError, UnfitPinError, InvalidFieldError)) as refusal:
            await world.hands.pin(name, level, path, for_s, "alice")
        assert said in str(refusal.value)
        assert len(str(refusal.value)) < 2_000
        assert list(world.hands.pin_states()) == []
        with pytest.raises(UnknownPinError, match="nothing is pinned for 'gpt'; pinned: nothing"):
            await world.hands.unpin("gpt")

    run(tmp_path, test)


def test_a_job_that_is_to_be_measured_keeps_its_level(tmp_path: File) -> None:
    async def test(world: World) -> None:
        registry = world.life.controller.registry
        registry.register_job(JobRequest("plain", ("h4", "h5"), 16, None), world.clock.now_s(), "token")
        await world.settle()
        with pytest.raises(UnfitPinError, match="job 'plain' is being measured"):
            await world.hands.pin("plain", 1, None, 60.0, "alice")
        with pytest.raises(UnfitPinError, match="job 'plain' has told no flows"):
            await world.hands.pin("plain/measured/0", None, "h4>t2>h5", 60.0, "alice")

    run(tmp_path, test)


@pytest.mark.parametrize("policy", ["crux", "trainyard"])
def test_plans_with_pins_are_decided_again_from_the_record(tmp_path: File, policy: str) -> None:
    async def scenario() -> tuple[list[str], Plan]:
        world = World(tmp_path, policy)
        await world.settle()
        path = world.other_path("gpt/ring/0")
        await world.hands.pin("gpt/ring/0", None, world.named(path), 5.0, "alice")
        await world.hands.pin("bert", 3, None, 500.0, "alice")
        await world.settle()
        assert world.planned("gpt/ring/0").path == path
        assert world.planned("bert/ring/0").level == 3
        in_force = world.decision.plan
        world.register("late", ("h0", "h4"))
        await world.settle()
        await world.settle(after_s=6.0)
        await world.hands.unpin("bert")
        await world.settle()
        await world.life.controller.flush()
        lines = world.life.lines()
        await world.life.end()
        return lines, in_force

    lines, in_force = asyncio.run(scenario())
    assert any('"fact":"pins"' in line for line in lines)
    replayed = list(replay(read_decisions("record", lines)))
    assert [len(each.recorded.snapshot.pins) for each in replayed] == [0, 2, 2, 1, 0]
    assert {each.verdict for each in replayed} == {Verdict.SAME}
    # The record has the Plan of the policy and the pins; what was carried out follows from both.
    pinned = DecisionPipeline(find_policy(policy).decide).draft(
        replayed[1].recorded.snapshot, replayed[1].plan, replayed[1].recorded.setting.routing()
    )
    assert pinned.plan == in_force
