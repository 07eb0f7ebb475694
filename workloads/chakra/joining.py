"""The traces of all ranks become one graph: the parts of a collective are one task, and a send is one with its receive.

Ranks must agree. The n-th collective of a communicator and a tag is the same on all of its ranks, and the n-th send
from a rank to another belongs to the n-th receive with the same tag.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from workloads.chakra.rank_trace import Communication, RankTrace, Unit, Work
from workloads.chakra.wire import ChakraError, CollectiveType, NodeType


class TraceComputation(NamedTuple):
    """A rank computes; on its CPU no GPU is busy."""

    rank: int
    unit: Unit
    duration_s: float
    after: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TraceCollective:
    """A collective of ranks, or bytes from the first rank to the second where there is no ``type``.

    ``size_bytes`` is what each rank gives; ``root`` is the rank that others gather to, or get from. Where ranks of an
    all-to-all give different sizes, ``given_bytes`` has them in the order of ``ranks``, and ``size_bytes`` the largest.
    """

    type: CollectiveType | None
    ranks: tuple[int, ...]
    size_bytes: int
    root: int
    after: tuple[int, ...]
    given_bytes: tuple[int, ...] = ()


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
    collectives, receives = _matched(traces, everyone)
    return Trace(
        len(traces),
        tuple(_Ordering(traces, collectives, receives, everyone).tasks()),
        sum(trace.num_nodes for trace in traces),
        max(trace.delayed_s for trace in traces),
    )


def _matched(traces: Sequence[RankTrace], everyone: tuple[int, ...]) -> tuple[list[list[_Place]], dict[_Place, _Place]]:
    """Return the parts of each collective, and by receive the send that it is for."""
    parts: list[list[_Place]] = []
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
            outside = next((rank for rank in named if not 0 <= rank < len(traces)), None)
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
    return parts, found


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
                    f"{_where(traces, (first, number))}: this is collective number {position + 1}{name}, and rank"
                    f" {rank} has only {len(numbers)} of them ({traces[rank].path.name})"
                )
            places.append((rank, numbers[position]))
            _agree(traces, places[0], places[-1])
        together.append(places)
    return together


def _agree(traces: Sequence[RankTrace], one: _Place, other: _Place) -> None:
    """Check that two parts of one communication are of the same type and size."""
    first, second = _communication(traces, one), _communication(traces, other)
    may_differ = first.collective is second.collective is CollectiveType.ALL_TO_ALL
    for what, here, there in (
        ("type", first.collective, second.collective),
        ("size", first.size_bytes, second.size_bytes),
        ("root", first.root, second.root),
    ):
        if here != there and not (may_differ and what == "size"):
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
    """Puts tasks behind those that they wait for. Tasks that do nothing pass on what they wait for.

    Tasks of all ranks have numbers, rank by rank. A collective has the number of its first part.
    """

    def __init__(
        self,
        traces: Sequence[RankTrace],
        collectives: list[list[_Place]],
        receives: dict[_Place, _Place],
        everyone: tuple[int, ...],
    ) -> None:
        self._traces, self._everyone = traces, everyone
        self._first = [0, *accumulate(len(trace.tasks) for trace in traces)]
        self._parts = {self._number(places[0]): places for places in collectives}
        self._whole = {self._number(place): self._number(places[0]) for places in collectives for place in places}
        self._sends = {self._number(receive): self._number(send) for receive, send in receives.items()}
        self._done: list[tuple[int, ...] | None] = [None] * self._first[-1]
        self._tasks: list[TraceTask] = []
        self._next = [0] * len(traces)

    def tasks(self) -> list[TraceTask]:
        """Return the tasks. Raises ChakraError where some wait in a circle."""
        for trace in self._traces:
            while self._next[trace.rank] < len(trace.tasks):
                self._advance(trace.rank, len(trace.tasks))
                if self._next[trace.rank] < len(trace.tasks):
                    self._visit(trace.rank, self._first[trace.rank] + self._next[trace.rank])
        return self._tasks

    def _advance(self, rank: int, until: int) -> None:
        """Add computations of a rank in their order, up to a position or the first that cannot be added yet."""
        first, tasks, position = self._first[rank], self._traces[rank].tasks, self._next[rank]
        while position < until:
            if self._done[first + position] is None:
                task = tasks[position]
                if not (isinstance(task, Work) and self._is_added(rank, first + position, task)):
                    break
            position += 1
        self._next[rank] = position

    def _is_added(self, rank: int, number: int, work: Work) -> bool:
        """Add a computation, unless something that it waits for is not there yet."""
        first, all_done = self._first[rank], self._done
        after: tuple[int, ...] = ()
        for earlier in work.after:
            done = all_done[first + earlier]
            if done is None:
                return False
            after += done
        if len(after) > 1:
            after = tuple(dict.fromkeys(after))
        all_done[number] = (len(self._tasks),)
        self._tasks.append(TraceComputation(rank, work.unit, work.duration_s, after))
        return True

    def _number(self, place: _Place) -> int:
        return self._first[place[0]] + place[1]

    def _place(self, number: int) -> _Place:
        rank = bisect_right(self._first, number) - 1
        return rank, number - self._first[rank]

    def _visit(self, rank: int, number: int) -> None:
        """Add a task, and before it all that it waits for."""
        stack = [(rank, self._whole.get(number, number))]
        expanded: dict[int, None] = {}
        while stack:
            rank, number = stack[-1]
            if self._done[number] is not None:
                stack.pop()
                continue
            for part_rank, position in self._parts.get(number) or ():
                self._advance(part_rank, position)
            before = self._before(rank, number)
            missing = [earlier for earlier in before if self._done[earlier[1]] is None]
            if missing:
                expanded[number] = None
                for _, earlier in missing:
                    if earlier in expanded:
                        path = list(expanded)
                        raise ChakraError(self._circle(path[path.index(earlier) :]))
                stack += missing
                continue
            expanded.pop(number, None)
            self._add(number, before)
            stack.pop()

    def _before(self, rank: int, number: int) -> list[tuple[int, int]]:
        """Return what a task waits for, each with a rank that it is on."""
        places = self._parts.get(number) or [(rank, number - self._first[rank])]
        found = []
        for part_rank, position in places:
            first = self._first[part_rank]
            for earlier in self._traces[part_rank].tasks[position].after:
                found.append((part_rank, self._whole.get(first + earlier, first + earlier)))
        send = self._sends.get(number)
        if send is not None:
            found.append((self._place(send)[0], send))
        # A collective's first part has its number, and its rank.
        return [((self._parts[each][0][0] if each in self._parts else on), each) for on, each in found]

    def _add(self, number: int, before: Sequence[tuple[int, int]]) -> None:
        after = tuple(dict.fromkeys(task for _, earlier in before for task in self._done[earlier] or ()))
        task = self._task(number, after)
        done = after if task is None else (len(self._tasks),)
        if task is not None:
            self._tasks.append(task)
        for place in self._parts.get(number) or [self._place(number)]:
            self._done[self._number(place)] = done

    def _task(self, number: int, after: tuple[int, ...]) -> TraceTask | None:
        rank, position = self._place(number)
        task = self._traces[rank].tasks[position]
        if isinstance(task, Work):
            return TraceComputation(rank, task.unit, task.duration_s, after)
        ranks = task.ranks or self._everyone
        if task.type is NodeType.RECEIVE or task.collective is CollectiveType.BARRIER:
            return None
        sizes = {on: _communication(self._traces, (on, part)).size_bytes for on, part in self._parts.get(number) or ()}
        largest = max((task.size_bytes, *sizes.values()))
        if len(ranks) == 1 or not largest:
            return None
        root = ranks[0] if task.root is None else task.root
        given = tuple(sizes[each] for each in ranks) if len(set(sizes.values())) > 1 else ()
        return TraceCollective(task.collective, ranks, largest, root, after, given)

    def _waiting(self, number: int, earlier: int) -> _Place:
        """Return the part of a task that waits for another one; of a receive and its send, the receive."""
        parts = self._parts.get(number) or [self._place(number)]
        for rank, position in parts:
            first = self._first[rank]
            after = self._traces[rank].tasks[position].after
            if any(self._whole.get(first + each, first + each) == earlier for each in after):
                return rank, position
        return parts[0]

    def _circle(self, numbers: Sequence[int]) -> str:
        following = (*numbers[1:], numbers[0])
        parts = [self._waiting(number, earlier) for number, earlier in zip(numbers, following, strict=True)]
        places = [_where(self._traces, part) for part in parts]
        shown = "; ".join(places[:4]) + (f"; and {len(places) - 4} more" if len(places) > 4 else "")
        if len(places) == 1:
            return f"{shown}: waits for itself, given the order of nodes on each rank"
        return f"{shown}: they wait for each other in a circle, given the order of nodes on each rank"
