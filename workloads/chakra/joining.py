"""The traces of all ranks become one graph: the parts of a collective are one task, and a send is one with its receive.

Ranks must agree. The n-th collective of a communicator and a tag is the same on all of its ranks, and the n-th send
from a rank to another belongs to the n-th receive with the same tag.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from workloads.chakra.rank_trace import Communication, RankTrace, Unit, Work
from workloads.chakra.wire import ChakraError, CollectiveType, NodeType


@dataclass(frozen=True, slots=True)
class TraceComputation:
    """A rank computes; on its CPU no GPU is busy."""

    rank: int
    unit: Unit
    duration_s: float
    after: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TraceCollective:
    """A collective of ranks, or bytes from the first rank to the second where there is no ``type``.

    ``size_bytes`` is what each rank gives; ``root`` is the rank that others gather to, or get from.
    """

    type: CollectiveType | None
    ranks: tuple[int, ...]
    size_bytes: int
    root: int
    after: tuple[int, ...]


TraceTask = TraceComputation | TraceCollective


@dataclass(frozen=True, slots=True)
class Trace:
    """What all ranks do in an iteration, each task behind those that it waits for.

    ``num_nodes`` of the files became these tasks. Merging makes something wait up to ``delayed_s`` longer than in the
    trace; 0 means that nothing is lost.
    """

    num_ranks: int
    tasks: tuple[TraceTask, ...]
    num_nodes: int
    delayed_s: float


_Place = tuple[int, int]
"""A rank, and a task in its trace."""


def joined(traces: Sequence[RankTrace]) -> Trace:
    """Join the traces of ranks 0, 1 and so on. Raises ChakraError where they disagree, or wait in a circle."""
    everyone = tuple(range(len(traces)))
    parts: list[list[_Place]] = []
    receives = _matched(traces, everyone, parts)
    part_of = {place: number for number, places in enumerate(parts) for place in places}
    for trace in traces:
        for number in range(len(trace.tasks)):
            if (trace.rank, number) not in part_of:
                part_of[trace.rank, number] = len(parts)
                parts.append([(trace.rank, number)])
    return Trace(
        len(traces),
        tuple(_Ordering(traces, parts, part_of, receives, everyone).tasks()),
        sum(trace.num_nodes for trace in traces),
        max(trace.delayed_s for trace in traces),
    )


def _matched(traces: Sequence[RankTrace], everyone: tuple[int, ...], parts: list[list[_Place]]) -> dict[_Place, _Place]:
    """Add the parts of collectives and the sends, and return by receive the send that it is for."""
    collectives: defaultdict[tuple[tuple[int, ...], str, int], dict[int, list[int]]] = defaultdict(dict)
    sides: dict[NodeType, defaultdict[tuple[tuple[int, ...], int], list[_Place]]] = {
        NodeType.SEND: defaultdict(list),
        NodeType.RECEIVE: defaultdict(list),
    }
    for trace in traces:
        for number, task in enumerate(trace.tasks):
            if not isinstance(task, Communication):
                continue
            ranks = task.ranks or everyone
            named = ranks if task.root is None else (*ranks, task.root)
            outside = next((rank for rank in named if rank >= len(traces)), None)
            if outside is not None:
                raise ChakraError(f"{trace.where(task.node)}: names rank {outside}; there are {len(traces)} ranks")
            if task.type is NodeType.COLLECTIVE:
                key = (ranks, task.communicator, task.tag)
                collectives[key].setdefault(trace.rank, []).append(number)
            else:
                sides[task.type][ranks, task.tag].append((trace.rank, number))
    for (ranks, communicator, _), by_rank in collectives.items():
        parts += _same_everywhere(traces, ranks, communicator, by_rank)
    sends, receives = sides[NodeType.SEND], sides[NodeType.RECEIVE]
    found: dict[_Place, _Place] = {}
    for pair in sends.keys() | receives.keys():
        sent, received = sends.get(pair, []), receives.get(pair, [])
        for send, receive in zip(sent, received, strict=False):
            _agree(traces, send, receive)
            found[receive] = send
        if len(sent) != len(received):
            alone = (sent + received)[0] if not (sent and received) else max(sent, received, key=len)[-1]
            other = "receive" if len(sent) > len(received) else "send"
            raise ChakraError(f"{_where(traces, alone)}: rank {_other(pair[0], alone[0])} has no {other} for it")
    parts += [[place] for places in sends.values() for place in places]
    return found


def _same_everywhere(
    traces: Sequence[RankTrace], ranks: tuple[int, ...], communicator: str, by_rank: dict[int, list[int]]
) -> list[list[_Place]]:
    first = max(by_rank, key=lambda rank: (len(by_rank[rank]), -rank))
    together = []
    for position, number in enumerate(by_rank[first]):
        places = [(first, number)]
        for rank in ranks:
            if rank == first:
                continue
            numbers = by_rank.get(rank, [])
            if position >= len(numbers):
                name = f" of communicator {communicator!r}" if communicator else ""
                raise ChakraError(
                    f"{_where(traces, (first, number))}: this is collective {position}{name}, and rank {rank} has"
                    f" {len(numbers)} of them ({traces[rank].path.name})"
                )
            places.append((rank, numbers[position]))
            _agree(traces, places[0], places[-1])
        together.append(places)
    return together


def _agree(traces: Sequence[RankTrace], one: _Place, other: _Place) -> None:
    """Check that two parts of one communication are of the same type and size."""
    first, second = _communication(traces, one), _communication(traces, other)
    for what, here, there in (
        ("type", first.collective, second.collective),
        ("size", first.size_bytes, second.size_bytes),
        ("root", first.root, second.root),
    ):
        if here != there:
            shown = [value.name if isinstance(value, CollectiveType) else str(value) for value in (here, there)]
            raise ChakraError(
                f"{_where(traces, other)}: its {what} is {shown[1]}, but {shown[0]} on rank {one[0]}, node {first.node}"
            )


def _communication(traces: Sequence[RankTrace], place: _Place) -> Communication:
    task = traces[place[0]].tasks[place[1]]
    assert isinstance(task, Communication)
    return task


def _where(traces: Sequence[RankTrace], place: _Place) -> str:
    return traces[place[0]].where(traces[place[0]].tasks[place[1]].node)


def _other(pair: tuple[int, ...], rank: int) -> int:
    return next(end for end in pair if end != rank)


class _Ordering:
    """Puts tasks behind those that they wait for. Tasks that do nothing pass on what they wait for."""

    def __init__(
        self,
        traces: Sequence[RankTrace],
        parts: list[list[_Place]],
        part_of: dict[_Place, int],
        receives: dict[_Place, _Place],
        everyone: tuple[int, ...],
    ) -> None:
        self._traces, self._parts, self._everyone = traces, parts, everyone
        self._before = [
            tuple(
                dict.fromkeys(
                    [part_of[rank, before] for rank, number in places for before in traces[rank].tasks[number].after]
                    + [part_of[receives[place]] for place in places if place in receives]
                )
            )
            for places in parts
        ]

    def tasks(self) -> list[TraceTask]:
        """Return the tasks. Raises ChakraError where some wait in a circle."""
        waiting = list(map(len, self._before))
        behind: list[list[int]] = [[] for _ in self._parts]
        for part, before in enumerate(self._before):
            for earlier in before:
                behind[earlier].append(part)
        ready = [part for part, count in enumerate(waiting) if not count]
        done: list[tuple[int, ...]] = [()] * len(self._parts)
        tasks: list[TraceTask] = []
        for part in ready:
            after = tuple(dict.fromkeys(task for earlier in self._before[part] for task in done[earlier]))
            task = self._task(part, after)
            if task is None:
                done[part] = after
            else:
                done[part] = (len(tasks),)
                tasks.append(task)
            for later in behind[part]:
                waiting[later] -= 1
                if not waiting[later]:
                    ready.append(later)
        if len(ready) < len(self._parts):
            raise ChakraError(self._circle(waiting))
        return tasks

    def _task(self, part: int, after: tuple[int, ...]) -> TraceTask | None:
        rank, number = self._parts[part][0]
        task = self._traces[rank].tasks[number]
        if isinstance(task, Work):
            return TraceComputation(rank, task.unit, task.duration_s, after)
        ranks = task.ranks or self._everyone
        if task.type is NodeType.RECEIVE or task.collective is CollectiveType.BARRIER:
            return None
        if len(ranks) == 1 or not task.size_bytes:
            return None
        return TraceCollective(
            task.collective, ranks, task.size_bytes, ranks[0] if task.root is None else task.root, after
        )

    def _circle(self, waiting: list[int]) -> str:
        part = next(part for part, count in enumerate(waiting) if count)
        seen: list[int] = []
        while part not in seen:
            seen.append(part)
            part = next(earlier for earlier in self._before[part] if waiting[earlier])
        places = [_where(self._traces, self._parts[each][0]) for each in seen[seen.index(part) :]]
        shown = "; ".join(places[:4]) + (f"; and {len(places) - 4} more" if len(places) > 4 else "")
        return f"{shown}: they wait for each other in a circle, given the order of nodes on each rank"
