"""Conversion between probe exchanges and the wire format's messages."""

from ipaddress import IPv4Address

from hostlib import checks
from hostlib.telemetry.probe_agent import ProbeAnswer, ProbeExchange
from hostlib.telemetry.prober import Pair, Target
from hostlib.telemetry.receiver import ProbeReport
from hostlib.wire import trainyard_pb2 as wire
from hostlib.wire.int_md import TCP_PROTOCOL, UDP_PROTOCOL
from hostlib.wire.methods import PROTOCOL_VERSION


def exchange_to_wire(exchange: ProbeExchange, owner_token: str) -> wire.ExchangeProbesRequest:
    """Convert an exchange."""
    return wire.ExchangeProbesRequest(
        protocol_version=PROTOCOL_VERSION,
        host=exchange.host,
        owner_token=owner_token,
        session=exchange.session,
        number=exchange.number,
        clock_ns=exchange.clock_ns,
        reports=[_report_to_wire(report, exchange.clock_ns) for report in exchange.reports],
        dropped=[wire.DroppedPackets(reason=reason, packets=count) for reason, count in exchange.dropped.items()],
        targets_version=exchange.targets_version,
    )


def _report_to_wire(report: ProbeReport, clock_ns: int) -> wire.ProbeReport:
    flow, mark = report.probe.five_tuple, report.probe.mark
    return wire.ProbeReport(
        five_tuple=wire.FiveTuple(
            source_address=int.from_bytes(flow.source_address.packed),
            destination_address=int.from_bytes(flow.destination_address.packed),
            protocol=flow.protocol,
            source_port=flow.source_port,
            destination_port=flow.destination_port,
        ),
        session=mark.session,
        sequence=mark.sequence,
        port_sequence=mark.port_sequence,
        sent_ns=mark.sent_ns,
        age_ns=max(0, clock_ns - report.received_ns),
        stack=report.probe.stack,
    )


def answer_from_wire(message: wire.ExchangeProbesResponse) -> ProbeAnswer:
    """Convert the controller's answer. Raises ValueError, naming the field, if nobody could act by it."""
    interval_s = checks.number("interval_s", message.interval_s)
    return ProbeAnswer(interval_s, message.targets_version, tuple(_target_from_wire(one) for one in message.targets))


def _target_from_wire(message: wire.ProbeTarget) -> Target:
    ends = IPv4Address(message.source_address), IPv4Address(message.destination_address)
    if message.protocol not in (UDP_PROTOCOL, TCP_PROTOCOL):
        raise ValueError(f"targets.protocol: expected UDP or TCP, got {message.protocol}")
    if max(message.source_ports, default=0) > checks.MAX_PORT or message.destination_port > checks.MAX_PORT:
        raise ValueError(f"targets: a port is above {checks.MAX_PORT}")
    pair = Pair(*ends, message.protocol, message.destination_port)
    return Target(pair, tuple(message.source_ports), message.is_exploring)
