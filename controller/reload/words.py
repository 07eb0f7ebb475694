"""What has changed between two fabrics, in words."""

from collections.abc import Iterable, Iterator

from controller.links.cable_words import cable_words
from controller.links.link_log import listed
from topologies.fabric import Fabric
from topologies.fabric_match import FabricMatch


def fabric_lines(match: FabricMatch) -> Iterator[str]:
    """Describe what goes, what comes, and what has other rates, one line for each."""
    before, after = match.before, match.after
    for kind, old, new in (("switches", before.switches, after.switches), ("hosts", before.hosts, after.hosts)):
        yield from _line(f"{kind} removed", [name for name in old if name not in set(new)])
        yield from _line(f"{kind} added", [name for name in new if name not in set(old)])
    removed = {cable: cable_words(before, 2 * cable) for cable in sorted(match.leaving)}
    added = {cable: cable_words(after, 2 * cable) for cable in sorted(match.coming)}
    # Only the numbers of ports tell these apart.
    alike = set(removed.values()) & set(added.values())
    for kind, fabric, cables in (("removed", before, removed), ("added", after, added)):
        yield from _line(
            f"cables {kind}",
            [words + (_numbers(fabric, cable) if words in alike else "") for cable, words in cables.items()],
        )
    others = [
        cable_words(after, 2 * new)
        for old, new in match.cables.items()
        if before.cables[old].rate_bps != after.cables[new].rate_bps
    ]
    yield from _line("cables with other rates", others)


def _numbers(fabric: Fabric, cable: int) -> str:
    """The numbers of the ports of switches at the ends of a cable."""
    ends = fabric.links[2 * cable]
    ports = ((ends.source, ends.source_port), (ends.destination, ends.destination_port))
    return f" ({listed(f'{node} port number {port}' for node, port in ports if node in fabric.switch_index)})"


def _line(what: str, names: Iterable[str]) -> Iterator[str]:
    if words := listed(names):
        yield f"topology: {what}: {words}"
