"""Forward flows of pipelines that take forward and backward in turn; for the others see ``staggered``."""

from workloads.closed_forms.arguments import check_count, check_seconds


def one_forward_one_backward(
    num_micro_batches: int, num_hosts: int, consumer: int, forward_s: float, backward_s: float
) -> tuple[float, ...]:
    """Forward flows into a host, ``consumer`` counted from 0, whose times for one micro-batch these are.

    Until the first backward comes back, one after the other; then each stands behind a backward. Equal hosts. Raises
    ValueError, naming the argument, for what cannot be meant.
    """
    _check(num_micro_batches, num_hosts, consumer, forward_s, backward_s)
    ahead = num_hosts - consumer
    return tuple(
        number * forward_s if number < ahead else number * (forward_s + backward_s)
        for number in range(num_micro_batches)
    )


def interleaved(
    num_micro_batches: int, num_hosts: int, num_chunks: int, consumer: int, forward_s: float, backward_s: float
) -> tuple[float, ...]:
    """Forward flows into a host of an interleaved pipeline, whose times for one micro-batch on one chunk these are.

    As 1F1B, with the rounds of all chunks: warm-up, a wait for the first backward if that takes longer than a forward,
    then in turn. Equal hosts, ``backward_s`` at least ``forward_s``, micro-batches in whole rounds of hosts; not into
    host 0, where later rounds wait for the last host. Raises ValueError, naming the argument, for what cannot be meant.
    """
    _check(num_micro_batches, num_hosts, consumer, forward_s, backward_s)
    check_count("num_chunks", num_chunks, 2)
    if num_micro_batches % num_hosts:
        raise ValueError(f"num_micro_batches must be a multiple of {num_hosts} hosts, not {num_micro_batches}")
    if backward_s < forward_s:
        raise ValueError(f"backward_s must be at least forward_s, {forward_s}, not {backward_s}")
    behind = num_hosts - 1 - consumer
    warm_up = 2 * behind + (num_chunks - 1) * num_hosts
    turn_s, wait_s = forward_s + backward_s, behind * (backward_s - forward_s)
    return tuple(
        number * forward_s if number <= warm_up else warm_up * forward_s + wait_s + (number - warm_up) * turn_s
        for number in range(num_micro_batches * num_chunks)
    )


def _check(num_micro_batches: int, num_hosts: int, consumer: int, forward_s: float, backward_s: float) -> None:
    check_count("num_micro_batches", num_micro_batches)
    check_count("num_hosts", num_hosts, 2)
    if not 0 < consumer < num_hosts:
        raise ValueError(f"consumer must lie between 1 and {num_hosts - 1}, not {consumer}")
    check_seconds("forward_s", forward_s)
    check_seconds("backward_s", backward_s)
