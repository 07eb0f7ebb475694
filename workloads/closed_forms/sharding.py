"""Coflows of sharded training: parameters gathered before use, gradients scattered after.

Durations are by layer group, in order of layers.
"""

from collections.abc import Sequence
from itertools import accumulate

from workloads.closed_forms.arguments import check_count, check_seconds


def gathers(forward_s: Sequence[float], backward_s: Sequence[float]) -> tuple[float, ...]:
    """All-gathers of FSDP (ZeRO-3): forward in order of layers, then backward in reverse.

    Each is due when its layers are to be computed; prefetching makes it start earlier, not finish. Raises ValueError,
    naming the argument, for durations that are missing, negative or not finite, or of different numbers of layers.
    """
    _check("forward_s", forward_s)
    _check("backward_s", backward_s)
    if len(forward_s) != len(backward_s):
        raise ValueError(f"backward_s must have {len(forward_s)} durations as forward_s has, not {len(backward_s)}")
    return tuple(accumulate([*forward_s, *list(backward_s)[:0:-1]], initial=0.0))


def gathers_by_equation_7(num_layers: int, forward_s: float, backward_s: float) -> tuple[float, ...]:
    """The same as EchelonFlow, equation 7, has it, of equal layers.

    It is later by a backward less a forward step from the first backward gather on: that one follows the last forward
    step, but the equation adds a backward step. Raises ValueError as ``gathers``.
    """
    check_count("num_layers", num_layers)
    check_seconds("forward_s", forward_s)
    check_seconds("backward_s", backward_s)
    return tuple(accumulate([forward_s] * (num_layers - 1) + [backward_s] * num_layers, initial=0.0))


def scatters(backward_s: Sequence[float], buffers: int = 1, optimizer_wait_s: float = 0.0) -> tuple[float, ...]:
    """Reduce-scatters of FSDP (ZeRO-3), in order of the backward pass.

    A scatter is needed when its input buffer is, ``buffers`` steps after it was filled; the last ones by the optimizer,
    ``optimizer_wait_s`` after the backward pass. Raises ValueError as ``gathers``.
    """
    _check("backward_s", backward_s)
    check_count("buffers", buffers)
    check_seconds("optimizer_wait_s", optimizer_wait_s)
    ready_s = list(accumulate(reversed(backward_s)))
    needed_s = [*ready_s[buffers:], *[ready_s[-1] + optimizer_wait_s] * min(buffers, len(ready_s))]
    return tuple(due_s - needed_s[0] for due_s in needed_s)


def parameters(forward_s: Sequence[float]) -> tuple[float, ...]:
    """What is needed by the next forward pass, in order of layers.

    Parameters that a sharded optimizer (ZeRO-1, ZeRO-2) gathers, and gradients where a framework waits for each layer's
    in the next forward pass only (ByteScheduler). Raises ValueError as ``gathers``.
    """
    _check("forward_s", forward_s)
    return tuple(accumulate(forward_s[:-1], initial=0.0))


def _check(name: str, seconds: Sequence[float]) -> None:
    if not seconds:
        raise ValueError(f"{name} must have a duration for every layer group, there is none")
    check_seconds(name, *seconds)
