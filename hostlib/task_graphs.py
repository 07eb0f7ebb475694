"""Task graphs of common jobs, from their durations and the names of their flow groups.

A job gives the graph with its groups, or later with its profile:

    >>> from hostlib.task_graphs import data_parallel
    >>> graph = data_parallel(forward_s=0.1, backward_s=[0.1, 0.1], gradients=["late layers", "early layers"])

Where a group has several transfers, its flows are in their order, ``flows_per_transfer`` for each. All hosts compute
equally long. Each function raises ValueError, naming the argument, for a duration that is not above 0 and finite and
for numbers that do not fit each other. A test compares the graphs with those that simulated jobs play.
"""

import math
from collections.abc import Sequence

from hostlib.task_graph import Computation, Task, TaskGraph, Transfer

_After = tuple[int, ...]


def data_parallel(forward_s: float, backward_s: Sequence[float], gradients: Sequence[str]) -> TaskGraph:
    """Data parallelism with buckets: each is reduced once its part of the backward pass and the bucket before are done.

    ``backward_s`` and the flow groups ``gradients`` are by bucket, in order of the backward pass.
    """
    _check_seconds("forward_s", forward_s)
    _check_seconds("backward_s", *backward_s)
    _check_length("gradients", gradients, "backward_s", backward_s)
    builder = _Builder()
    computed = builder.compute(forward_s)
    reduced: _After = ()
    for bucket_s, group in zip(backward_s, gradients, strict=True):
        computed = builder.compute(bucket_s, computed)
        reduced = builder.send(group, after=computed + reduced)
    return builder.graph()


def sharded_optimizer(
    forward_s: Sequence[float],
    backward_s: Sequence[float],
    parameters: str,
    gradients: Sequence[str],
    flows_per_transfer: int = 1,
) -> TaskGraph:
    """A sharded optimizer (ZeRO-1, ZeRO-2): new parameters are gathered for the forward pass, gradients scattered.

    Durations are by bucket, in order of layers, and so are the gathers of the flow group ``parameters``. The flow
    groups ``gradients`` are in order of the backward pass.
    """
    _check_seconds("forward_s", *forward_s)
    _check_seconds("backward_s", *backward_s)
    _check_length("backward_s", backward_s, "forward_s", forward_s)
    _check_length("gradients", gradients, "forward_s", forward_s)
    builder = _Builder(flows_per_transfer)
    gathered: list[_After] = []
    for _ in forward_s:
        gathered.append(builder.send_next(parameters, gathered[-1] if gathered else ()))
    computed: _After = ()
    for bucket_s, needed in zip(forward_s, gathered, strict=True):
        computed = builder.compute(bucket_s, computed + needed)
    scattered: _After = ()
    for bucket_s, group in zip(reversed(backward_s), gradients, strict=True):
        computed = builder.compute(bucket_s, computed)
        scattered = builder.send(group, after=computed + scattered)
    return builder.graph()


def fully_sharded(
    forward_s: Sequence[float],
    backward_s: Sequence[float],
    gathers: str,
    scatters: str,
    flows_per_transfer: int = 1,
    prefetch: int = 1,
) -> TaskGraph:
    """FSDP (ZeRO-3), in the order of PyTorch's FSDP2.

    Durations are by layer group, in order of layers. The flow group ``gathers`` has the all-gathers of both passes,
    ``scatters`` the reduce-scatters. A gather is issued ``prefetch`` steps before its own; a step waits for the scatter
    two steps before, whose buffer it needs.
    """
    _check_seconds("forward_s", *forward_s)
    _check_seconds("backward_s", *backward_s)
    _check_length("backward_s", backward_s, "forward_s", forward_s)
    _check_count("prefetch", prefetch)
    builder = _Builder(flows_per_transfer)
    steps: list[_After] = []
    gathered: list[_After] = []
    scattered: list[_After] = []
    durations_s = [*forward_s, *reversed(backward_s)]
    for step, duration_s in enumerate(durations_s):
        while len(gathered) <= min(step + prefetch, len(durations_s) - 1):
            ahead = len(gathered) - prefetch
            after = (gathered[-1] if gathered else ()) + (steps[ahead - 1] if ahead > 0 else ())
            gathered.append(builder.send_next(gathers, after))
        buffer = step - len(forward_s) - 2
        after = (steps[-1] if steps else ()) + gathered[step] + (scattered[buffer] if buffer >= 0 else ())
        steps.append(builder.compute(duration_s, after))
        if step >= len(forward_s):
            scattered.append(builder.send_next(scatters, steps[-1] + (scattered[-1] if scattered else ())))
    return builder.graph()


def parameter_server(before_push_s: float, during_push_s: float, push: str, pull: str) -> TaskGraph:
    """Parameter servers: workers push gradients during the computation, and pull when that and all pushes are done."""
    _check_seconds("before_push_s", before_push_s)
    _check_seconds("during_push_s", during_push_s)
    builder = _Builder()
    before = builder.compute(before_push_s)
    rest = builder.compute(during_push_s, before)
    builder.send(pull, after=builder.send(push, after=before) + rest)
    return builder.graph()


def one_forward_one_backward(
    num_micro_batches: int,
    forward_s: float,
    backward_s: float,
    forward: Sequence[str],
    backward: Sequence[str],
    flows_per_transfer: int = 1,
) -> TaskGraph:
    """A 1F1B pipeline of equal hosts, all of them; durations are those of one micro-batch on one host.

    The flow groups ``forward`` lead into the second host, the third and so on, the groups ``backward`` into the first
    host, the second and so on. Each has the transfers of its micro-batches.
    """
    _check_count("num_micro_batches", num_micro_batches)
    _check_seconds("forward_s", forward_s)
    _check_seconds("backward_s", backward_s)
    _check_length("backward", backward, "forward", forward)
    last_host = len(forward)
    builder = _Builder(flows_per_transfer)
    done: list[_After] = [()] * (last_host + 1)
    left = [_slots(num_micro_batches, last_host + 1 - host) for host in range(last_host + 1)]
    arrived: dict[tuple[bool, int, int], _After] = {(True, 0, number): () for number in range(num_micro_batches)}
    arrived |= {(False, last_host, number): () for number in range(num_micro_batches)}
    while any(left):
        for host, slots in enumerate(left):
            if not slots or (slots[0][0], host, slots[0][1]) not in arrived:
                continue
            is_forward, number = slots.pop(0)
            needed = arrived[is_forward, host, number]
            done[host] = builder.compute(forward_s if is_forward else backward_s, done[host] + needed)
            if is_forward and host < last_host:
                arrived[True, host + 1, number] = builder.send_next(forward[host], done[host])
            elif not is_forward and host > 0:
                arrived[False, host - 1, number] = builder.send_next(backward[host - 1], done[host])
    return builder.graph()


def _slots(num_micro_batches: int, warm_up: int) -> list[tuple[bool, int]]:
    """The forward and backward steps of a host in its order, by micro-batch."""
    slots = [(True, number) for number in range(min(warm_up, num_micro_batches))]
    for number in range(num_micro_batches):
        slots.append((False, number))
        if number + warm_up < num_micro_batches:
            slots.append((True, number + warm_up))
    return slots


class _Builder:
    """Builds a graph task by task; each method returns the new task, for later ones to wait for."""

    def __init__(self, flows_per_transfer: int = 1) -> None:
        _check_count("flows_per_transfer", flows_per_transfer)
        self._flows_per_transfer = flows_per_transfer
        self._tasks: list[Task] = []
        self._num_sent: dict[str, int] = {}

    def compute(self, duration_s: float, after: _After = ()) -> _After:
        return self._put(Computation(duration_s, after))

    def send(self, group: str, after: _After) -> _After:
        """Add the transfer of a whole group."""
        return self._put(Transfer(group, after=after))

    def send_next(self, group: str, after: _After) -> _After:
        """Add the transfer of a group's next flows."""
        first = self._num_sent.get(group, 0)
        self._num_sent[group] = first + self._flows_per_transfer
        return self._put(Transfer(group, tuple(range(first, self._num_sent[group])), after))

    def graph(self) -> TaskGraph:
        return TaskGraph(tuple(self._tasks))

    def _put(self, task: Task) -> _After:
        self._tasks.append(task)
        return (len(self._tasks) - 1,)


def _check_seconds(name: str, *seconds: float) -> None:
    if not seconds:
        raise ValueError(f"{name} must have at least one duration, there is none")
    for value in seconds:
        if not 0 < value < math.inf:
            raise ValueError(f"{name} must be above 0 and finite, not {value}")


def _check_length(name: str, values: Sequence[object], as_name: str, as_values: Sequence[object]) -> None:
    if len(values) != len(as_values):
        raise ValueError(f"{name} must have {len(as_values)} items as {as_name} has, not {len(values)}")


def _check_count(name: str, count: int) -> None:
    if count < 1:
        raise ValueError(f"{name} must be at least 1, not {count}")
