"""One gradient's payloads: what is sent and what is left add up, and what was encoded can be taken back."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hostlib.compression.choice import Choice, Collective, Precision
from hostlib.compression.codecs.payload import is_finite
from hostlib.compression.encoding import Encoding, largest_magnitude
from hostlib.compression.residuals import Held

CHOICES = st.builds(
    Choice,
    ratio=st.sampled_from([0.01, 0.1, 0.5, 1.0]),
    precision=st.sampled_from(list(Precision)),
    collective=st.just(Collective.ALL_GATHER),
    prune_share=st.sampled_from([0.0, 0.3]),
)
SIZES = st.integers(1, 300)


def vectors(size: int, seed: int, momentum: float) -> tuple[torch.Tensor, torch.Tensor, Held]:
    """A gradient, weights, and what is held."""
    generator = torch.Generator().manual_seed(seed)
    gradient, weights, unsent, velocity = torch.randn(4, size, generator=generator)
    return gradient.contiguous(), weights, Held(unsent.clone(), velocity.clone() if momentum else None)


def cut(size: int, parts: int) -> list[range]:
    return [range(size * part // parts, size * (part + 1) // parts) for part in range(parts)]


@given(CHOICES, SIZES, st.integers(0, 1000), st.integers(1, 3), st.sampled_from([0.0, 0.9]))
@settings(max_examples=60, deadline=None)
def test_what_is_sent_and_what_is_left_add_up(
    choice: Choice, size: int, seed: int, parts: int, momentum: float
) -> None:
    gradient, weights, held = vectors(size, seed, momentum)
    before = gradient.clone()
    total = held.unsent + (gradient if held.velocity is None else momentum * held.velocity + gradient)
    encoding = Encoding(gradient, held, momentum, choice, seed)
    ranges = cut(size, parts)
    payloads = encoding.encode(ranges, [weights])
    sent = torch.zeros(size)
    for elements, payload in zip(ranges, payloads, strict=True):
        assert len(payload) == encoding.wire_bytes(len(elements))
        encoding.add(payload, sent[elements.start : elements.stop])
    torch.testing.assert_close(sent + held.unsent, total, rtol=1e-5, atol=1e-5)
    assert torch.equal(gradient, before)


@given(CHOICES, SIZES, st.integers(0, 1000), st.integers(1, 3), st.sampled_from([0.0, 0.9]))
@settings(max_examples=60, deadline=None)
def test_what_was_encoded_is_taken_back(choice: Choice, size: int, seed: int, parts: int, momentum: float) -> None:
    gradient, weights, held = vectors(size, seed, momentum)
    unsent, velocity = held.unsent.clone(), None if held.velocity is None else held.velocity.clone()
    encoding = Encoding(gradient, held, momentum, choice, seed)
    encoding.encode(cut(size, parts), [weights])
    encoding.take_back()
    torch.testing.assert_close(held.unsent, unsent, rtol=1e-5, atol=1e-5)
    assert velocity is None or torch.equal(held.velocity, velocity)


@given(CHOICES, SIZES, st.sampled_from([float("nan"), float("inf"), float("-inf")]))
@settings(max_examples=30, deadline=None)
def test_what_is_not_finite_is_said_and_changes_nothing(choice: Choice, size: int, number: float) -> None:
    gradient, weights, held = vectors(size, 1, 0.9)
    before = [held.unsent.clone(), held.velocity.clone()]
    gradient[size // 2] = number
    encoding = Encoding(gradient, held, 0.9, choice, 1)
    payloads = encoding.encode(cut(size, 2), [weights])
    assert not any(is_finite(payload) for payload in payloads if len(payload) > encoding.wire_bytes(0))
    encoding.take_back()
    assert torch.equal(held.unsent, before[0])
    assert torch.equal(held.velocity, before[1])


@given(CHOICES, SIZES, st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_what_a_second_selection_leaves_out_stays_in_the_sum(choice: Choice, size: int, seed: int) -> None:
    _, _, held = vectors(size, seed, 0)
    encoding = Encoding(torch.zeros(size), held, 0, choice, seed)
    total = torch.randn(size, generator=torch.Generator().manual_seed(seed))
    rest, sent = total.clone(), torch.zeros(size)
    payload = encoding.encode_again(rest, True)
    encoding.add(payload, sent)
    torch.testing.assert_close(sent + rest, total, rtol=1e-5, atol=1e-5)
    assert not is_finite(encoding.encode_again(total, False))


def test_gradients_of_the_smallest_weights_wait() -> None:
    weights = torch.tensor([0.1, 5, -0.2, 6])
    gradient = torch.tensor([9.0, 1, 8, 2])
    held = Held(torch.zeros(4), None)
    choice = Choice(0.25, Precision.FP32, Collective.ALL_GATHER, prune_share=0.5)
    encoding = Encoding(gradient, held, 0, choice, 1)
    sent = torch.zeros(4)
    encoding.add(encoding.encode([range(4)], [weights])[0], sent)
    assert sent.tolist() == [0, 0, 0, 2]
    assert held.unsent.tolist() == [9, 1, 8, 0]


def test_momentum_correction_is_that_of_dgc() -> None:
    momentum, held = 0.5, Held(torch.zeros(2), torch.zeros(2))
    choice = Choice(0.5, Precision.FP32, Collective.ALL_GATHER)
    sent = []
    for gradient in ([4.0, 1.0], [1.0, 1.0], [1.0, 1.0]):
        encoding = Encoding(torch.tensor(gradient), held, momentum, choice, 1)
        decoded = torch.zeros(2)
        encoding.add(encoding.encode([range(2)])[0], decoded)
        sent.append(decoded.tolist())
    # The first element is sent and forgotten; the second one's velocity is 1, then 1.5: together 2.5.
    assert sent == [[4, 0], [0, 2.5], [2.5, 0]]


def test_the_largest_magnitude() -> None:
    assert largest_magnitude(torch.tensor([1.0, -3])) == 3
    assert largest_magnitude(torch.tensor([])) == 0
    assert largest_magnitude(torch.tensor([1.0, float("nan")])) != largest_magnitude(torch.tensor([1.0, float("nan")]))
