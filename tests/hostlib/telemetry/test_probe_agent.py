"""The receiver of a host, and its exchanges with the controller."""

from dataclasses import replace
from ipaddress import IPv4Address

import pytest

from hostlib.telemetry.messages import answer_from_wire, exchange_to_wire
from hostlib.telemetry.probe_agent import MAX_REPORTS, ProbeAgent, ProbeAnswer
from hostlib.telemetry.prober import Pair, Target
from hostlib.telemetry.probes import Mark, Probe, probe_packet
from hostlib.telemetry.receiver import IDLE_NS, MAX_WAITING, Receiver
from hostlib.types import FiveTuple
from hostlib.wire import trainyard_pb2 as wire
from hostlib.wire.sequence_window import MAX_JUMP
from hostlib.wire.session_window import SESSION_SILENCE_S

SILENCE_NS = round(SESSION_SILENCE_S * 1e9)
HERE = IPv4Address("10.0.0.1")
THERE = IPv4Address("10.0.2.1")
FLOW = FiveTuple(THERE, HERE, 17, 50_000, 4791)


def packet(sequence: int, session: int = 1, flow: FiveTuple = FLOW) -> bytes:
    return probe_packet(Probe(flow, 0, Mark(session, sequence, 0, 0)))


def out_of_room(octets: bytes) -> bytes:
    """Return the probe with INT's M bit and without a UDP checksum."""
    changed = bytearray(octets)
    changed[26:28] = bytes(2)
    changed[20 + 8 + 4] |= 0b10
    return bytes(changed)


@pytest.fixture
def receiver() -> Receiver:
    return Receiver([HERE])


def test_what_comes_is_reported_in_order(receiver: Receiver) -> None:
    for sequence in (0, 2, 1):
        receiver.receive(packet(sequence), now_ns=10 * sequence)
    reports = receiver.take_reports(2) + receiver.take_reports(2)
    assert [(report.probe.mark.sequence, report.received_ns) for report in reports] == [(0, 0), (2, 20), (1, 10)]
    assert receiver.waiting == 0
    assert not receiver.dropped


def test_what_is_not_reported_is_counted(receiver: Receiver) -> None:
    receiver.receive(packet(0, session=2), 0)
    for refused in (
        packet(0, session=2),
        packet(1, session=1),
        packet(1 << 20, session=2),
        packet(1, flow=replace(FLOW, destination_address=THERE)),
        out_of_room(packet(1, session=2)),
        b"noise",
    ):
        receiver.receive(refused, 1)
    assert {reason.name: count for reason, count in receiver.dropped.items()} == {
        "REPEATED": 1,
        "OTHER_SESSION": 1,
        "JUMP": 1,
        "NOT_MINE": 1,
        "INCOMPLETE": 1,
        "CUT_SHORT": 1,
    }
    assert len(receiver.take_reports(9)) == 1


def test_a_session_that_begins_anew_and_a_pair_that_was_silent_count_from_the_start(receiver: Receiver) -> None:
    receiver.receive(packet(5), 0)
    receiver.receive(packet(0, session=2), SILENCE_NS)
    receiver.forget_idle(SILENCE_NS + IDLE_NS)
    receiver.receive(packet(0, session=1), SILENCE_NS + IDLE_NS)
    assert len(receiver.take_reports(9)) == 3


@pytest.mark.parametrize("forged", [packet(0, session=(1 << 32) - 1), packet(1 << 31), packet(2 + MAX_JUMP)])
def test_one_forged_probe_shuts_out_no_other_one(receiver: Receiver, forged: bytes) -> None:
    for sequence in range(3):
        receiver.receive(packet(sequence), sequence)
    receiver.receive(forged, 3)
    for sequence in range(3, 200):
        receiver.receive(packet(sequence), sequence)
    reported = {report.probe.mark.sequence for report in receiver.take_reports(MAX_WAITING)}
    assert reported >= set(range(200))


def test_without_a_controller_the_oldest_reports_go(receiver: Receiver) -> None:
    for sequence in range(MAX_WAITING + 2):
        receiver.receive(packet(sequence), sequence)
    assert receiver.waiting == MAX_WAITING
    assert receiver.take_reports(1)[0].received_ns == 2
    assert sum(receiver.dropped.values()) == 2


def test_an_agent_reports_when_it_was_told_to_or_has_much_to_say() -> None:
    agent = ProbeAgent("h0", {HERE: 1e9}, session=1)
    assert agent.next_s == 0.0
    first = agent.exchange(0.0)
    assert first is not None
    assert (first.number, first.reports, first.targets_version) == (0, (), 0)
    pair = Pair(HERE, THERE)
    agent.answered(ProbeAnswer(interval_s=1.0, targets_version=7, targets=(Target(pair),)), 0.0)
    assert agent.probes(0.0)[0].five_tuple.destination_address == THERE
    assert agent.exchange(0.5) is None
    agent.receive(packet(0), 0.5)
    second = agent.exchange(1.0)
    assert second is not None
    assert (second.number, second.targets_version, len(second.reports)) == (1, 7, 1)
    agent.answered(ProbeAnswer(1.0, 7, ()), 1.0)  # the same version: the same targets
    assert agent.probes(1.0)
    for sequence in range(1, MAX_REPORTS + 1):
        agent.receive(packet(sequence), 1.1)
    third = agent.exchange(1.1)
    assert third is not None
    assert len(third.reports) == MAX_REPORTS


def test_a_controller_that_does_not_answer_is_asked_again() -> None:
    agent = ProbeAgent("h0", {HERE: 1e9}, session=1)
    assert agent.exchange(0.0) is not None
    assert agent.exchange(0.01) is None
    assert agent.exchange(agent.next_s) is not None


def test_an_exchange_crosses_the_wire() -> None:
    agent = ProbeAgent("h0", {HERE: 1e9}, session=9)
    agent.receive(packet(3), 1.0)
    agent.receive(b"", 1.0)
    exchange = agent.exchange(2.5)
    assert exchange is not None
    message = exchange_to_wire(exchange, "token")
    [report] = message.reports
    assert (message.host, message.session, message.owner_token, report.age_ns) == ("h0", 9, "token", 1_500_000_000)
    assert (report.five_tuple.source_address, report.sequence) == (int(THERE), 3)
    assert [(dropped.reason, dropped.packets) for dropped in message.dropped] == [("packet ends inside a header", 1)]
    target = wire.ProbeTarget(
        source_address=int(HERE),
        destination_address=int(THERE),
        protocol=17,
        destination_port=4791,
        source_ports=[50_000],
        is_exploring=True,
    )
    answer = answer_from_wire(wire.ExchangeProbesResponse(interval_s=0.5, targets_version=2, targets=[target]))
    assert answer == ProbeAnswer(0.5, 2, (Target(Pair(HERE, THERE), (50_000,), is_exploring=True),))
