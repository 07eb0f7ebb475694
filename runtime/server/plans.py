"""What every run of a lowered program needs of it, worked out once: its results, its hosts, and what goes together.

Schedulers work in milliseconds. So calls that follow each other on one island, and together take less than one, are
a **stretch**: one gang of all their devices, which is granted and reported as one. Where all of them run on the same
devices they may take several: none of these waits for another meanwhile. All devices follow the order of the program
within a stretch, as they follow the order of the grants beyond it. A call that makes a result of the program ends its
stretch, so whoever waits for that result waits for nothing else.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from runtime import messages
from runtime.arrays import ArraySpec
from runtime.lowering.assign import Layout
from runtime.lowering.subprograms import LoweredProgram
from runtime.program import Program, Value
from runtime.server.arguments import ArgumentPieces

_STRETCH_S = 1e-3
_ONE_GANG = 10
"""By how much a stretch may be longer if all of its calls run on the same devices: half of what is granted ahead."""
_numbers = count()


@dataclass(eq=False)
class NumberedFunction:
    """A function of a client, with the number under which hosts know it, and how long a shard is expected to take.

    ``is_known`` says whether that was stated or measured.
    """

    registered: messages.RegisterFunction
    seconds: float
    is_known: bool
    number: int = field(default_factory=lambda: next(_numbers))


@dataclass(eq=False, slots=True)
class RegisteredProgram:
    """A program of a client with its functions."""

    program: Program
    functions: tuple[NumberedFunction, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Stretch:
    """Calls from node ``first`` to node ``last``, on devices of one island.

    ``makers`` are the nodes outside of it, arguments too, whose values its calls take, and ``before`` those that run on
    some of its devices last before it. ``work`` is each call's function with the number of its devices.
    """

    first: int
    last: int
    island: str
    hosts: tuple[int, ...]
    devices: frozenset[int]
    makers: tuple[int, ...]
    before: tuple[int, ...]
    work: tuple[tuple[NumberedFunction, int], ...]

    @property
    def cost_s(self) -> float:
        """How long it is expected to occupy each of its devices, in the mean."""
        return sum(function.seconds * devices for function, devices in self.work) / len(self.devices)


@dataclass(frozen=True, eq=False, slots=True)
class PlannedResult:
    """A result of a program: what it is, how it lies, its node, and its bytes on all devices together."""

    spec: ArraySpec
    layout: Layout
    node: int
    size_bytes: int


class PlannedProgram:
    """A lowered program, as it runs again and again.

    ``arguments`` cuts those that come with a request. ``subprograms`` are those of the lowered program, each with the
    number under which hosts know it, and these hosts; ``number_of_host`` says it by host.
    """

    def __init__(
        self, lowered: LoweredProgram, registered: RegisteredProgram, gangs: Mapping[int, frozenset[int]]
    ) -> None:
        self.lowered = lowered
        self.program = lowered.program
        self.functions = registered.functions
        self.first_node = len(self.program.arguments)
        self.numbers = tuple(next(_numbers) for _ in lowered.subprograms)
        self.hosts = frozenset(lowered.subprogram_of_host)
        self.results = tuple(_planned(lowered, value) for value in self.program.results)
        self.results_bytes = sum(each.size_bytes for each in self.results)
        self.arguments = ArgumentPieces(lowered)
        self._gangs = gangs
        hosts: list[list[int]] = [[] for _ in self.numbers]
        for host, index in lowered.subprogram_of_host.items():
            hosts[index].append(host)
        self.number_of_host = {host: self.numbers[index] for host, index in lowered.subprogram_of_host.items()}
        self.subprograms = tuple(zip(self.numbers, lowered.subprograms, hosts, strict=True))
        self._calls = tuple(
            (self.function(placed.node), self.island(placed.node), gangs[placed.call.slice]) for placed in lowered.calls
        )
        self._before = tuple(_last_on_devices([devices for _, _, devices in self._calls], self.first_node))
        self._made = {each.node for each in self.results}
        self._stretches: dict[tuple[int, int], Stretch] = {}

    def function(self, node: int) -> NumberedFunction:
        """Return the function of a node."""
        return self.functions[self.program.call(node).function]

    def island(self, node: int) -> str:
        """Return the island of a node."""
        return self.lowered.placement(node).island

    def makers_of(self, node: int) -> list[int]:
        """Return the nodes whose values a node takes, arguments too."""
        return [each.value.node for each in self.program.call(node).inputs]

    def stretches(self, most_s: float = _STRETCH_S) -> list[Stretch]:
        """Return the stretches, in order; calls that are expected to take longer are alone."""
        found: list[Stretch] = []
        begin, total_s, begun_on, gang = 0, math.inf, "", frozenset[int]()
        is_one_gang = True
        for place, (function, island, devices) in enumerate(self._calls):
            seconds = function.seconds if function.is_known else math.inf
            is_one_gang = is_one_gang and devices == gang
            if total_s + seconds > most_s * (_ONE_GANG if is_one_gang else 1) or island != begun_on:
                if place:
                    found.append(self._stretch(begin, place))
                begin, total_s, begun_on, gang = place, 0.0, island, devices
                is_one_gang = True
            total_s = math.inf if self.first_node + place in self._made else total_s + seconds
        if self._calls:
            found.append(self._stretch(begin, len(self._calls)))
        return found

    def starts_s(self, need_s: float) -> dict[int, float]:
        """Return by when each node must start, if the results of the program are needed at ``need_s``.

        A value is needed when the first of those that take it must start.
        """
        needs_s: dict[int, float] = {}
        starts_s: dict[int, float] = {}
        for placed in reversed(self.lowered.calls):
            node = placed.node
            starts_s[node] = needs_s.get(node, need_s) - self.function(node).seconds
            for maker in self.makers_of(node):
                needs_s[maker] = min(needs_s.get(maker, need_s), starts_s[node])
        return starts_s

    def _stretch(self, begin: int, end: int) -> Stretch:
        found = self._stretches.get((begin, end))
        if found is None:
            found = self._stretches[begin, end] = self._made_of(begin, end)
        return found

    def _made_of(self, begin: int, end: int) -> Stretch:
        calls = self.lowered.calls[begin:end]
        nodes = [placed.node for placed in calls]
        hosts = dict.fromkeys(host for node in nodes for host in self.lowered.placement(node).shards_by_host)
        devices = frozenset().union(*(self._gangs[placed.call.slice] for placed in calls))
        makers = dict.fromkeys(maker for node in nodes for maker in self.makers_of(node) if maker < nodes[0])
        before = dict.fromkeys(each for row in self._before[begin:end] for each in row if each < nodes[0])
        work = tuple((self.function(node), len(self.lowered.placement(node).hosts)) for node in nodes)
        island = self.island(nodes[0])
        return Stretch(nodes[0], nodes[-1], island, tuple(hosts), devices, tuple(makers), tuple(before), work)


def _last_on_devices(gangs: Sequence[frozenset[int]], first_node: int) -> Iterator[list[int]]:
    """Yield for each call the calls before it that ran last on some of its devices, as nodes.

    Programs have few different gangs, so each call is compared with these, not with all calls.
    """
    last: dict[frozenset[int], int] = {}
    for node, devices in enumerate(gangs, first_node):
        yield [latest for gang, latest in last.items() if not gang.isdisjoint(devices)]
        last[devices] = node


def _planned(lowered: LoweredProgram, value: Value) -> PlannedResult:
    output = lowered.program.call(value.node).outputs[value.output]
    size_bytes = output.sharding.shard_spec(output.spec).size_bytes * output.sharding.shards
    return PlannedResult(output.spec, lowered.layout(value), value.node, size_bytes)
