"""One pair's candidates: what is believed, kept known, fresh, and when all of it is known."""

import pytest

from controller.telemetry.candidates import AGREEING, Freshness, PairCandidates
from controller.telemetry.known_paths import PORTS_PER_PATH
from topologies.fabric import Path

A, B = (1, 2, 3), (1, 4, 3)
STALE_S = 5.0


@pytest.fixture
def pair() -> PairCandidates:
    return PairCandidates([A, B], STALE_S)


def tell(pair: PairCandidates, port: int, path: Path, now_s: float = 0.0, times: int = AGREEING) -> None:
    for number in range(times):
        pair.note(port, number, number, path, now_s)


def freshness(pair: PairCandidates, now_s: float) -> dict[Path, Freshness]:
    return {candidate.path: candidate.freshness for candidate in pair.candidates(now_s)}


def test_a_path_is_believed_when_enough_reports_agree(pair: PairCandidates) -> None:
    tell(pair, 50_000, A, times=AGREEING - 1)
    assert pair.path_of(50_000, 0.0) is None
    assert freshness(pair, 0.0) == {A: Freshness.UNSEEN, B: Freshness.UNSEEN}
    assert pair.kept_ports() == (50_000,)  # so that there are more reports of it
    tell(pair, 50_000, A, times=1)
    assert pair.path_of(50_000, 0.0) == A
    assert pair.candidates(0.0)[0].source_ports == (50_000,)


def test_reports_that_do_not_agree_with_each_other_move_nothing(pair: PairCandidates) -> None:
    tell(pair, 50_000, A)
    for _ in range(10):
        tell(pair, 50_000, B, times=AGREEING - 1)
        tell(pair, 50_000, A, times=1)
    assert pair.path_of(50_000, 0.0) == A
    tell(pair, 50_000, B)
    assert pair.path_of(50_000, 0.0) == B
    assert freshness(pair, 0.0) == {A: Freshness.STALE, B: Freshness.FRESH}


def test_a_few_ports_are_kept_for_each_path_and_those_of_flows(pair: PairCandidates) -> None:
    for port in range(50_000, 50_010):
        tell(pair, port, A)
    assert pair.kept_ports() == tuple(range(50_000, 50_000 + PORTS_PER_PATH))
    pair.pin({50_000, 60_000})
    changes = pair.changes
    pair.pin({50_000, 60_000})
    assert pair.changes == changes
    tell(pair, 60_000, A)
    tell(pair, 50_020, A)
    assert pair.kept_ports() == (50_000, 50_001, 50_020, 60_000)
    assert pair.path_of(60_000, 0.0) == A
    pair.pin(set())
    assert pair.changes != changes
    assert len(pair.kept_ports()) == PORTS_PER_PATH


def test_ports_that_move_where_there_are_enough_are_kept_no_longer(pair: PairCandidates) -> None:
    for port in (1, 2):
        tell(pair, port, A)
    for port in (3, 4):
        tell(pair, port, B)
    tell(pair, 3, A)
    assert pair.kept_ports() == (1, 2, 4)


def test_a_pair_is_complete_while_all_its_paths_are_fresh(pair: PairCandidates) -> None:
    assert not pair.age(0.0)
    tell(pair, 1, A, now_s=1.0)
    tell(pair, 2, B, now_s=2.0)
    assert not pair.is_complete
    assert pair.age(2.0)
    assert pair.is_complete
    assert not pair.age(1.0 + STALE_S - 0.001)
    tell(pair, 1, A, now_s=5.0, times=1)
    assert not pair.age(1.0 + STALE_S)
    assert pair.is_complete
    assert pair.age(2.0 + STALE_S)
    assert not pair.is_complete
    assert [candidate.path for candidate in pair.candidates(2.0 + STALE_S)] == [A, B]
    assert pair.path_of(2, 2.0 + STALE_S) is None
    tell(pair, 2, B, now_s=8.0, times=1)
    assert pair.age(8.0)
    assert pair.is_complete


def test_dead_paths_are_not_waited_for(pair: PairCandidates) -> None:
    tell(pair, 1, A)
    tell(pair, 2, A)
    assert not pair.age(0.0)
    pair.rerouted({B[1]})
    assert pair.age(0.0)
    assert pair.is_complete
    assert not pair.wants_ports
    pair.rerouted(set())
    assert pair.age(0.0)
    assert not pair.is_complete
    assert pair.wants_ports


def test_what_is_stale_stands_behind_what_is_fresh(pair: PairCandidates) -> None:
    tell(pair, 1, A, now_s=0.0)
    tell(pair, 2, B, now_s=STALE_S)
    first, second = pair.candidates(STALE_S)
    assert (first.path, first.freshness, first.age_s) == (B, Freshness.FRESH, 0.0)
    assert (second.path, second.freshness, second.age_s, second.source_ports) == (A, Freshness.STALE, STALE_S, ())


def test_a_pair_whose_only_port_of_a_path_moves_is_complete_no_longer(pair: PairCandidates) -> None:
    tell(pair, 1, A)
    tell(pair, 2, B)
    pair.age(0.0)
    tell(pair, 2, A, now_s=1.0)
    assert pair.age(1.0)
    assert not pair.is_complete


def test_loss_is_that_of_a_paths_own_ports(pair: PairCandidates) -> None:
    for number in (0, 1, 2, 3, 5):
        pair.note(1, number, number, A, 0.0)
    tell(pair, 2, B)
    by_path = {candidate.path: candidate.loss for candidate in pair.candidates(0.0)}
    assert by_path[B] == 0.0
    # Counted since it was believed, with number 2.
    assert by_path[A] == pytest.approx(1 / 3)


def test_a_pair_that_loses_a_flows_port_looks_for_others(pair: PairCandidates) -> None:
    pair.pin({1})
    tell(pair, 1, A)
    tell(pair, 2, B)
    assert pair.age(0.0)
    assert pair.is_complete
    pair.pin(set())
    assert pair.age(0.0)
    assert not pair.is_complete
    assert pair.wants_ports


def test_a_path_whose_port_has_moved_wants_another(pair: PairCandidates) -> None:
    for port, path in ((1, A), (2, A), (3, B), (4, B)):
        tell(pair, port, path)
    pair.age(0.0)
    assert not pair.wants_ports
    tell(pair, 4, A, times=AGREEING - 1)
    changes = pair.changes
    pair.note(4, 9, 9, A, 0.0)
    assert pair.changes != changes
    assert pair.wants_ports
