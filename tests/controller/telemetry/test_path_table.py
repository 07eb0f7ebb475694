"""A pair's path table: what it believes, which ports it keeps, what is fresh, and when it is complete."""

import pytest

from controller.telemetry.path_table import PORTS_PER_PATH, REPORTS_TO_CONFIRM, Freshness, Outcome, PathTable
from topologies.fabric import Path

A, B = (1, 2, 3), (1, 4, 3)
STALE_S = 5.0


@pytest.fixture
def table() -> PathTable:
    return PathTable([A, B], STALE_S)


def tell(table: PathTable, port: int, path: Path, now_s: float = 0.0, times: int = REPORTS_TO_CONFIRM) -> None:
    for number in range(times):
        table.record(port, number, path, now_s)


def freshness(table: PathTable, now_s: float) -> dict[Path, Freshness]:
    return {candidate.path: candidate.freshness for candidate in table.candidates(now_s)}


def test_a_path_is_believed_when_enough_reports_agree(table: PathTable) -> None:
    tell(table, 50_000, A, times=REPORTS_TO_CONFIRM - 1)
    assert table.path_of(50_000, 0.0) is None
    assert freshness(table, 0.0) == {A: Freshness.UNSEEN, B: Freshness.UNSEEN}
    assert table.kept_ports() == (50_000,)  # so that there are more reports of it
    tell(table, 50_000, A, times=1)
    assert table.path_of(50_000, 0.0) == A
    assert table.candidates(0.0)[0].source_ports == (50_000,)


def test_reports_that_do_not_agree_with_each_other_move_nothing(table: PathTable) -> None:
    tell(table, 50_000, A)
    for _ in range(10):
        tell(table, 50_000, B, times=REPORTS_TO_CONFIRM - 1)
        tell(table, 50_000, A, times=1)
    assert table.path_of(50_000, 0.0) == A
    tell(table, 50_000, B)
    assert table.path_of(50_000, 0.0) == B
    assert freshness(table, 0.0) == {A: Freshness.STALE, B: Freshness.FRESH}


def test_a_few_ports_are_kept_for_each_path_and_those_of_flows(table: PathTable) -> None:
    for port in range(50_000, 50_010):
        tell(table, port, A)
    assert table.kept_ports() == tuple(range(50_000, 50_000 + PORTS_PER_PATH))
    table.keep_ports({50_000, 60_000})
    assert table.take_changed()
    table.keep_ports({50_000, 60_000})
    assert not table.take_changed()
    tell(table, 60_000, A)
    tell(table, 50_020, A)
    assert table.kept_ports() == (50_000, 50_001, 50_020, 60_000)
    assert table.path_of(60_000, 0.0) == A
    assert table.keep_ports(set()) == {50_000, 60_000}
    assert table.take_changed()
    assert len(table.kept_ports()) == PORTS_PER_PATH


def test_ports_that_move_where_there_are_enough_are_kept_no_longer(table: PathTable) -> None:
    for port in (1, 2):
        tell(table, port, A)
    for port in (3, 4):
        tell(table, port, B)
    tell(table, 3, A)
    assert table.kept_ports() == (1, 2, 4)


def test_a_pair_is_complete_while_all_its_paths_are_fresh(table: PathTable) -> None:
    assert not table.update_completeness(0.0)
    tell(table, 1, A, now_s=1.0)
    tell(table, 2, B, now_s=2.0)
    assert not table.is_complete
    assert table.update_completeness(2.0)
    assert table.is_complete
    assert not table.update_completeness(1.0 + STALE_S - 0.001)
    tell(table, 1, A, now_s=5.0, times=1)
    assert not table.update_completeness(1.0 + STALE_S)
    assert table.is_complete
    assert table.update_completeness(2.0 + STALE_S)
    assert not table.is_complete
    assert [candidate.path for candidate in table.candidates(2.0 + STALE_S)] == [A, B]
    assert table.path_of(2, 2.0 + STALE_S) is None
    tell(table, 2, B, now_s=8.0, times=1)
    assert table.update_completeness(8.0)
    assert table.is_complete


def test_dead_paths_are_not_waited_for(table: PathTable) -> None:
    tell(table, 1, A)
    tell(table, 2, A)
    assert not table.update_completeness(0.0)
    table.reroute({B[1]})
    assert table.update_completeness(0.0)
    assert table.is_complete
    assert not table.wants_ports
    table.reroute(set())
    assert table.update_completeness(0.0)
    assert not table.is_complete
    assert table.wants_ports


def test_what_is_stale_stands_behind_what_is_fresh(table: PathTable) -> None:
    tell(table, 1, A, now_s=0.0)
    tell(table, 2, B, now_s=STALE_S)
    first, second = table.candidates(STALE_S)
    assert (first.path, first.freshness, first.age_s) == (B, Freshness.FRESH, 0.0)
    assert (second.path, second.freshness, second.age_s, second.source_ports) == (A, Freshness.STALE, STALE_S, ())


def test_a_pair_whose_only_port_of_a_path_moves_is_complete_no_longer(table: PathTable) -> None:
    tell(table, 1, A)
    tell(table, 2, B)
    table.update_completeness(0.0)
    tell(table, 2, A, now_s=1.0)
    assert table.update_completeness(1.0)
    assert not table.is_complete


def test_loss_is_that_of_a_paths_own_ports(table: PathTable) -> None:
    for number in (0, 1, 2, 3, 5):
        table.record(1, number, A, 0.0)
    tell(table, 2, B)
    by_path = {candidate.path: candidate.loss for candidate in table.candidates(0.0)}
    assert by_path[B] == 0.0
    # Counted since it was believed, with number 2.
    assert by_path[A] == pytest.approx(1 / 3)


def test_a_pair_that_loses_a_flows_port_looks_for_others(table: PathTable) -> None:
    table.keep_ports({1})
    tell(table, 1, A)
    tell(table, 2, B)
    assert table.update_completeness(0.0)
    assert table.is_complete
    table.keep_ports(set())
    assert table.update_completeness(0.0)
    assert not table.is_complete
    assert table.wants_ports


def test_a_path_whose_port_has_moved_wants_another(table: PathTable) -> None:
    for port, path in ((1, A), (2, A), (3, B), (4, B)):
        tell(table, port, path)
    table.update_completeness(0.0)
    assert not table.wants_ports
    tell(table, 4, A, times=REPORTS_TO_CONFIRM - 1)
    table.take_changed()
    table.record(4, 9, A, 0.0)
    assert table.take_changed()
    assert table.wants_ports


def test_a_probe_is_compared_with_what_is_believed_of_its_port(table: PathTable) -> None:
    table.keep_ports({1})
    of_flow = [table.record(1, number, A, 0.0) for number in range(REPORTS_TO_CONFIRM + 1)]
    assert of_flow == [Outcome.UNCONFIRMED] * (REPORTS_TO_CONFIRM - 1) + [Outcome.MOVED, Outcome.EXPECTED]
    assert table.record(1, 9, B, 0.0) is Outcome.ELSEWHERE
    table.reroute(frozenset())
    assert table.record(1, 10, B, 0.0) is Outcome.UNCONFIRMED
    for port in (2, 3):
        tell(table, port, A)
    assert table.record(4, 0, A, 0.0) is Outcome.IGNORED
