"""Checks of a graph of hosts and switches: every problem that keeps it from being a fabric, with its location."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence

from topologies.addressing import MAX_HOSTS, MAX_NICS_PER_HOST, MAX_PORTS_PER_SWITCH
from topologies.problems import Problem

Ends = tuple[str, str]


def graph_problems(hosts: Sequence[str], switches: Sequence[str], links: Sequence[Ends | None]) -> list[Problem]:
    """Return all problems of a graph; of a link that is None, only the position is known.

    A valid graph has hosts and switches with unique names. Every link connects two known nodes, at least one of them a
    switch. Every host has a link, all switches reach each other, and there are enough addresses
    (``topologies.addressing``). Parallel links are allowed.
    """
    problems = [*_name_problems(hosts, switches), *_link_problems(hosts, switches, links)]
    if not problems and None not in links:
        joined = [ends for ends in links if ends is not None]
        problems = [*_unlinked_hosts(hosts, joined), *_unreachable_switches(switches, joined)]
    return problems


def _name_problems(hosts: Sequence[str], switches: Sequence[str]) -> Iterator[Problem]:
    if len(hosts) > MAX_HOSTS:
        yield Problem(("hosts",), f"expected at most {MAX_HOSTS:,} hosts", len(hosts))
    first: dict[str, str] = {}
    for key, names in (("hosts", hosts), ("switches", switches)):
        if not names:
            yield Problem((key,), "expected at least one name, there is none")
        for position, name in enumerate(names):
            place = f"{key}[{position}]"
            if first.setdefault(name, place) != place:
                yield Problem((key, position), f"expected another name than that of {first[name]}", name)


def _link_problems(hosts: Sequence[str], switches: Sequence[str], links: Sequence[Ends | None]) -> Iterator[Problem]:
    host_names, nodes = set(hosts), {*hosts, *switches}
    num_links: Counter[str] = Counter()
    for number, ends in enumerate(links):
        if ends is None:
            continue
        unknown = [side for side in (0, 1) if ends[side] not in nodes]
        for side in unknown:
            yield Problem(("links", number, "ends", side), "expected a host or switch of the topology", ends[side])
        if unknown:
            continue
        if ends[0] == ends[1]:
            yield Problem(("links", number, "ends", 1), "expected another node than the first end", ends[1])
        elif host_names.issuperset(ends):
            yield Problem(
                ("links", number, "ends"), f"expected a switch at one end, {ends[0]!r} and {ends[1]!r} are both hosts"
            )
        num_links.update(ends)
    for key, names, limit in (("hosts", hosts, MAX_NICS_PER_HOST), ("switches", switches, MAX_PORTS_PER_SWITCH)):
        for position, name in enumerate(names):
            if num_links[name] > limit:
                yield Problem((key, position), f"expected at most {limit} links, {name!r} has {num_links[name]:,}")


def _unlinked_hosts(hosts: Sequence[str], links: Sequence[Ends]) -> Iterator[Problem]:
    linked = {end for ends in links for end in ends}
    for position, host in enumerate(hosts):
        if host not in linked:
            yield Problem(("hosts", position), f"expected a link to host {host!r}, there is none")


def unreached_switches(switches: Sequence[str], links: Iterable[Ends]) -> list[str]:
    """Return the switches without a path to the first one, in order; hosts forward nothing."""
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
    return [switch for switch in switches if switch not in reached]


def _unreachable_switches(switches: Sequence[str], links: Sequence[Ends]) -> Iterator[Problem]:
    for switch in unreached_switches(switches, links):
        reason = f"switch {switch!r} has no path to switch {switches[0]!r}"
        yield Problem(("links",), f"expected a connected graph: {reason}")
