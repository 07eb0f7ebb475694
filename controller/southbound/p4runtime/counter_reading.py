"""Select and interpret the counters of switches: of ports by level, and of rules for whole jobs."""

from collections.abc import Container, Iterable, Iterator

from finsy import P4CounterEntry, P4DirectCounterEntry, P4TableEntry

from controller.southbound.p4runtime.entries import JOB_PRIORITY, JOB_TABLE
from topologies.fabric import Fabric

CounterEntry = P4CounterEntry | P4DirectCounterEntry

_LEVEL_COUNTER = "level_counter"
_LEVELS = 8

JOB_COUNTERS = (P4DirectCounterEntry(table_entry=P4TableEntry(JOB_TABLE)),)
"""Selects the counters of all rules for whole jobs, the operator's included."""


def level_counters(switch: str, level: int, fabric: Fabric) -> list[CounterEntry]:
    """Return what selects the counters of a level at the ports of a switch."""
    return [
        P4CounterEntry(_LEVEL_COUNTER, index=link.source_port * _LEVELS + level) for link in fabric.links_from[switch]
    ]


def link_counters(switch: str, links: Container[int], fabric: Fabric) -> list[CounterEntry]:
    """Return what selects the counters of all levels at the ports by which a switch sends over these links."""
    ports = [link.source_port for link in fabric.links_from[switch] if link.index in links]
    return [P4CounterEntry(_LEVEL_COUNTER, index=port * _LEVELS + level) for port in ports for level in range(_LEVELS)]


def bytes_of_links(counters: Iterable[CounterEntry], switch: str, fabric: Fabric) -> Iterator[tuple[int, int]]:
    """Return links and their byte counts, one for each counter of a level."""
    links = {link.source_port: link.index for link in fabric.links_from[switch]}
    for counter in counters:
        if isinstance(counter, P4CounterEntry) and counter.index is not None:
            yield links[counter.index // _LEVELS], counter.byte_count


def bytes_of_jobs(counters: Iterable[CounterEntry], fabric: Fabric) -> Iterator[tuple[tuple[int, str], int]]:
    """Return pairs of NIC address and host and byte counts, from the counters of rules for whole jobs.

    A host with several prefixes has several.
    """
    for counter in counters:
        match counter:
            case P4DirectCounterEntry(table_entry=P4TableEntry(priority=priority, match=dict() as match)) if (
                priority == JOB_PRIORITY
            ):
                host = fabric.host_by_prefix.get(match["destination_address"])
                if host is not None:
                    yield (match["source_address"][0], host), counter.byte_count
