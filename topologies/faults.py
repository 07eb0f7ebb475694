"""What can be wrong with a graph of hosts and switches, found all at once and each with its place."""

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from topologies.addressing import MAX_HOSTS, MAX_NICS_PER_HOST, MAX_PORTS_PER_SWITCH

Ends = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong at a place of a topology.

    ``location`` is keys and positions, ``expected`` says what should be there, ``given`` is the value that is, or None
    where no single value is at fault.
    """

    location: tuple[str | int, ...]
    expected: str
    given: str | float | None = None

    def __str__(self) -> str:
        place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.location).lstrip(".")
        return f"{place}: {self.expected}" + ("" if self.given is None else f", got {self.given!r}")


def find_faults(hosts: Sequence[str], switches: Sequence[str], links: Sequence[Ends | None]) -> list[Fault]:
    """Everything for which a graph is not a fabric; of a link that is None only the place is known.

    There are hosts and switches, and their names are unique; a link joins two known nodes, of which at least one is a
    switch; every host has a link; all switches reach each other; nothing outgrows its addresses
    (``topologies.addressing``). More than one link between the same ends is no fault.
    """
    faults = [*_faults_of_names(hosts, switches), *_faults_of_links(hosts, switches, links)]
    if not faults and None not in links:
        joined = [ends for ends in links if ends is not None]
        faults = [*_hosts_without_links(hosts, joined), *_separate_switches(switches, joined)]
    return faults


def _faults_of_names(hosts: Sequence[str], switches: Sequence[str]) -> Iterator[Fault]:
    if len(hosts) > MAX_HOSTS:
        yield Fault(("hosts",), f"expected at most {MAX_HOSTS:,} hosts", len(hosts))
    first: dict[str, str] = {}
    for key, names in (("hosts", hosts), ("switches", switches)):
        if not names:
            yield Fault((key,), "expected at least one name, there is none")
        for position, name in enumerate(names):
            place = f"{key}[{position}]"
            if first.setdefault(name, place) != place:
                yield Fault((key, position), f"expected another name than that of {first[name]}", name)


def _faults_of_links(hosts: Sequence[str], switches: Sequence[str], links: Sequence[Ends | None]) -> Iterator[Fault]:
    host_names, nodes = set(hosts), {*hosts, *switches}
    num_links: Counter[str] = Counter()
    for number, ends in enumerate(links):
        if ends is None:
            continue
        unknown = [side for side in (0, 1) if ends[side] not in nodes]
        for side in unknown:
            yield Fault(("links", number, "ends", side), "expected a host or switch of the topology", ends[side])
        if unknown:
            continue
        if ends[0] == ends[1]:
            yield Fault(("links", number, "ends", 1), "expected another node than the first end", ends[1])
        elif host_names.issuperset(ends):
            yield Fault(
                ("links", number, "ends"), f"expected a switch at one end, {ends[0]!r} and {ends[1]!r} are both hosts"
            )
        num_links.update(ends)
    for key, names, limit in (("hosts", hosts, MAX_NICS_PER_HOST), ("switches", switches, MAX_PORTS_PER_SWITCH)):
        for position, name in enumerate(names):
            if num_links[name] > limit:
                yield Fault((key, position), f"expected at most {limit} links, {name!r} has {num_links[name]:,}")


def _hosts_without_links(hosts: Sequence[str], links: Sequence[Ends]) -> Iterator[Fault]:
    linked = {end for ends in links for end in ends}
    for position, host in enumerate(hosts):
        if host not in linked:
            yield Fault(("hosts", position), f"expected a link to host {host!r}, there is none")


def _separate_switches(switches: Sequence[str], links: Sequence[Ends]) -> Iterator[Fault]:
    neighbours: dict[str, list[str]] = {switch: [] for switch in switches}
    for first, second in links:
        if first in neighbours and second in neighbours:
            neighbours[first].append(second)
            neighbours[second].append(first)
    reached, queue = set(switches[:1]), deque(switches[:1])
    while queue:
        for switch in neighbours[queue.popleft()]:
            if switch not in reached:
                reached.add(switch)
                queue.append(switch)
    for switch in switches:
        if switch not in reached:
            reason = f"switch {switch!r} has no path to switch {switches[0]!r}"
            yield Fault(("links",), f"expected a connected graph: {reason}")
