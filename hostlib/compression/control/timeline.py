"""When the gradients of a step are summed: a forecast from when they are ready and what each transmission takes.

Encoding is serial with the backward pass, as on a CPU, so each encoding delays all that follows. Transmissions are
serial on the link, in the order of the buckets. Decoding is serial behind them. What is ready before the backward pass
begins has a negative time.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """A step's computation, without any encoding.

    Attributes:
        ready_s: Per bucket, from the begin of the backward pass until its gradients are there.
        backward_s: The backward pass.
        compute_s: The whole step.
    """

    ready_s: tuple[float, ...]
    backward_s: float
    compute_s: float


@dataclass(frozen=True, slots=True)
class Service:
    """How long one bucket keeps each resource busy: encoder, link, decoder."""

    encode_s: float
    network_s: float
    decode_s: float


@dataclass(frozen=True, slots=True)
class Forecast:
    """What becomes of a step. Times count from the begin of the backward pass.

    Attributes:
        finish_s: When the last sum is there and the backward pass is over.
        chain_start: The bucket from which on the link never waits for gradients: none before it delays the finish.
    """

    finish_s: float
    chain_start: int


def forecast(timing: Timing, services: Sequence[Service]) -> Forecast:
    """Return when a step's gradients are summed if its buckets take these times."""
    encoded_s, chain_start = 0.0, 0
    link_free_s = decoded_s = -math.inf
    for position, (ready_s, service) in enumerate(zip(timing.ready_s, services, strict=True)):
        encoded_s += service.encode_s
        issued_s = ready_s + encoded_s
        if issued_s >= link_free_s:
            chain_start, link_free_s = position, issued_s
        link_free_s += service.network_s
        if link_free_s > decoded_s:
            decoded_s = link_free_s
        decoded_s += service.decode_s
    return Forecast(max(decoded_s, timing.backward_s + encoded_s), chain_start)
