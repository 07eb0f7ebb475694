"""Arrangements in closed form: offsets of a flow group's flows, in order of release.

An offset is the ideal finish in seconds after the group's reference time, the start of its head flow. The head flow has
offset 0. A job that knows its own durations gives each flow its offset:

    >>> from hostlib import Flow, Nic
    >>> from hostlib.arrangements import staggered
    >>> [
    ...     Flow(Nic("h0"), Nic("h1"), size_bytes=1_000_000, offset_s=offset_s)
    ...     for offset_s in staggered(num_flows=4, step_s=0.02)
    ... ]  # doctest: +SKIP

Every function raises ValueError, naming the argument, for a count that is too small and for a duration that is negative
or not finite. Source: EchelonFlow (Pan et al., HotNets 2022), equations 5 to 7. A property test compares the closed
forms with the arrangements of task graphs.
"""

import math
from collections.abc import Sequence
from itertools import accumulate


def coflow(num_flows: int) -> tuple[float, ...]:
    """Flows that are needed together: every offset is 0 (equation 5).

    Examples are an all-reduce or one of its buckets, a push to or pull from parameter servers, an all-to-all of
    experts, and any other collective that the next computation needs as a whole.
    """
    _check_count("num_flows", num_flows)
    return (0.0,) * num_flows


def staggered(num_flows: int, step_s: float) -> tuple[float, ...]:
    """Flows that are needed one after the other at equal distances (equation 6).

    ``step_s`` is the consumer's computation per flow. For GPipe it is the receiving stage's time for a micro-batch, for
    the backward flows of 1F1B the sum of forward and backward time, for ring attention the attention to one block, and
    for chunked experts the computation of one chunk.
    """
    _check_count("num_flows", num_flows)
    _check_seconds("step_s", step_s)
    return tuple(number * step_s for number in range(num_flows))


def one_forward_one_backward(
    num_micro_batches: int, num_hosts: int, consumer: int, forward_s: float, backward_s: float
) -> tuple[float, ...]:
    """Forward flows of a 1F1B pipeline of equal hosts into host ``consumer``, counted from 0.

    Flows are ``forward_s`` apart until the first backward pass returns; then each follows a backward pass. Durations
    are those of one micro-batch.
    """
    _check_pipeline(num_micro_batches, num_hosts, consumer, forward_s, backward_s)
    ahead = num_hosts - consumer
    return tuple(
        number * forward_s if number < ahead else number * (forward_s + backward_s)
        for number in range(num_micro_batches)
    )


def interleaved(
    num_micro_batches: int, num_hosts: int, num_chunks: int, consumer: int, forward_s: float, backward_s: float
) -> tuple[float, ...]:
    """Forward flows of an interleaved 1F1B pipeline of equal hosts into host ``consumer``, counted from 0.

    Durations are those of one micro-batch on one chunk. After the warm-up the consumer waits for the first backward
    pass, if that takes longer than a forward pass, and then alternates. It may wait once more: the second round reaches
    its second chunk only behind the last host, which warms up least and so has long been alternating. Hosts far ahead
    of the last one feel that, from 7 hosts on where a backward pass takes twice as long as a forward pass, from 5 where
    both take equally long. Valid where ``backward_s`` is at least ``forward_s`` and micro-batches fill whole rounds of
    hosts, for any number of hosts. Not valid for host 0, where later rounds wait for the last host.
    """
    _check_pipeline(num_micro_batches, num_hosts, consumer, forward_s, backward_s)
    _check_count("num_chunks", num_chunks, 2)
    if num_micro_batches % num_hosts:
        raise ValueError(f"num_micro_batches must be a multiple of {num_hosts} hosts, not {num_micro_batches}")
    if backward_s < forward_s:
        raise ValueError(f"backward_s must be at least forward_s, {forward_s}, not {backward_s}")
    behind = num_hosts - 1 - consumer
    warm_up = 2 * behind + (num_chunks - 1) * num_hosts
    turn_s, wait_s = forward_s + backward_s, behind * (backward_s - forward_s)
    around = (num_chunks + 1) * num_hosts
    wait_around_s = max(behind * forward_s - (num_hosts - behind) * backward_s, 0.0)

    def offset_s(number: int) -> float:
        if number <= warm_up:
            return number * forward_s
        alternating_s = warm_up * forward_s + wait_s + (number - warm_up) * turn_s
        return alternating_s if number < around else alternating_s + wait_around_s

    return tuple(map(offset_s, range(num_micro_batches * num_chunks)))


def gathers(forward_s: Sequence[float], backward_s: Sequence[float]) -> tuple[float, ...]:
    """All-gathers of FSDP (ZeRO-3): forward in order of layers, then backward in reverse.

    Durations are per layer group, in order of layers. A gather is due when its layers are computed; prefetching makes
    it start earlier, not finish earlier.
    """
    _check_layers("forward_s", forward_s)
    _check_layers("backward_s", backward_s)
    if len(forward_s) != len(backward_s):
        raise ValueError(f"backward_s must have {len(forward_s)} durations as forward_s has, not {len(backward_s)}")
    return tuple(accumulate([*forward_s, *list(backward_s)[:0:-1]], initial=0.0))


def gathers_by_equation_7(num_layers: int, forward_s: float, backward_s: float) -> tuple[float, ...]:
    """All-gathers of FSDP with equal layers, literally by equation 7 of the paper.

    From the first backward gather on, they are later than those of ``gathers`` by the difference between a backward and
    a forward step. That gather follows the last forward step, but the equation adds a backward step.
    """
    _check_count("num_layers", num_layers)
    _check_seconds("forward_s", forward_s)
    _check_seconds("backward_s", backward_s)
    return tuple(accumulate([forward_s] * (num_layers - 1) + [backward_s] * num_layers, initial=0.0))


def scatters(backward_s: Sequence[float], buffers: int = 1, optimizer_wait_s: float = 0.0) -> tuple[float, ...]:
    """Reduce-scatters of FSDP (ZeRO-3) in order of the backward pass; durations are in order of layers.

    A scatter must finish when its input buffer is needed again, ``buffers`` steps after it was filled. The optimizer
    needs the last scatters ``optimizer_wait_s`` after the backward pass.
    """
    _check_layers("backward_s", backward_s)
    _check_count("buffers", buffers)
    _check_seconds("optimizer_wait_s", optimizer_wait_s)
    ready_s = list(accumulate(reversed(backward_s)))
    needed_s = [*ready_s[buffers:], *[ready_s[-1] + optimizer_wait_s] * min(buffers, len(ready_s))]
    return tuple(due_s - needed_s[0] for due_s in needed_s)


def parameters(forward_s: Sequence[float]) -> tuple[float, ...]:
    """Tensors that the next forward pass needs, in order of layers.

    These are the parameters that a sharded optimizer (ZeRO-1, ZeRO-2) gathers, or the gradients in frameworks that wait
    for each layer's gradients only in the next forward pass (ByteScheduler).
    """
    _check_layers("forward_s", forward_s)
    return tuple(accumulate(forward_s[:-1], initial=0.0))


def _check_pipeline(num_micro_batches: int, num_hosts: int, consumer: int, forward_s: float, backward_s: float) -> None:
    _check_count("num_micro_batches", num_micro_batches)
    _check_count("num_hosts", num_hosts, 2)
    if not 0 < consumer < num_hosts:
        raise ValueError(f"consumer must lie between 1 and {num_hosts - 1}, not {consumer}")
    _check_seconds("forward_s", forward_s)
    _check_seconds("backward_s", backward_s)


def _check_layers(name: str, seconds: Sequence[float]) -> None:
    if not seconds:
        raise ValueError(f"{name} must have a duration for every layer group, there is none")
    _check_seconds(name, *seconds)


def _check_count(name: str, count: int, least: int = 1) -> None:
    if count < least:
        raise ValueError(f"{name} must be at least {least}, not {count}")


def _check_seconds(name: str, *seconds: float) -> None:
    for value in seconds:
        if not 0 <= value < math.inf:
            raise ValueError(f"{name} must be finite and not negative, not {value}")
