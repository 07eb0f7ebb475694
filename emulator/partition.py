"""Divides a fabric's switches among cores, so that each has its share of the work and few cables lead to others.

A NIC belongs to the part of its switch. Grown greedily, parts are then improved by moving switches one at a time, and
keeping the best division of each pass (Fiduccia and Mattheyses, DAC 1982). Pods stay together that way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from topologies.fabric import Fabric, Link

_PASSES = 8
_PS_PER_S = 1e12


@dataclass(frozen=True)
class Partition:
    """Parts of a fabric, one for each core, by their switches.

    ``part`` has the part of every switch. ``lookahead_ps`` is the smallest delay of links between parts and of links
    to hosts.
    """

    fabric: Fabric
    cores: int
    part: Mapping[str, int]
    lookahead_ps: int

    def of_source(self, link: Link) -> int:
        """Return the part in which a link begins."""
        return self.part[link.source if link.source in self.part else link.destination]

    def of_destination(self, link: Link) -> int:
        """Return the part in which a link ends."""
        return self.part[link.destination if link.destination in self.part else link.source]

    def cuts(self, part: int) -> list[tuple[int, int]]:
        """Return the links that leave a part, with the part at the end of each."""
        ends = [(link.index, self.of_source(link), self.of_destination(link)) for link in self.fabric.links]
        return [(index, last) for index, first, last in ends if first == part != last]

    def host_links(self, part: int) -> list[int]:
        """Return the links of a part that lead to hosts."""
        to_hosts = [link for link in self.fabric.links if link.destination not in self.part]
        return [link.index for link in to_hosts if self.of_source(link) == part]


def partition(fabric: Fabric, cores: int) -> Partition:
    """Divide the switches of a fabric among so many cores; the same fabric is always divided in the same way.

    Raises ValueError if there are fewer switches than cores, or links without a delay leave no choice.
    """
    if cores < 1:
        raise ValueError(f"a fabric runs on one core or more, not {cores}")
    if cores == 1:
        return Partition(fabric, 1, dict.fromkeys(fabric.switches, 0), 0)
    for link in fabric.links:
        if link.destination not in fabric.switch_index and _delay_ps(link) == 0:
            raise ValueError(
                f"the link from {link.source} to host {link.destination} has no delay, so that no core could know "
                f"ahead when a transfer is complete; run the fabric on one core"
            )
    groups = _inseparable(fabric)
    if len(groups) < cores:
        together = next((group for group in groups if len(group) > 1), None)
        reason = f"; links without a delay join {', '.join(together[:4])}" if together else ""
        raise ValueError(
            f"{cores} cores need as many parts of the fabric, whose switches make {len(groups)} at most{reason}"
        )
    of_group = _parts(groups, fabric, cores)
    part = {switch: of_group[number] for number, group in enumerate(groups) for switch in group}
    found = Partition(fabric, cores, {switch: part[switch] for switch in fabric.switches}, 0)
    waits = [link for link in fabric.links if found.of_source(link) != found.of_destination(link)]
    waits += [link for link in fabric.links if link.destination not in part]
    return Partition(fabric, cores, found.part, min(map(_delay_ps, waits)))


def _delay_ps(link: Link) -> int:
    return round(link.delay_s * _PS_PER_S)


def _inseparable(fabric: Fabric) -> list[list[str]]:
    """Return the switches in groups that links without a delay join."""
    leader = {switch: switch for switch in fabric.switches}

    def of(switch: str) -> str:
        while leader[switch] != switch:
            switch = leader[switch]
        return switch

    for link in fabric.links:
        if _delay_ps(link) == 0 and link.source in leader and link.destination in leader:
            leader[of(link.destination)] = of(link.source)
    groups: dict[str, list[str]] = {}
    for switch in fabric.switches:
        groups.setdefault(of(switch), []).append(switch)
    return list(groups.values())


def _parts(groups: Sequence[Sequence[str]], fabric: Fabric, cores: int) -> list[int]:
    """Return the part of every group."""
    number = {switch: index for index, group in enumerate(groups) for switch in group}
    cables: list[dict[int, int]] = [{} for _ in groups]
    work = [0] * len(groups)
    for link in fabric.links:
        if link.source not in number:
            work[number[link.destination]] += 2  # the host's work belongs to it
            continue
        first = number[link.source]
        work[first] += 1
        if link.destination in number and number[link.destination] != first:
            cables[first][number[link.destination]] = cables[first].get(number[link.destination], 0) + 1
    part = _grown(work, cables, cores)
    for _ in range(_PASSES):
        if not _improve(part, work, cables, cores):
            break
    return part


def _grown(work: Sequence[int], cables: Sequence[Mapping[int, int]], cores: int) -> list[int]:
    """Return a first division: each part grows from one group, by the neighbour with the fewest cables to the rest."""
    part = [cores - 1] * len(work)
    free = set(range(len(work)))
    degree = [sum(others.values()) for others in cables]
    for number in range(cores - 1):
        target = sum(work[group] for group in free) / (cores - number)
        has, own = 0, dict.fromkeys(free, 0)
        while len(free) > cores - 1 - number:
            group = max(free, key=lambda group: (own[group] > 0, 2 * own[group] - degree[group], -group))
            if has and has + work[group] / 2 > target:
                break
            has += work[group]
            free.remove(group)
            part[group] = number
            for other, count in cables[group].items():
                if other in free:
                    own[other] += count
    return part


def _improve(part: list[int], work: Sequence[int], cables: Sequence[Mapping[int, int]], cores: int) -> bool:
    """Move every group at most once, the best move first; keep the best division on the way, True if that is a new one.

    No part may have more than the mean work and half of the largest group's, unless one had before.
    """
    loads, members = [0] * cores, [0] * cores
    for group, number in enumerate(part):
        loads[number] += work[group]
        members[number] += 1
    limit = max(sum(work) / cores + max(work) / 2, max(loads))
    to = [[0] * cores for _ in part]
    for group, others in enumerate(cables):
        for other, count in others.items():
            to[group][part[other]] += count
    moves: list[tuple[int, int, int]] = []
    gained, best, best_moves = 0, 0, 0
    free = set(range(len(part)))
    while free:
        choice = None
        for group in free:
            own = part[group]
            if members[own] == 1:
                continue
            for number in range(cores):
                if number == own or (loads[number] + work[group] > limit and loads[number] >= loads[own]):
                    continue
                rank = (to[group][number] - to[group][own], loads[own] - loads[number], -group)
                if choice is None or rank > choice[0]:
                    choice = rank, group, number
        if choice is None:
            break
        (gain, _, _), group, number = choice
        own = part[group]
        free.remove(group)
        part[group] = number
        loads[own], loads[number] = loads[own] - work[group], loads[number] + work[group]
        members[own], members[number] = members[own] - 1, members[number] + 1
        for other, count in cables[group].items():
            to[other][own] -= count
            to[other][number] += count
        moves.append((group, own, number))
        gained += gain
        if gained > best and max(loads) <= limit:
            best, best_moves = gained, len(moves)
    for group, own, _ in reversed(moves[best_moves:]):
        part[group] = own
    return best > 0
