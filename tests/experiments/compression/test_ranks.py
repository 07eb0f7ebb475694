"""Eight ranks in one process send the product's payloads, and have what a plain mean has."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from experiments.compression import ranks as ranks_module
from experiments.compression.ranks import VirtualRanks, carried, reduced
from experiments.compression.star import HOSTS
from hostlib.compression.choice import Choice, Collective, Precision
from hostlib.compression.codecs import sparse
from hostlib.compression.codecs.payload import Header
from hostlib.compression.collectives import AllGather, Ranks
from hostlib.compression.control.cost import values_sent
from hostlib.compression.residuals import Residuals, Section
from hostlib.compression.transmissions import Gradient, Reducer

ELEMENTS = 1000
DENSE = Choice(1, Precision.FP32, Collective.ALL_REDUCE)


def _gradients(seed: int = 0) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(ELEMENTS, generator=generator) for _ in range(HOSTS)]


def _mean(choice: Choice, gradients: Sequence[torch.Tensor], ranks: VirtualRanks | None = None) -> torch.Tensor:
    copies = [gradient.clone() for gradient in gradients]
    return (ranks or VirtualRanks(0.0)).mean(0, copies, torch.ones(ELEMENTS), choice).clone()


def test_dense_is_the_plain_mean() -> None:
    gradients = _gradients()
    torch.testing.assert_close(_mean(DENSE, gradients), torch.stack(gradients).mean(dim=0))


def test_a_gathered_mean_is_that_of_each_ranks_largest() -> None:
    gradients = _gradients()
    expected = torch.zeros(ELEMENTS)
    for gradient in gradients:
        chosen = gradient.abs().topk(100).indices
        expected[chosen] += gradient[chosen] / HOSTS
    choice = Choice(0.1, Precision.FP32, Collective.ALL_GATHER)
    torch.testing.assert_close(_mean(choice, gradients), expected)


@pytest.mark.parametrize("collective", [Collective.ALL_GATHER, Collective.REDUCE_SCATTER])
@pytest.mark.parametrize("precision", [Precision.FP32, Precision.FP16, Precision.INT8])
def test_what_is_not_sent_stays_with_the_ranks(collective: Collective, precision: Precision) -> None:
    gradients, ranks = _gradients(), VirtualRanks(0.0)
    mean = _mean(Choice(0.05, precision, collective), gradients, ranks)
    section = (Section("bucket 0", ELEMENTS),)
    unsent = sum(each.held(section, torch.device("cpu")).unsent for each in ranks.residuals)
    torch.testing.assert_close(HOSTS * mean + unsent, torch.stack(gradients).sum(dim=0), atol=1e-4, rtol=1e-4)


def test_a_remainder_is_the_mean_of_what_was_left_out() -> None:
    gradients, ranks = _gradients(), VirtualRanks(0.0)
    mean = _mean(Choice(0.05, Precision.INT8, Collective.REDUCE_SCATTER), gradients, ranks)
    late = ranks.remainder(0, torch.ones(ELEMENTS), DENSE)
    torch.testing.assert_close(mean + late, torch.stack(gradients).mean(dim=0), atol=1e-5, rtol=1e-5)
    assert not ranks.remainder(0, torch.ones(ELEMENTS), DENSE).any()


def test_payloads_are_the_products(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[torch.Tensor] = []

    def watched(operations: Sequence[Any]) -> list[Any]:
        seen.extend(operation.payload for operation in operations if isinstance(operation, AllGather))
        return carried(operations)

    monkeypatch.setattr(ranks_module, "carried", watched)
    choice = Choice(0.01, Precision.FP16, Collective.ALL_GATHER)
    _mean(choice, _gradients())
    assert len(seen) == HOSTS
    for payload in seen:
        header = Header.read(payload)
        assert (header.elements, header.count, header.precision) == (ELEMENTS, 10, Precision.FP16)
        assert len(payload) == sparse.wire_bytes(ELEMENTS, values_sent(choice, ELEMENTS), Precision.FP16)


@pytest.mark.parametrize(
    "choice",
    [
        Choice(0.05, Precision.INT8, Collective.REDUCE_SCATTER),
        Choice(0.05, Precision.FP16, Collective.ALL_GATHER, prune_share=0.4),
        Choice(1, Precision.FP16, Collective.ALL_REDUCE),
        Choice(1, Precision.INT8, Collective.REDUCE_SCATTER),
    ],
)
def test_any_rank_would_decode_what_the_first_one_does(choice: Choice) -> None:
    torch.testing.assert_close(reduced(_transmissions(choice)), _of_rank(_transmissions(choice), 5), rtol=0, atol=0)


def _transmissions(choice: Choice) -> list[Any]:
    section, weights = (Section("bucket 0", ELEMENTS),), torch.linspace(-1, 1, ELEMENTS)
    return [
        Reducer(Ranks(None, rank, HOSTS, "gloo"), Residuals()).transmission(
            Gradient(gradient, section, [weights], rank), choice
        )
        for rank, gradient in enumerate(_gradients())
    ]


def _of_rank(transmissions: Sequence[Any], rank: int) -> torch.Tensor:
    """Advance all transmissions to their ends; return what one rank's has become."""
    operations = [next(transmission) for transmission in transmissions]
    results: dict[int, torch.Tensor] = {}
    while len(results) < HOSTS:
        received = [None] * HOSTS if operations[0] is None else carried(operations)
        operations = []
        for number, (transmission, each) in enumerate(zip(transmissions, received, strict=True)):
            try:
                operations.append(transmission.send(each))
            except StopIteration as stop:
                results[number] = stop.value
    return results[rank]


def test_another_collective_is_refused() -> None:
    with pytest.raises(TypeError, match="no collective of 8 ranks: 'nonsense'"):
        carried(["nonsense"] * HOSTS)
