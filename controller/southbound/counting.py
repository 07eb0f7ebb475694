"""Counts what switches are asked for in the metrics."""

from collections.abc import Iterable

from controller.metrics import DRIFTED, SWITCHES, UPDATES
from controller.southbound.write_outcomes import SwitchWrite, WriteOutcome


def count_from_zero(switches: Iterable[str]) -> None:
    """Have a count of drift for each switch, so that Prometheus sees the first one rise."""
    for switch in switches:
        DRIFTED.labels(SWITCHES.of(switch))


def count_write(write: SwitchWrite) -> None:
    """Count a request to a switch, or that it has drifted."""
    switch = SWITCHES.of(write.switch)
    counts = {"inserted": write.inserted, "modified": write.modified, "deleted": write.deleted}
    if write.outcome is WriteOutcome.DRIFTED:
        DRIFTED.labels(switch).inc(sum(counts.values()))
        return
    for kind, entries in counts.items():
        if entries:
            UPDATES.labels(switch, kind, write.outcome).inc(entries)
