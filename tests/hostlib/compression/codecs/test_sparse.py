"""Sparse payloads lose nothing: what is decoded and what stays add up to what came in."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hostlib.compression.choice import Precision
from hostlib.compression.codecs import dense, payload, sparse, values
from hostlib.compression.codecs.errors import CorruptPayloadError
from hostlib.compression.codecs.payload import Form
from tests.hostlib.compression.codecs import plain
from tests.hostlib.compression.codecs.plain import FloatArray

FORMS = (Form.ELIAS_FANO, Form.PLAIN)
SIZE = 70_000
LARGE = plain.large_vectors(SIZE)

both_forms = pytest.mark.parametrize("form", FORMS)
each_precision = pytest.mark.parametrize("precision", Precision)


def _decoded(received: torch.Tensor, elements: int) -> torch.Tensor:
    into = torch.zeros(elements)
    sparse.decode_add(received, into)
    return into


@both_forms
@each_precision
@given(plain.pairs(), st.integers(0, 2**64 - 1))
def test_decoded_and_residual_add_up(form: Form, precision: Precision, pair: tuple[FloatArray, int], seed: int) -> None:
    vector, count = pair
    residual = torch.from_numpy(vector.copy())
    sent = sparse.encode(residual, count, precision, seed=seed, form=form)
    assert len(sent) == sparse.wire_bytes(len(vector), count, precision, form)
    decoded = _decoded(sent, len(vector))
    error = np.abs(decoded.double().numpy() + residual.double().numpy() - vector)
    most = np.abs(vector.astype(np.float64)).max(initial=0)
    assert error.max(initial=0) <= most * plain.ULP
    untouched = np.setdiff1d(np.arange(len(vector)), plain.largest(vector, count))
    assert not decoded[untouched].any()
    assert residual[untouched].tolist() == vector[untouched].tolist()
    if precision is Precision.FP32:
        assert (decoded + residual).tolist() == vector.tolist()


@both_forms
@each_precision
@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=8), st.integers(1, 400), st.floats(0, 1))
def test_the_decoded_sum_of_ranks_is_that_of_a_reference(
    form: Form, precision: Precision, seeds: list[int], elements: int, ratio: float
) -> None:
    count = int(ratio * elements)
    total, expected, allowed = torch.zeros(elements), np.zeros(elements), 0.0
    for rank, seed in enumerate(seeds):
        vector = np.random.default_rng(seed).standard_normal(elements).astype(np.float32)
        residual = torch.from_numpy(vector.copy())
        sparse.decode_add(sparse.encode(residual, count, precision, seed=rank, form=form), total)
        chosen = plain.largest(vector, count)
        expected[chosen] += vector[chosen]
        allowed += float(np.abs(vector).max()) * plain.ROUNDING[precision]
    assert np.abs(total.double().numpy() - expected).max() <= allowed + len(seeds) ** 2 * 8 * plain.ULP


@both_forms
@each_precision
@pytest.mark.parametrize("momentum", [None, 0.9])
def test_steps_with_feedback_follow_the_reference(form: Form, precision: Precision, momentum: float | None) -> None:
    count = SIZE // 100
    residual = torch.zeros(SIZE)
    velocity = None if momentum is None else torch.zeros(SIZE)
    for step, name in enumerate(("normal", "heavy tails", "mostly zero", "normal")):
        gradient = torch.from_numpy(LARGE[name])
        moving = None if velocity is None else velocity.numpy().copy()
        expected = plain.accumulated(residual.numpy().copy(), LARGE[name], moving, momentum or 0)
        chosen = plain.largest(expected, count)
        sent = sparse.encode(
            residual,
            count,
            precision,
            gradient=gradient,
            velocity=velocity,
            momentum=momentum or 0,
            seed=step,
            form=form,
        )
        decoded = _decoded(sent, SIZE)
        assert set(decoded.nonzero().view(-1).tolist()) <= set(chosen.tolist())
        total = decoded.double().numpy() + residual.double().numpy()
        assert np.abs(total - expected).max() <= np.abs(expected).max() * plain.ULP
        if velocity is not None and moving is not None:
            moving[chosen] = 0
            assert velocity.tolist() == moving.tolist()


@each_precision
@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("count", [0, 1000, SIZE])
def test_both_forms_send_the_same(precision: Precision, name: str, count: int) -> None:
    decoded, residuals = [], []
    for form in FORMS:
        residuals.append(torch.from_numpy(LARGE[name].copy()))
        decoded.append(_decoded(sparse.encode(residuals[-1], count, precision, seed=9, form=form), SIZE))
    assert torch.equal(*decoded)
    assert torch.equal(*residuals)


@both_forms
@pytest.mark.parametrize("elements", [0, 1, 2])
@pytest.mark.parametrize("share", [0, 0.5, 1])
def test_the_smallest_vectors_come_back(form: Form, elements: int, share: float) -> None:
    count = int(share * elements)
    residual = torch.arange(1.0, elements + 1)
    decoded = _decoded(sparse.encode(residual, count, Precision.FP32, form=form), elements)
    assert decoded.tolist() == [0.0] * (elements - count) + list(range(elements - count + 1, elements + 1))
    assert (decoded + residual).tolist() == list(range(1, elements + 1))


@both_forms
def test_only_what_is_not_zero_is_sent_in_a_payload_of_the_same_size(form: Form) -> None:
    residual = torch.zeros(1000)
    residual[[3, 700]] = torch.tensor([1.0, -2.0])
    sent = sparse.encode(residual, 100, Precision.FP16, form=form)
    assert len(sent) == sparse.wire_bytes(1000, 100, Precision.FP16, form)
    assert payload.Header.read(sent).count == 2
    assert _decoded(sent, 1000).nonzero().view(-1).tolist() == [3, 700]
    assert not residual.any()


@pytest.mark.parametrize("precision", Precision)
@pytest.mark.parametrize("ratio", [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5])
def test_a_payload_is_within_a_twentieth_of_the_entropy(precision: Precision, ratio: float) -> None:
    elements = 11_689_512
    count = int(ratio * elements)
    least_bytes = plain.entropy_bytes(elements, count) + values.size_bytes(count, precision)
    most = 1.06 if precision is Precision.INT4 else 1.05
    assert sparse.wire_bytes(elements, count, precision) <= most * least_bytes


@both_forms
@each_precision
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("has_gradient", [True, False])
def test_what_is_not_finite_is_sent_as_nan_and_never_kept(
    form: Form, precision: Precision, value: float, has_gradient: bool
) -> None:
    broken, residual, velocity = torch.ones(1000), torch.ones(1000), torch.ones(1000)
    broken[[2, 77, 500]] = value
    if has_gradient:
        arguments = {"gradient": broken, "velocity": velocity, "momentum": 0.5}
        sent = sparse.encode(residual, 2, precision, form=form, **arguments)
        assert torch.equal(residual, torch.ones(1000))
        assert torch.equal(velocity, torch.ones(1000))
    else:
        before = broken.clone()
        sent = sparse.encode(broken, 2, precision, form=form)
        torch.testing.assert_close(broken, before, rtol=0, atol=0, equal_nan=True)
    assert len(sent) == sparse.wire_bytes(1000, 2, precision, form)
    assert not payload.is_finite(sent)
    assert _decoded(sent, 1000).isnan().nonzero().view(-1).tolist() == [2, 77]


def test_a_finite_payload_says_so() -> None:
    assert payload.is_finite(sparse.encode(torch.ones(10), 3, Precision.INT8))


@both_forms
@each_precision
@given(st.data())
def test_a_damaged_payload_is_refused_or_adds_within_the_vector(
    form: Form, precision: Precision, data: st.DataObject
) -> None:
    vector = torch.randn(200, generator=torch.Generator().manual_seed(1))
    sent = sparse.encode(vector, 20, precision, form=form)
    for position in data.draw(st.lists(st.integers(0, len(sent) - 1), max_size=3)):
        sent[position] = data.draw(st.integers(0, 255))
    received = sent[: data.draw(st.integers(0, len(sent)))]
    guarded = torch.zeros(600)
    try:
        sparse.decode_add(received, guarded[200:400])
    except CorruptPayloadError:
        assert not guarded.any()
    assert not guarded[:200].any()
    assert not guarded[400:].any()


@both_forms
def test_payloads_of_other_vectors_are_refused(form: Form) -> None:
    sent = sparse.encode(torch.ones(100), 10, Precision.FP32, form=form)
    into = torch.zeros(99)
    with pytest.raises(CorruptPayloadError, match=r"of 100 elements; expected a sparse one of 99"):
        sparse.decode_add(sent, into)
    with pytest.raises(CorruptPayloadError, match=r"dense, of 99 elements"):
        sparse.decode_add(dense.encode(torch.ones(99), Precision.FP32), into)
    with pytest.raises(CorruptPayloadError, match=r"expected at least"):
        sparse.decode_add(sent[:40], torch.zeros(100))
    assert not into.any()


def test_a_plain_index_outside_of_the_vector_is_refused() -> None:
    sent = sparse.encode(torch.ones(100), 10, Precision.FP32, form=Form.PLAIN)
    for index in (100, -1):
        sent[payload.SIZE_BYTES :].view(torch.int32)[4] = index
        with pytest.raises(CorruptPayloadError, match="indices outside of 100 elements"):
            _decoded(sent, 100)


@both_forms
def test_a_payload_is_written_and_read_in_place_beside_others(form: Form) -> None:
    size_bytes = sparse.wire_bytes(1000, 30, Precision.INT8, form)
    both = torch.full((2 * size_bytes + 1,), 255, dtype=torch.uint8)
    first, second = torch.randn(2, 1000, generator=torch.Generator().manual_seed(1))
    expected = [sparse.encode(vector.clone(), 30, Precision.INT8, form=form) for vector in (first, second)]
    sparse.encode(first.clone(), 30, Precision.INT8, form=form, into=both[:size_bytes])
    sparse.encode(second.clone(), 30, Precision.INT8, form=form, into=both[size_bytes : 2 * size_bytes])
    assert torch.equal(both[:-1], torch.cat(expected))
    both[1:] = both[:-1].clone()  # unaligned, as a header of odd length would make it
    assert torch.equal(_decoded(both[1 : 1 + size_bytes], 1000), _decoded(expected[0], 1000))
    with pytest.raises(ValueError, match="begin at a multiple of 8 bytes"):
        sparse.encode(first.clone(), 30, Precision.INT8, form=form, into=both[1 : 1 + size_bytes])


def test_arguments_that_do_not_fit_are_refused_and_change_nothing() -> None:
    residual = torch.ones(10)
    for match, arguments in (
        (r"count: must lie between 0 and 10, not 11", {"count": 11}),
        (r"gradient: expected 10 elements", {"gradient": torch.ones(9)}),
        (r"velocity: expected 10 elements", {"gradient": torch.ones(10), "velocity": torch.ones(11)}),
        (r"gradient: expected a contiguous vector of float32", {"gradient": torch.ones(10, dtype=torch.float16)}),
        (r"gradient: expected a contiguous vector of float32", {"gradient": torch.ones(20)[::2]}),
        (r"payload: expected \d+ bytes", {"into": torch.zeros(3, dtype=torch.uint8)}),
        (r"form: dense does not suit indices", {"form": Form.DENSE}),
    ):
        with pytest.raises(ValueError, match=match):
            sparse.encode(residual, **{"count": 5, "precision": Precision.FP32, **arguments})
    with pytest.raises(ValueError, match="into: expected a contiguous vector"):
        sparse.decode_add(sparse.encode(torch.ones(10), 5, Precision.FP32), torch.zeros(20)[::2])
    assert torch.equal(residual, torch.ones(10))
