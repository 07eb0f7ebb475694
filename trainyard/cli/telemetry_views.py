"""Tables of what probes have told, for ``trainyard show``."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from controller.api.operations import operations_pb2 as wire
from experiments.report.numbers import count, counted, percent, quantity
from trainyard.cli.layout import number_table, way


def candidates(states: Sequence[wire.PairState]) -> Table:
    """A row for every candidate path of every pair."""
    complete = sum(pair.is_complete for pair in states)
    columns = ("From", "To", "Path", "Is", "Source ports", "Age", "Loss")
    came, late, missing, twice = (
        sum(getattr(pair, name) for pair in states) for name in ("received", "late", "missing", "duplicates")
    )
    title = (
        f"{counted(len(states), 'pair')} of NICs, all paths known of {complete:,}\n{counted(came, 'probe')} came,"
        f" {late:,} of them late; missing: {missing:,}, told twice: {twice:,}"
    )
    table = number_table(title, *columns, left=("To", "Path", "Is", "Source ports"))
    for pair in states:
        for candidate in pair.candidates:
            table.add_row(
                Text(pair.source),
                Text(pair.destination),
                Text(way(candidate.path.nodes, candidate.path.links)),
                wire.Freshness.Name(candidate.freshness).lower().replace("_", " "),
                Text(", ".join(map(str, candidate.source_ports))),
                f"{candidate.age_s:.1f} s" if candidate.HasField("age_s") else count(None),
                percent(candidate.loss),
            )
    return table


def loads(states: Sequence[wire.LoadState]) -> Table:
    """A row for every link that switches have told of."""
    columns = ("Link", "Load", "Foreign", "Rate", "Age", "Latency by level", "Queue by level")
    table = number_table(counted(len(states), "link"), *columns, left=("Latency by level", "Queue by level"))
    for link in states:
        latencies = [f"{level.level}: {level.latency_us} µs" for level in link.levels if level.HasField("latency_us")]
        queues = [f"{level.level}: {level.queue_packets}" for level in link.levels if level.HasField("queue_packets")]
        table.add_row(
            Text(way((link.source, link.destination), (link.parallel,))),
            percent(link.load_bps / link.rate_bps) if link.HasField("load_bps") else count(None),
            percent(link.foreign_bps / link.rate_bps) if link.HasField("foreign_bps") else count(None),
            f"{quantity(link.rate_bps)}bit/s",
            f"{link.age_s:.1f} s",
            ", ".join(latencies),
            ", ".join(queues),
        )
    return table


def drops(states: Sequence[wire.DropState]) -> Table:
    """A row for every reason that a host or the controller had."""
    table = number_table("Probes not believed", "Dropped by", "Reason", "Count", left=("Reason",))
    for drop in states:
        table.add_row(Text(drop.host or "controller"), Text(drop.reason), count(drop.count))
    return table
