"""Low rank in one process: against PowerSGD in plain NumPy, exact where it must be, and nothing is lost."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hostlib.compression.choice import Choice, Collective, Precision, low_rank
from hostlib.compression.collectives import AllReduce, Ranks
from hostlib.compression.factoring import WarmStarts, orthonormal
from hostlib.compression.residuals import Residuals, Section
from hostlib.compression.shapes import Shape, factor_sizes, is_low_rank
from hostlib.compression.transmissions import NOT_FINITE, Gradient, Reducer

CPU = torch.device("cpu")
SHAPES: list[Shape] = [(12, 3, 5), (7,), (20, 16), (2, 2)]
"""The first and the third are factored at ranks 1 and 2."""

Matrix = npt.NDArray[np.float64]


class Job:
    """Ranks that send gradients of parameters of these shapes."""

    def __init__(self, shapes: Sequence[Shape], size: int, momentum: float = 0.0) -> None:
        self.parameters = [torch.zeros(shape) for shape in shapes]
        self.sections = tuple(Section(f"p{number}", each.numel()) for number, each in enumerate(self.parameters))
        self.residuals = [Residuals(momentum) for _ in range(size)]
        self._reducers = [Reducer(Ranks(None, rank, size, "gloo"), each) for rank, each in enumerate(self.residuals)]
        self.passed_on: list[str | None] = []

    def mean(self, gradients: Sequence[torch.Tensor], choice: Choice) -> list[torch.Tensor]:
        """Send one gradient of each rank; return what it becomes on each."""
        sent = [Gradient(gradient.clone(), self.sections, self.parameters, 1) for gradient in gradients]
        running = [
            reducer.transmission(gradient, choice) for reducer, gradient in zip(self._reducers, sent, strict=True)
        ]
        results: list[torch.Tensor] = []
        received: list[torch.Tensor | None] = [None] * len(running)
        while not results:
            operations = []
            for transmission, each in zip(running, received, strict=True):
                try:
                    operations.append(transmission.send(each))
                except StopIteration as stop:
                    results.append(stop.value)
            received = _summed(operations)
        self.passed_on = [gradient.passed_on for gradient in sent]
        return results

    def unsent(self) -> torch.Tensor:
        """By rank."""
        return torch.stack([each.held(self.sections, CPU).unsent for each in self.residuals])


def _summed(operations: Sequence[object]) -> list[torch.Tensor | None]:
    tensors = [operation.tensor for operation in operations if isinstance(operation, AllReduce)]
    if not tensors:
        return [None] * len(operations)
    total = torch.stack(tensors).sum(dim=0)
    return [tensor.copy_(total) for tensor in tensors]


def _gradients(size: int, shapes: Sequence[Shape], seed: int) -> torch.Tensor:
    elements = sum(torch.Size(shape).numel() for shape in shapes)
    return torch.randn(size, elements, generator=torch.Generator().manual_seed(seed))


class Plain:
    """PowerSGD of one matrix in float64: Vogels et al. 2019, Algorithms 1 and 2, as a loop over ranks."""

    def __init__(self, right: Matrix, size: int, rows: int) -> None:
        self.right = right
        self.errors = [np.zeros((rows, len(right))) for _ in range(size)]

    def step(self, gradients: Sequence[Matrix]) -> Matrix:
        """Return what all ranks decode."""
        wanted = [gradient + error for gradient, error in zip(gradients, self.errors, strict=True)]
        left, _ = np.linalg.qr(sum(each @ self.right for each in wanted) / len(wanted))
        rights = [each.T @ left for each in wanted]
        self.right = sum(rights) / len(rights)
        self.errors = [each - left @ right.T for each, right in zip(wanted, rights, strict=True)]
        return np.asarray(left @ self.right.T)


@given(st.integers(2, 4), st.integers(4, 12), st.integers(4, 12), st.integers(1, 2), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_it_is_power_sgd(size: int, rows: int, columns: int, rank: int, seed: int) -> None:
    shape = (2 * rows, 2 * columns)
    assume(is_low_rank(shape, rank))
    job = Job([shape], size)
    plain = Plain(WarmStarts().of("p0", shape[1], rank, CPU).t().double().numpy(), size, shape[0])
    for step in range(4):
        gradients = _gradients(size, [shape], seed + 7 * step)
        results = job.mean(list(gradients), low_rank(rank))
        expected = plain.step([each.view(shape).double().numpy() for each in gradients])
        for result in results:
            np.testing.assert_allclose(result.view(shape), expected, atol=2e-3)
        np.testing.assert_allclose(job.unsent().view(size, *shape), plain.errors, atol=2e-3)


@given(st.integers(1, 5), st.integers(1, 2), st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_what_is_sent_and_what_is_left_add_up(size: int, rank: int, seed: int) -> None:
    job = Job(SHAPES, size)
    for step in range(3):
        gradients = _gradients(size, SHAPES, seed + step)
        before = job.unsent()
        results = job.mean(list(gradients), low_rank(rank))
        torch.testing.assert_close(results, results[:1] * size, rtol=0, atol=0)
        total = size * results[0] + job.unsent().sum(dim=0)
        torch.testing.assert_close(total, (before + gradients).sum(dim=0), rtol=1e-4, atol=1e-4)


def test_a_mean_of_that_rank_is_exact_though_no_ranks_gradient_is() -> None:
    noise = _gradients(2, [(20, 16)], 1)
    random = torch.Generator().manual_seed(2)
    low = torch.randn(20, 2, generator=random) @ torch.randn(2, 16, generator=random)
    gradients = [low.view(-1) + noise[0], low.view(-1) - noise[0]]
    job = Job([(20, 16)], 2)
    torch.testing.assert_close(job.mean(gradients, low_rank(2))[0], low.view(-1), rtol=1e-4, atol=1e-4)
    assert job.unsent().sum(dim=0).abs().max() < 1e-4


def test_vectors_and_matrices_that_would_hardly_shrink_are_the_plain_mean() -> None:
    gradients = _gradients(3, SHAPES, 5)
    result = Job(SHAPES, 3).mean(list(gradients), low_rank(1))[0]
    for begin, end in ((180, 187), (507, 511)):
        torch.testing.assert_close(result[begin:end], gradients[:, begin:end].mean(dim=0))
    assert (result[:180] - gradients[:, :180].mean(dim=0)).abs().max() > 0.1


def test_without_matrices_it_is_an_all_reduce() -> None:
    shapes: list[Shape] = [(7,), (2, 2), ()]
    gradients = _gradients(2, shapes, 6)
    job = Job(shapes, 2)
    torch.testing.assert_close(job.mean(list(gradients), low_rank(4))[0], gradients.mean(dim=0))
    assert all(each.is_empty(job.sections) for each in job.residuals)


def test_a_warm_start_comes_nearer() -> None:
    """Of one gradient again and again, less and less is missing: each step is one more step of power iteration."""
    gradient = _gradients(1, [(40, 30)], 2)[0]
    job = Job([(40, 30)], 1)
    sent = sum(job.mean([gradient], low_rank(2))[0] for _ in range(60))
    torch.testing.assert_close(sent / 60, gradient, atol=0.5, rtol=0)
    cold = sum(Job([(40, 30)], 1).mean([gradient], low_rank(2))[0] for _ in range(60))
    assert (sent / 60 - gradient).norm() < 0.5 * (cold / 60 - gradient).norm()


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_what_is_not_finite_is_sent_as_it_is_and_changes_nothing(wrong: float, momentum: float) -> None:
    job = Job(SHAPES, 3, momentum)
    job.mean(list(_gradients(3, SHAPES, 1)), low_rank(2))
    before = [each.state_dict(3) for each in job.residuals]
    gradients = list(_gradients(3, SHAPES, 2))
    gradients[1][200] = wrong
    results = job.mean(gradients, low_rank(2))
    assert job.passed_on == [NOT_FINITE] * 3
    for result in results:
        torch.testing.assert_close(result, torch.stack(gradients).mean(dim=0), equal_nan=True)
    for each, kept in zip(job.residuals, before, strict=True):
        after = each.state_dict(3)
        for key in ("unsent", "velocity"):
            torch.testing.assert_close(after[key], kept[key], rtol=1e-5, atol=1e-5)
    assert all(result.isfinite().all() for result in job.mean(list(_gradients(3, SHAPES, 3)), low_rank(2)))


def test_a_sum_beyond_fp32_is_sent_as_it_is() -> None:
    job = Job([(20, 16)], 2)
    job.mean([torch.full((320,), 3e38)] * 2, low_rank(1))
    assert job.passed_on == [NOT_FINITE] * 2
    assert job.unsent().abs().max() < 1e32  # rounding of what is taken back


def test_zeros_stay_zeros_and_the_next_gradient_travels() -> None:
    job = Job(SHAPES, 2)
    for _ in range(2):
        assert not any(result.any() for result in job.mean(list(torch.zeros(2, 511)), low_rank(2)))
    gradients = list(_gradients(2, SHAPES, 4))
    for result in job.mean(gradients, low_rank(2)):
        assert result.isfinite().all()
        assert result[:180].any()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_factored_in_fp32(dtype: torch.dtype) -> None:
    job, total = Job(SHAPES, 2), torch.zeros(511)
    gradients = _gradients(2, SHAPES, 8).to(dtype)
    for _ in range(3):
        result = job.mean(list(gradients), low_rank(2))[0]
        assert result.dtype == dtype
        total += result.float()
    missing = 3 * gradients.float().mean(dim=0) - total - job.unsent().mean(dim=0)
    assert missing.abs().max() < 0.05  # rounding of each mean


def test_what_exceeds_the_range_of_a_type_waits() -> None:
    job = Job(SHAPES, 2)
    held = [each.held(job.sections, CPU).unsent for each in job.residuals]
    for unsent in held:
        unsent[182] = 100_000
    results = job.mean([torch.zeros(511, dtype=torch.float16)] * 2, low_rank(1))
    assert results[0][182] == torch.finfo(torch.float16).max
    assert job.unsent()[:, 182].tolist() == [100_000 - 65_504] * 2


def test_momentum_is_corrected_before_anything_is_sent() -> None:
    job = Job(SHAPES, 2, momentum=0.5)
    gradients = _gradients(2, SHAPES, 9)
    sent = sum(job.mean(list(gradients), low_rank(2))[0] for _ in range(3))
    # velocities of 1, 1.5 and 1.75 gradients
    expected = 4.25 * gradients.mean(dim=0)
    torch.testing.assert_close(sent + job.unsent().mean(dim=0), expected, rtol=1e-4, atol=1e-4)


def test_each_rank_of_matrices_has_a_start_of_its_own() -> None:
    starts = WarmStarts()
    first = starts.of("a", 9, 2, CPU)
    torch.testing.assert_close(WarmStarts().of("a", 9, 2, CPU), first, rtol=0, atol=0)
    assert not torch.equal(starts.of("b", 9, 2, CPU), first)
    starts.keep("a", torch.ones(2, 9))
    assert torch.equal(starts.of("a", 9, 2, CPU), torch.ones(2, 9))
    assert torch.equal(starts.of("a", 9, 1, CPU), WarmStarts().of("a", 9, 1, CPU))
    assert starts.of("a", 8, 2, CPU).shape == (2, 8)  # another parameter of that name


@pytest.mark.parametrize("matrix", [torch.zeros(2, 5), torch.ones(2, 5), torch.full((2, 5), 1e-30), torch.eye(5)[:3]])
def test_rows_become_orthonormal_whatever_they_are(matrix: torch.Tensor) -> None:
    found = orthonormal(matrix)
    torch.testing.assert_close(found @ found.t(), torch.eye(len(matrix)))
    torch.testing.assert_close((matrix @ found.t()) @ found, matrix)


def test_values_of_known_shapes() -> None:
    sizes = factor_sizes([(1000, 2000), (2000, 4), (300, 300), (5,), (), (64, 3, 7, 7)], 4)
    assert (sizes.left, sizes.right) == (4 * (1000 + 300 + 64), 4 * (2000 + 300 + 147))
    assert (sizes.matrices, sizes.elements) == (3, 2_000_000 + 90_000 + 9_408)
    assert not is_low_rank((300, 300), 75)  # it would halve the values, and no more


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ((1, Precision.FP32, Collective.ALL_REDUCE, 0, -1), "rank: expected 0 or more, got -1"),
        ((0.5, Precision.FP32, Collective.ALL_REDUCE, 0, 2), "rank: low rank is of all elements"),
        ((1, Precision.INT8, Collective.ALL_REDUCE, 0, 2), "rank: low rank is of all elements"),
        ((1, Precision.FP32, Collective.ALL_GATHER, 0, 2), "rank: low rank is of all elements"),
    ],
)
def test_choices_that_cannot_be_are_refused(
    fields: tuple[float, Precision, Collective, float, int], named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        Choice(*fields)
