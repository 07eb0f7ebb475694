"""Jobs that play their task graphs, with times worked out by hand; runs on the simulator: test_modelled.py."""

from collections.abc import Sequence

import numpy as np
import pytest

from policies.model.bundles import Bundles
from policies.model.playing_jobs import PlayingJobs
from policies.rates.network import Network
from policies.task_graph import Computation, TaskGraph, Transfer

LINK_BPS = 8e9
"""A byte a nanosecond: 1e9 bytes take a second."""
SEND_FIRST = TaskGraph((Computation(1.0), Transfer((0,), (0,)), Computation(0.5, (1,))))


def bundles(tiers: Sequence[int], latency_s: float = 0.0, weights: Sequence[float] | None = None) -> Bundles:
    number = len(tiers)
    return Bundles(
        Network.of(np.array([LINK_BPS]), [(0,)] * number),
        weights=np.ones(number) if weights is None else np.array(weights),
        tiers=np.array(tiers),
        levels=np.zeros(number, dtype=np.int64),
        latency_ps=np.full(number, round(latency_s * 1e12)),
    )


def played(
    graphs: Sequence[TaskGraph], num_bundles: Sequence[int], sizes: Sequence[float], of: Bundles, until_s: float = 20.0
) -> PlayingJobs:
    playing = PlayingJobs(graphs, np.zeros(len(graphs)), np.array(num_bundles), np.array(sizes), of)
    playing.run(until_s)
    return playing


def test_a_job_alone_computes_and_sends_in_turn() -> None:
    playing = played([SEND_FIRST], [1], [1e9], bundles([0], latency_s=0.25), until_s=6.0)
    assert playing.ends_s(0).tolist() == [2.75, 5.5]


def test_jobs_of_one_tier_share_and_a_more_urgent_one_goes_first() -> None:
    """Each computes 1 s, sends 1 s, computes 0.5 s. Both send from 1 to 3 s; or the second waits for the first."""
    shared = played([SEND_FIRST] * 2, [1, 1], [1e9, 1e9], bundles([0, 0]))
    assert [shared.ends_s(job)[0] for job in (0, 1)] == [3.5, 3.5]
    ordered = played([SEND_FIRST] * 2, [1, 1], [1e9, 1e9], bundles([1, 0]))
    assert [ordered.ends_s(job)[0] for job in (0, 1)] == [3.5, 2.5]
    # From 3.5 s on their transfers alternate.
    assert [np.diff(ordered.ends_s(job))[2:5].tolist() for job in (0, 1)] == [[2.5] * 3, [2.5] * 3]


def test_bundles_share_by_their_weights() -> None:
    weighted = played([SEND_FIRST] * 2, [1, 1], [3e9, 1e9], bundles([0, 0], weights=[3.0, 1.0]))
    assert [weighted.ends_s(job)[0] for job in (0, 1)] == [5.5, 5.5]


def test_a_task_waits_for_all_that_it_names_and_a_transfer_ends_with_its_last_bundle() -> None:
    """Two computations beside each other; the transfer has bundles of 1 and 2 s, and one without bytes is left out."""
    graph = TaskGraph(
        (
            Computation(1.0),
            Computation(2.0),
            Transfer((0, 1), (0, 1)),
            Transfer((2,), (0,)),
            Computation(0.5, (2, 3)),
        )
    )
    playing = played([graph], [2, 0], [1e9, 2e9], bundles([0, 0]))
    assert playing.ends_s(0)[0] == 2.0 + 3.0 + 0.5


def test_transfers_that_start_again_as_they_end_are_not_mistaken_for_each_other() -> None:
    """Neither job ever stops sending, each on a link of its own."""
    graph = TaskGraph((Computation(0.5), Transfer((0,))))
    network = Network.of(np.full(2, LINK_BPS), [(0,), (1,)])
    none = np.zeros(2, dtype=np.int64)
    playing = played([graph] * 2, [1, 1], [1e9, 1.25e9], Bundles(network, np.ones(2), none, none, none))
    assert playing.iterations.tolist() == [20, 16]


def test_an_iteration_counts_by_its_share_of_a_window() -> None:
    playing = played([SEND_FIRST], [1], [1e9], bundles([0]), until_s=11.0)  # iterations of 2.5 s
    assert playing.iterations_between(2.5, 7.5).tolist() == [2.0]
    assert playing.iterations_between(1.0, 3.0).tolist() == [pytest.approx(0.8)]
    assert playing.iterations_between(10.0, 11.0).tolist() == [pytest.approx(0.4)]  # by the one before
    later = PlayingJobs([SEND_FIRST], np.array([2.0]), np.array([1]), np.array([1e9]), bundles([0]))
    later.run(7.0)
    assert later.iterations_between(0.0, 7.0).tolist() == [2.0]


def test_a_job_goes_on_where_it_was() -> None:
    whole, parts = (
        PlayingJobs([SEND_FIRST] * 2, np.zeros(2), np.array([1, 1]), np.array([1e9, 7e8]), bundles([0, 0]))
        for _ in range(2)
    )
    whole.run(30.0)
    for until_s in np.arange(0.3, 30.1, 0.3):
        parts.run(float(until_s))
    parts.run(30.0)
    assert [parts.ends_s(job).tolist() for job in (0, 1)] == [whole.ends_s(job).tolist() for job in (0, 1)]


def test_a_starved_job_completes_nothing() -> None:
    graph = TaskGraph((Computation(0.5), Transfer((0,))))
    greedy = played([graph, SEND_FIRST], [1, 1], [1e9, 1e9], bundles([0, 1]))
    assert greedy.iterations.tolist() == [20, 0]
    assert greedy.iterations_between(0.0, 20.0).tolist() == [20.0, 0.0]


def test_bundles_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="expected the bundles of 1 transfers, got 2"):
        played([SEND_FIRST], [1, 1], [1e9, 1e9], bundles([0, 0]))
    with pytest.raises(ValueError, match=r"bundle 0: it must send a positive number of bytes, not 0\.0"):
        played([SEND_FIRST], [1], [0.0], bundles([0]))
    with pytest.raises(ValueError, match="expected 1 bundles, got 2"):
        played([SEND_FIRST], [1], [1e9], bundles([0, 0]))
