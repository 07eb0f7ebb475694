"""Decisions are replayed from the record, under every policy and after restarts."""

import asyncio
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from controller.errors import StoreError
from controller.record.facts import RecordError
from controller.record.lines import read_decisions
from controller.record.replay import Replayed, Verdict, replay, replay_under
from controller.southbound.write_outcomes import SwitchWrite, WriteOutcome
from policies.plan import Plan
from policies.registry import find_policy, policy_names
from tests.controller.record.lives import Life
from tests.postgresql import Server
from topologies.steering import Steering


def _replayed(lines: Iterable[str]) -> list[Replayed]:
    return list(replay(read_decisions("record", lines)))


@pytest.mark.slow
@pytest.mark.parametrize("policy", policy_names())
def test_every_plan_is_decided_again_across_a_restart(tmp_path: Path, policy: str) -> None:
    _lives_twice(str(tmp_path / "t.db"), policy)


@pytest.mark.slow
def test_the_record_is_the_same_on_postgresql(postgresql: Server) -> None:
    _lives_twice(postgresql.new_database(), "trainyard")


def _lives_twice(database: str, policy: str) -> None:
    async def scenario() -> None:
        life = Life(database, policy)
        life.start()
        await life.live(7)
        await life.controller.planner.flush_record()
        decision, jobs = life.controller.planner.decision, life.controller.registry.jobs
        assert decision is not None
        await life.store.record_grace(life.controller.planner.grace_left_s)
        life.start()
        assert life.controller.registry.jobs == jobs
        await life.controller.planner.settle()
        again = life.controller.planner.decision
        assert again is not None
        assert again.number == decision.number + 1
        # The same jobs and the same Plan in force: nothing moves, and what nobody asks for is no longer kept.
        assert life.southbound.written == [again.rules]
        assert not life.southbound.keeps_found
        assert again.rules == decision.rules
        await life.live(7)
        await life.end()

    asyncio.run(scenario())
    asyncio.run(_all_the_same(database, policy))


async def _all_the_same(database: str, policy: str) -> None:
    life = Life(database, policy)
    life.start()
    replayed = _replayed(life.lines())
    assert [each.recorded.number for each in replayed] == list(range(1, 16))
    assert [each.verdict for each in replayed] == [Verdict.SAME] * 15
    assert not any(each.differs_in for each in replayed)
    # From the middle on, the Plan before comes first, and is not known to follow from one before it.
    part = _replayed(life.lines(10, 12))
    assert [(each.recorded.number, each.verdict) for each in part] == [
        (9, Verdict.NOT_CHECKED),
        (10, Verdict.SAME),
        (11, Verdict.SAME),
        (12, Verdict.SAME),
    ]
    await life.end()


def test_changed_source_ports_are_recorded(tmp_path: Path) -> None:
    async def scenario() -> None:
        life = Life(tmp_path / "t.db", "crux", Steering.SOURCE_PORT)
        life.start()
        await life.live(10)
        await life.controller.planner.flush_record()
        assert {each.verdict for each in _replayed(life.lines())} == {Verdict.SAME}
        before = life.controller.registry.jobs
        life.start()
        assert life.controller.registry.jobs == before
        await life.end()

    asyncio.run(scenario())


@pytest.mark.parametrize("policy", ["crux", "trainyard"])
def test_decisions_around_dead_links_are_replayed(tmp_path: Path, policy: str) -> None:
    async def scenario() -> None:
        life = Life(tmp_path / "t.db", policy)
        life.start()
        await life.live(4)
        for port in range(1, 7):
            life.fail(("t0", port), ("a0", 2))
            await life.live(1)
        life.fail()
        await life.live(2)
        await life.controller.planner.flush_record()
        replayed = _replayed(life.lines())
        assert {each.verdict for each in replayed} == {Verdict.SAME}
        flows = [flow for each in replayed for job in each.recorded.snapshot.jobs for flow in job.flows]
        assert any(flow.is_cut_off for flow in flows)
        assert len({len(flow.candidates) for flow in flows}) > 1
        await life.end()

    asyncio.run(scenario())


def test_another_policy_is_shown_with_its_own_plans_in_force(tmp_path: Path) -> None:
    async def scenario() -> None:
        life = Life(tmp_path / "t.db", "crux")
        life.start()
        await life.live(8)
        await life.controller.planner.flush_record()
        decisions = list(read_decisions("record", life.lines()))
        assert {each.verdict for each in replay_under(find_policy("crux"), decisions)} == {Verdict.SAME}
        other = list(replay_under(find_policy("ecmp"), decisions))
        assert all(each.plan.policy == "ecmp" for each in other)
        moved = [flow for each in other for flow in each.difference.moved]
        assert moved
        assert all(flow.after is None for flow in moved)
        # Where there is nothing to decide on, it is the same whoever decides.
        nothing = replace(decisions[0].snapshot, jobs=(), open_groups=())
        empty = replace(decisions[0], snapshot=nothing, plan=Plan("crux", (), {}))
        assert [each.verdict for each in replay_under(find_policy("ecmp"), [empty])] == [Verdict.SAME]
        await life.end()

    asyncio.run(scenario())


def test_on_another_fabric_no_plan_is_in_force_and_numbers_go_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        life = Life(tmp_path / "t.db", "trainyard")
        life.start()
        await life.live(5)
        await life.controller.planner.flush_record()
        life.start(hash_seed=2)
        await life.live(3)
        await life.end()
        life.start(hash_seed=2)
        replayed = _replayed(life.lines())
        assert [each.recorded.number for each in replayed] == list(range(1, 9))
        assert {each.verdict for each in replayed} == {Verdict.SAME}
        assert replayed[5].recorded.snapshot.previous is None
        await life.end()

    asyncio.run(scenario())


@pytest.mark.slow
def test_old_plans_are_pruned_and_the_others_stay_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controller.store.recorder._PRUNED_EVERY", 5)

    async def scenario() -> None:
        life = Life(tmp_path / "t.db", "trainyard", plans=7)
        life.start()
        await life.live(20)
        await life.controller.planner.flush_record()
        replayed = _replayed(life.lines())
        assert [each.recorded.number for each in replayed] == list(range(14, 21))
        assert [each.verdict for each in replayed] == [Verdict.NOT_CHECKED] + [Verdict.SAME] * 6
        await life.end()

    asyncio.run(scenario())


def test_a_plan_is_recorded_though_pruning_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise StoreError("database t.db: database or disk is full")

    async def scenario() -> None:
        monkeypatch.setattr("controller.store.recorder._PRUNED_EVERY", 2)
        monkeypatch.setattr("controller.store.facts.prune", full)
        life = Life(tmp_path / "t.db", "crux")
        life.start()
        await life.live(2)
        await life.controller.planner.flush_record()
        assert life.controller.planner.recorded_number == 2
        assert "is not in the record" not in caplog.text
        assert "the record is not pruned: database t.db: database or disk is full" in caplog.text
        await life.end()

    asyncio.run(scenario())


def test_a_plan_that_cannot_be_written_leaves_a_gap_without_delay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object, **__: object) -> None:
        raise StoreError("database t.db: database or disk is full")

    async def scenario() -> None:
        life = Life(tmp_path / "t.db", "trainyard")
        life.start()
        await life.live(3)
        await life.controller.planner.flush_record()
        with monkeypatch.context() as patched:
            patched.setattr("controller.store.facts.decision_steps", full)
            await life.live(2)
            await life.controller.planner.flush_record()
        assert life.controller.planner.decision is not None
        assert life.controller.planner.decision.number == 5
        assert "plan 4 is not in the record: database t.db: database or disk is full" in caplog.text
        await life.live(2)
        await life.controller.planner.flush_record()
        replayed = _replayed(life.lines())
        assert [each.recorded.number for each in replayed] == [1, 2, 3, 6, 7]
        assert [each.verdict for each in replayed] == [Verdict.SAME] * 3 + [Verdict.NOT_CHECKED, Verdict.SAME]
        await life.end()

    asyncio.run(scenario())


def test_a_different_configuration_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        life = Life(tmp_path / "t.db", "crux")
        life.start()
        life.store.warn_of_other(life.config)
        await life.live(3)
        await life.controller.planner.flush_record()
        life.store.warn_of_other(life.config)
        assert caplog.text == ""
        life.store.warn_of_other(life.config.model_copy(update={"hash_seed": 2, "policy": "ecmp"}))
        assert "under another hash_seed and policy than is configured here" in caplog.text
        await life.end()

    asyncio.run(scenario())


def test_requests_to_switches_follow_their_plan(tmp_path: Path) -> None:
    async def scenario() -> None:
        life = Life(tmp_path / "t.db", "ecmp")
        life.start()
        life.store.trail.record(SwitchWrite("t0", 9, 0, 0, WriteOutcome.ACKNOWLEDGED))
        await life.live(1)
        life.store.trail.record(SwitchWrite("t1", 1, 2, 3, WriteOutcome.REFUSED, "table 'flow' is full"))
        await life.store.trail.flush()
        await life.controller.planner.flush_record()
        lines = [json.loads(line) for line in life.lines()]
        told = [line for line in lines if "plan" in line]
        assert [line.get("switch") for line in told] == [None, "t0", "t1"]
        assert [line["plan"] for line in told] == [1, 0, 1]
        assert told[2] == {
            **{"switch": "t1", "plan": 1, "time_s": life.clock.now_s()},
            **{"inserted": 1, "modified": 2, "deleted": 3, "outcome": "refused", "problem": "table 'flow' is full"},
        }
        await life.end()

    asyncio.run(scenario())


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    async def scenario() -> list[str]:
        life = Life(tmp_path_factory.mktemp("record") / "t.db", "crux")
        life.start()
        await life.live(4)
        await life.controller.planner.flush_record()
        lines = life.lines()
        await life.end()
        return lines

    return asyncio.run(scenario())


def test_a_truncated_record_is_refused_with_the_line(record: list[str]) -> None:
    for kept in range(len(record)):
        with pytest.raises(RecordError, match=rf"^record:{kept + 1}: the record is cut off here"):
            list(read_decisions("record", record[:kept]))
    with pytest.raises(RecordError, match=r"^record:2: no line of a record, or one that was cut off"):
        list(read_decisions("record", [record[0], record[1][:40]]))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("name,bytes\n", "record:1: no record of Trainyard"),
        ('{"end":1}\n', "record:1: no record of Trainyard"),
        ('{"format":"trainyard-record","version":2}\n', "record:1: a record of version 2, and this Trainyard reads"),
    ],
)
def test_another_file_is_refused(line: str, reason: str) -> None:
    with pytest.raises(RecordError, match=reason):
        list(read_decisions("record", [line]))


def test_missing_and_wrong_lines_are_detected(record: list[str]) -> None:
    plan = next(number for number, line in enumerate(record) if line.startswith('{"plan"'))
    orders = [number for number in range(plan) if '"fact":"order"' in record[number]]
    without = [line for number, line in enumerate(record) if number != orders[0]]
    with pytest.raises(RecordError, match=rf"^record:{plan}: plan 1 cannot be put together"):
        list(read_decisions("record", without))
    last = [*record[:-2], record[-1]]
    with pytest.raises(
        RecordError, match=rf"^record:{len(last)}: {len(record) - 1} lines were written before this one"
    ):
        list(read_decisions("record", last))
    with pytest.raises(RecordError, match=rf"^record:{len(record) + 1}: the record has ended before"):
        list(read_decisions("record", [*record, record[1]]))


@pytest.mark.parametrize("hostile", [1 << 64, float("inf"), -1])
def test_hostile_numbers_in_facts_are_refused_with_the_plan_or_read(record: list[str], hostile: float) -> None:
    plan = next(number for number, line in enumerate(record) if line.startswith('{"plan"'))
    kinds = {json.loads(record[number]).get("fact"): number for number in range(1, plan)}
    refused = 0
    for number in kinds.values():
        for changed in _with_each_number_replaced(json.loads(record[number]), hostile):
            try:
                list(read_decisions("record", [*record[:number], json.dumps(changed) + "\n", *record[number + 1 :]]))
            except RecordError:
                refused += 1
    assert refused > 10


def _with_each_number_replaced(value: object, by: float) -> Iterator[object]:
    """Copies of a document of JSON; in each, one number is replaced."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from ({**value, key: changed} for changed in _with_each_number_replaced(part, by))
    elif isinstance(value, list):
        for place, part in enumerate(value[:20]):
            changed_parts = _with_each_number_replaced(part, by)
            yield from ([*value[:place], changed, *value[place + 1 :]] for changed in changed_parts)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield by


def test_a_plan_that_would_differ_now_is_named(record: list[str]) -> None:
    lines = []
    for line in record:
        told = json.loads(line)
        if told.get("fact") == "job" and told["key"] == "job-0":
            told["body"]["profile"][2] *= 1e6
        lines.append(json.dumps(told) + "\n")
    replayed = _replayed(lines)
    assert replayed[0].verdict is Verdict.DIFFERENT
    assert "job-0" in replayed[0].differs_in
