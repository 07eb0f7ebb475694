"""The findings of probes as messages for operators. Pure functions."""

from collections.abc import Iterable, Iterator, Mapping

from controller.api.messages import path_message
from controller.api.operations import operations_pb2 as wire
from controller.telemetry.link_measurements import LinkMeasurement
from controller.telemetry.path_table import Candidate, Freshness
from controller.telemetry.telemetry import STALE_AFTER_S, PairView, Telemetry
from topologies.fabric import Fabric, Nic

_FRESHNESS = {
    Freshness.FRESH: wire.FRESH,
    Freshness.STALE: wire.STALE,
    Freshness.UNSEEN: wire.UNSEEN,
    Freshness.BLACK_HOLE: wire.BLACK_HOLE,
}


def pair_states(pairs: Iterable[PairView], fabric: Fabric) -> Iterator[wire.PairState]:
    """The pairs of NICs that hosts probe, with their candidate paths."""
    for pair in pairs:
        yield wire.PairState(
            source=_name(pair.source),
            destination=_name(pair.destination),
            protocol=pair.protocol,
            destination_port=pair.destination_port,
            is_complete=pair.is_complete,
            received=pair.received,
            missing=pair.missing,
            late=pair.late,
            duplicates=pair.duplicates,
            candidates=[_candidate_state(candidate, fabric) for candidate in pair.candidates],
        )


def load_states(telemetry: Telemetry, fabric: Fabric, now_s: float) -> Iterator[wire.LoadState]:
    """The loads of links that switches have reported."""
    links, foreign_bps = telemetry.links, telemetry.foreign_loads.loads_bps(now_s)
    for link in fabric.links:
        measured = links.get(link.index)
        if measured is not None:
            yield wire.LoadState(
                source=link.source,
                destination=link.destination,
                parallel=fabric.parallel_index(link.index),
                rate_bps=link.rate_bps,
                load_bps=links.load_bps(link.index, measured.measured_s - STALE_AFTER_S),
                foreign_bps=foreign_bps.get(link.index),
                age_s=now_s - measured.measured_s,
                levels=_levels(measured),
            )


def drop_states(telemetry: Telemetry, discarded: Mapping[str, int]) -> Iterator[wire.DropState]:
    """The reports and the packets that the controller has dropped, then the packets that the agents of hosts have."""
    for drop, count in (+telemetry.rejected).items():  # an exchange of no reports drops none
        yield wire.DropState(reason=drop, count=count)
    for reason, packets in discarded.items():
        yield wire.DropState(reason=reason, count=packets)
    for host, dropped in sorted(telemetry.dropped_by_hosts.items()):
        for reason, packets in dropped.items():
            yield wire.DropState(host=host, reason=reason, count=packets)


def _candidate_state(candidate: Candidate, fabric: Fabric) -> wire.CandidateState:
    return wire.CandidateState(
        path=path_message(candidate.path, fabric),
        freshness=_FRESHNESS[candidate.freshness],
        source_ports=candidate.source_ports,
        age_s=candidate.age_s,
        loss=candidate.loss,
    )


def _levels(measured: LinkMeasurement) -> list[wire.LevelMeasurement]:
    measurements = zip(measured.latency_us, measured.queue_packets, strict=True)
    return [
        wire.LevelMeasurement(level=level, latency_us=latency_us, queue_packets=queue_packets)
        for level, (latency_us, queue_packets) in enumerate(measurements)
        if latency_us is not None or queue_packets is not None
    ]


def _name(nic: Nic) -> str:
    return f"{nic.host}.{nic.index}"
