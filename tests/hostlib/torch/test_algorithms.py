"""What ranks send in a collective: by hand, and as gloo's connections carry it."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from hostlib.torch.algorithms import Collective, is_known, sent_bytes
from tests.hostlib.torch.gloo_ranks import run_ranks

OPERATIONS = (
    "allreduce_",
    "allreduce_coalesced_",
    "broadcast_",
    "reduce_",
    "_allgather_base_",
    "allgather_",
    "allgather_into_tensor_coalesced_",
    "_reduce_scatter_base_",
    "reduce_scatter_",
    "reduce_scatter_tensor_coalesced_",
    "gather_",
    "scatter_",
    "alltoall_base_",
    "alltoall_",
    "send",
    "recv_",
    "recv_any_source_",
    "barrier",
)
GLOO_HEADERS_BYTES = 8192
"""gloo puts 48 bytes before each message, and announces each with 48 more from both ends. In the measured collectives,
and the barrier counted with each, that makes at most 4640 bytes a connection."""


def all_sent(collective: Collective, world_size: int, backend: str) -> list[dict[int, int]]:
    return [sent_bytes(collective, rank, world_size, backend) for rank in range(world_size)]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What every rank of every group sent, for each collective."""
    pytest.importorskip("torch", reason="needs the extra `torch`, for real collectives over gloo")
    ranks = run_ranks("measured_collectives", 4, tmp_path_factory.mktemp("ranks"))
    return [result for results in ranks for result in results]


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS)
def test_gloo_s_connections_carry_what_is_said(measured: list[dict[str, Any]], operation: str) -> None:
    groups = Counter()
    for result in measured:
        called = Collective(**result["collective"])
        if called.operation != operation:
            continue
        expected = sent_bytes(called, result["rank"], result["world_size"], "gloo")
        assert len(result["sent"]) == result["world_size"] - 1
        for peer, measured_bytes in result["sent"].items():
            assert measured_bytes == pytest.approx(expected.get(int(peer), 0), rel=0.01, abs=GLOO_HEADERS_BYTES), result
        groups[result["world_size"]] += 1
    assert set(groups) == {2, 3, 4}


@pytest.mark.parametrize(
    ("backend", "collective", "expected"),
    [
        ("gloo", Collective("allreduce_", 1200), [{3: 1800}, {0: 1800}, {1: 1800}, {2: 1800}]),
        ("nccl", Collective("allreduce_", 1200), [{1: 1800}, {2: 1800}, {3: 1800}, {0: 1800}]),
        ("gloo", Collective("_allgather_base_", 1200), [{1: 900}, {2: 900}, {3: 900}, {0: 900}]),
        ("gloo", Collective("_reduce_scatter_base_", 1200), [{3: 1800}, {0: 1800}, {1: 1800}, {2: 1800}]),
        ("nccl", Collective("_reduce_scatter_base_", 1200), [{1: 900}, {2: 900}, {3: 900}, {0: 900}]),
        ("gloo", Collective("broadcast_", 1200, peer=1), [{}, {2: 1200, 3: 1200}, {0: 1200}, {}]),
        ("nccl", Collective("broadcast_", 1200, peer=1), [{}, {2: 1200}, {3: 1200}, {0: 1200}]),
        ("gloo", Collective("reduce_", 1200, peer=1), [{3: 900, 1: 300}, {0: 900}, {1: 1200}, {2: 900, 1: 300}]),
        ("nccl", Collective("reduce_", 1200, peer=1), [{1: 1200}, {}, {3: 1200}, {0: 1200}]),
        ("gloo", Collective("gather_", 1200, peer=1), [{1: 300}, {}, {1: 300}, {1: 300}]),
        ("nccl", Collective("scatter_", 1200, peer=1), [{}, {0: 300, 2: 300, 3: 300}, {}, {}]),
        ("nccl", Collective("barrier", 0), [{}, {}, {}, {}]),
    ],
    ids=lambda value: value.operation if isinstance(value, Collective) else None,
)
def test_each_of_four_ranks_sends_what_the_algorithm_has_it_send(
    backend: str, collective: Collective, expected: list[dict[int, int]]
) -> None:
    assert all_sent(collective, 4, backend) == expected


def test_gloo_s_reduce_goes_over_all_segments_but_two() -> None:
    # Twelve segments of 1 MiB, six for each of two ranks: the ring sends ten, and rank 0 its part to the root.
    mebibyte = 1 << 20
    assert all_sent(Collective("reduce_", 12 * mebibyte, peer=1), 2, "gloo") == [{1: 16 * mebibyte}, {0: 10 * mebibyte}]


@pytest.mark.parametrize("backend", ["gloo", "nccl"])
@pytest.mark.parametrize("world_size", [2, 3, 5, 8, 13])
def test_broadcasts_reach_every_rank_once(backend: str, world_size: int) -> None:
    for root in range(world_size):
        sent = all_sent(Collective("broadcast_", 1000, peer=root), world_size, backend)
        received = Counter(peer for to_peers in sent for peer in to_peers)
        assert received == {rank: 1 for rank in range(world_size) if rank != root}


def test_an_all_to_all_sends_its_splits_and_keeps_its_own() -> None:
    called = Collective("alltoall_base_", 600, splits_bytes=(100, 200, 0, 300))
    assert sent_bytes(called, 1, 4, "gloo") == {0: 100, 3: 300}
    assert sent_bytes(replace(called, splits_bytes=()), 1, 4, "nccl") == {0: 150, 2: 150, 3: 150}


def test_point_to_point_bytes_leave_the_sender() -> None:
    assert sent_bytes(Collective("send", 500, peer=2), 0, 3, "gloo") == {2: 500}
    assert sent_bytes(Collective("recv_", 500, peer=0), 2, 3, "gloo") == {}
    assert sent_bytes(Collective("recv_any_source_", 500), 2, 3, "gloo") == {}


@pytest.mark.parametrize("backend", ["gloo", "nccl"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_rank_alone_and_empty_tensors_send_nothing(backend: str, operation: str) -> None:
    assert sent_bytes(Collective(operation, 1000, peer=0), 0, 1, backend) == {}
    assert all_sent(Collective(operation, 0, peer=0), 3, backend) == [{}, {}, {}]


def test_back_ends_that_are_not_modelled_count_as_nccl_s_ring() -> None:
    assert (is_known("gloo"), is_known("nccl"), is_known("ucc")) == (True, True, False)
    called = Collective("allreduce_", 1200)
    assert all_sent(called, 4, "ucc") == all_sent(called, 4, "nccl")


@pytest.mark.parametrize(
    ("collective", "rank", "problem"),
    [
        (Collective("all_reduce", 1), 0, "operation: expected a collective of c10d, got 'all_reduce'"),
        (Collective("allreduce_", -1), 0, "size_bytes: must lie between"),
        (Collective("allreduce_", 1), 2, "rank: must lie between 0 and 1, not 2"),
        (Collective("send", 1, peer=2), 0, "peer: must lie between 0 and 1, not 2"),
        (Collective("broadcast_", 1), 0, "peer: expected an integer, got None"),
        (Collective("alltoall_", 1, splits_bytes=(1,)), 0, "splits_bytes: expected one for each of 2 ranks, got 1"),
        (Collective("alltoall_", 1, splits_bytes=(1, -1)), 0, r"splits_bytes\[1\]: must lie between"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(collective: Collective, rank: int, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{problem}"):
        sent_bytes(collective, rank, 2, "gloo")
