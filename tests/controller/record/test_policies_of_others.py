"""The decisions and the memory of a foreign policy are recorded, and replayed where its code may be run."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from controller.record.lines import read_decisions
from controller.record.replay import Replayed, Verdict, replay, replay_under
from policies import Plan, Policy, PolicyError, Snapshot, find_policy, load_policy
from tests.controller.record.lives import Life


def _counting(snapshot: Snapshot) -> Plan:
    """As ecmp, with reasons that say how many Plans were decided before."""
    memory = None if snapshot.previous is None else snapshot.previous.memory
    number = memory["plans"] + 1 if isinstance(memory, dict) else 1
    plan = find_policy("ecmp").decide(snapshot)
    jobs = tuple(replace(job, reason=f"plan {number}") for job in plan.jobs)
    return replace(plan, jobs=jobs, memory={"plans": number})


COUNTING = Policy("counting", "as ecmp, and counts its plans", _counting)
NAME = f"{__name__}:COUNTING"


def _replayed(lines: list[str]) -> list[Replayed]:
    return list(replay(read_decisions("record", lines, load_policy), load_policy))


def test_a_memory_is_recorded_and_outlives_the_controller(tmp_path: Path) -> None:
    async def scenario() -> list[str]:
        life = Life(tmp_path / "t.db", NAME)
        for _ in range(2):
            life.start()
            await life.live(3)
            await life.controller.planner.flush_record()
        lines = life.lines()
        await life.end()
        return lines

    lines = asyncio.run(scenario())
    replayed = _replayed(lines)
    assert [each.verdict for each in replayed] == [Verdict.SAME] * len(replayed)
    assert [each.recorded.plan.memory for each in replayed] == [{"plans": 1 + n} for n in range(len(replayed))]
    assert {job.reason for job in replayed[-1].plan.jobs} == {f"plan {len(replayed)}"}
    assert {each.recorded.plan.policy for each in replayed} == {"counting"}
    with pytest.raises(PolicyError, match="names code to import"):
        list(replay(read_decisions("record", lines)))
    # Without its code the record can still be read, and decided under another policy.
    assert len(list(replay_under(find_policy("crux"), read_decisions("record", lines)))) == len(replayed)


def test_a_database_does_not_decide_what_a_controller_imports(tmp_path: Path) -> None:
    async def scenario() -> None:
        life = Life(tmp_path / "t.db", NAME)
        life.start()
        await life.live(2)
        await life.controller.planner.flush_record()
        life.policy = "crux"
        life.start()
        planner = life.controller.planner
        assert planner._last_plan is not None
        assert planner._last_plan.memory is None
        await life.live(2)
        await life.end()

    asyncio.run(scenario())
