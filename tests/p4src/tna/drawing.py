"""Entries and packets, drawn from a seeded generator."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TypeVar

from tests.p4src.packets import IntMd, Ipv4, Protocol, ethernet
from tests.p4src.tna.entries import OWN_HASH_NUMBER, Entries, FlowChoice, Job, NextHop, Prefix
from tests.p4src.tna.laws import claims_too_much, flow_of, is_cut_short, tofino_choice, v1model_choice
from topologies.addressing import Address, FiveTuple

DATA_PORTS = range(1, 33)
CONTROLLER_PORTS = range(40, 44)
"""Ports that only packets of the controller leave by, whose lengths the two programs count differently."""

_SOURCES = range(0x0A_00_00_00, 0x0A_00_00_20)
_DESTINATIONS = range(0x0A_00_01_00, 0x0A_00_02_40)
_PORTS = (53, 179, 4000, 4791, 5000, 50000, 65535)
_PROTOCOLS = (Protocol.UDP, Protocol.TCP, Protocol.ICMP, 47)
_WORDS_ASKED = (1, 1, 1, 1, 2, 2, 2, 1, *[1] * 8)


Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Arrival:
    """A frame that comes in, and what it meets: clock readings in units of each program's clock, and its queue."""

    frame: bytes
    port: int
    is_from_controller: bool
    ingress_time: int
    egress_time: int
    depth: int


def draw_entries(random: Random) -> Entries:
    """What a controller might write, and a bit more."""
    hops = range(1, random.randint(3, 12))
    next_hops = {
        hop: NextHop(random.choice(DATA_PORTS), random.getrandbits(48), random.getrandbits(48)) for hop in hops
    }
    known = [*hops, 500]  # there is no such row
    routes: dict[Prefix, tuple[int, ...]] = {}
    for length in (32, 32, 32, 28, 26, 24, 24, 23, 0)[random.randint(0, 1) :][: random.randint(4, 9)]:
        address = random.choice(_DESTINATIONS) & (1 << length) - 1 << 32 - length
        members = random.sample(hops, random.randint(1, min(5, len(hops))))
        routes[Prefix(address, length)] = tuple(members) if random.random() < 0.9 else (random.choice(known),)
    flows = {}
    for _ in range(random.randint(0, 40)):
        protocol = random.choice(_PROTOCOLS)
        ports = _draw_ports(random) if protocol in (Protocol.UDP, Protocol.TCP) else (0, 0)
        source, destination = Address(random.choice(_SOURCES)), Address(random.choice(_DESTINATIONS))
        flow = FiveTuple(source, destination, protocol, *ports)
        choice = FlowChoice(random.choice([None, *known]), random.randrange(8))
        flows[flow] = replace(choice, level=None) if choice.next_hop and random.random() < 0.4 else choice
    return Entries(
        next_hops=next_hops,
        routes=routes,
        flows=flows,
        jobs=tuple(_draw_job(random, priority) for priority in range(1, random.randint(1, 8))),
        levels={dscp: random.randrange(8) for dscp in range(0, 64, 2) if random.random() < 0.7},
        port_trust=_draw_for_ports(random, 0.3, lambda: random.random() < 0.5),
        trusts_ports=random.random() < 0.7,
        classes={level: random.randrange(8) for level in range(8) if random.random() < 0.3},
        mark_from=_draw_for_ports(random, 0.5, lambda: random.choice((0, 1, 50, 100, 1000))),
        mark_from_default=random.choice((None, 10)),
        mtu_bytes=_draw_for_ports(random, 0.5, lambda: random.randint(60, 400)),
        mtu_default_bytes=random.choice((None, 200, 0xFFFF)),
        packet_in_bursts=_draw_for_ports(random, 0.4, lambda: random.randrange(4)),
        node_id=random.choice((None, random.getrandbits(32))),
        hash_multiplier=random.choice((OWN_HASH_NUMBER, *[random.getrandbits(32) | 1] * 3)),
        hash_salt=random.choice((OWN_HASH_NUMBER, *[random.getrandbits(32)] * 3)),
        slot_mask=random.choice((7, 63, 1023)),
        window_exponent=random.randint(8, 20),
    )


def _draw_for_ports(random: Random, share: float, draw: Callable[[], Value]) -> dict[int, Value]:
    return {port: draw() for port in DATA_PORTS if random.random() < share}


def _draw_ports(random: Random) -> tuple[int, int]:
    return random.choice(_PORTS), random.choice(_PORTS)


def _draw_job(random: Random, priority: int) -> Job:
    fields = (
        (random.choice(_SOURCES), 0xFFFFFFF8),
        (random.choice(_DESTINATIONS), 0xFFFFFFC0),
        (random.choice(_PROTOCOLS), 0xFF),
        (random.choice(_PORTS), 0xFFFF),
    )
    masked = [(value & mask, mask) if random.random() < 0.5 else (0, 0) for value, mask in fields]
    return Job(tuple(masked), priority, random.randrange(8))


class Arrivals:
    """Draws frames that meet the entries, one after the other in time."""

    def __init__(self, random: Random, entries: Entries) -> None:
        self._random, self._entries = random, entries
        self._flows = list(entries.flows)
        self._time = random.getrandbits(40)
        self._window = 1 << entries.window_exponent + 10

    def draw(self) -> Arrival:
        """The next; groups choose the same member for it by both laws, and v1model's program can tell what it is."""
        random = self._random
        if random.random() < 0.6:
            self._time += random.randrange(2000)
        elif random.random() < 0.5:
            self._time += random.randrange(self._window)
        else:
            self._time += random.choice((1, 2, 3)) * self._window
        latency = random.choice((0, random.randrange(1000), random.getrandbits(33)))
        depth = random.choice((0, 1, 9, 10, 49, 50, 99, 100, 1000, 0x7FFFF, random.getrandbits(19)))
        is_from_controller = random.random() < 0.02
        frame = self._packet_out() if is_from_controller else self._comparable()
        port = random.choice(DATA_PORTS)
        return Arrival(frame, port, is_from_controller, self._time, self._time + latency, depth)

    def _packet_out(self) -> bytes:
        random = self._random
        port = random.choice(CONTROLLER_PORTS)
        return (port << 7).to_bytes(2, "big") + random.randbytes(random.randrange(60))

    def _comparable(self) -> bytes:
        while True:
            frame = self._frame()
            if not is_cut_short(frame) and claims_too_much(frame):
                continue
            flow = flow_of(frame)
            hops = self._entries.route(flow.destination_address) if flow else ()
            if flow is None or not hops:
                return frame
            if v1model_choice(self._entries, flow, hops) == tofino_choice(self._entries, flow, hops):
                return frame

    def _frame(self) -> bytes:
        """Mostly whole IPv4 packets, and some of everything else."""
        random = self._random
        kind = random.random()
        if kind < 0.04:
            return ethernet(random.randbytes(random.randrange(60)), random.choice((0x0806, 0x88CC, 0x86DD, 0x8100)))
        if kind < 0.06:
            return random.randbytes(random.randrange(80))
        frame = self._ipv4()
        if kind < 0.10:
            return frame[: random.randrange(len(frame))]
        if kind < 0.14 and frame[23] == Protocol.UDP:
            damaged = bytearray(frame)
            length = int.from_bytes(frame[38:40], "big") + random.choice((-8, -4, -1, 1, 4, 40))
            damaged[38:40] = (length & 0xFFFF).to_bytes(2, "big")
            return bytes(damaged)
        if kind < 0.17:
            damaged = bytearray(frame)
            damaged[random.randrange(12, min(len(frame), 70))] = random.getrandbits(8)
            return bytes(damaged)
        return frame

    def _ipv4(self) -> bytes:
        random = self._random
        flow = random.choice(self._flows) if self._flows and random.random() < 0.4 else None
        source_port, destination_port = _draw_ports(random)
        packet = Ipv4(
            source=flow.source_address if flow else random.choice(_SOURCES),
            destination=flow.destination_address if flow else random.choice(_DESTINATIONS),
            protocol=flow.protocol if flow else random.choice(_PROTOCOLS),
            source_port=flow.source_port if flow else source_port,
            destination_port=flow.destination_port if flow else destination_port,
            dscp=random.getrandbits(6),
            ecn=random.getrandbits(2),
            time_to_live=random.choice((0, 1, 2, 2, 255, *[64] * 20)),
            payload=random.randbytes(random.choice((0, 1, 4, random.randrange(100), random.randrange(100)))),
            udp_checksum=random.random() < 0.7,
            checksum_error=random.choice((0, 1, 0x8000)) if random.random() < 0.05 else 0,
            l4_checksum_error=random.getrandbits(16) if random.random() < 0.1 else 0,
            destination_mac=random.getrandbits(48),
            source_mac=random.getrandbits(48),
        )
        shape = random.random()
        if shape < 0.55:
            packet = replace(packet, dscp=packet.dscp | 1, telemetry=self._telemetry())
            if packet.protocol not in (Protocol.UDP, Protocol.TCP):
                packet = replace(packet, protocol=random.choice((Protocol.UDP, Protocol.TCP)))
        elif shape < 0.62:
            packet = replace(packet, options=random.randbytes(4 * random.randint(1, 10)))
        elif shape < 0.67:
            packet = replace(packet, flags=random.getrandbits(3), fragment_offset=random.choice((0, 1, 100, 0x1FFF)))
        elif shape < 0.70:
            packet = replace(packet, tcp_options=random.randbytes(4 * random.randint(0, 3)))
        return packet.octets()

    def _telemetry(self) -> IntMd:
        random = self._random
        instructions = random.choice((random.getrandbits(16), random.getrandbits(8) << 8, 0xFF00, 0xFD00))
        asked = sum(words for bit, words in enumerate(_WORDS_ASKED) if instructions & 0x8000 >> bit)
        stack_words = random.choice((0, 0, random.randrange(20), random.randrange(60)))
        flawed = random.random() < 0.1
        return IntMd(
            instructions=instructions,
            hop_words=min(max(asked + random.choice((0, 0, 0, 1, -1, random.randrange(20))), 0), 31),
            remaining_hop_count=random.choice((0, 1, 8, 255)),
            stack=random.randbytes(4 * stack_words),
            hop_count_exceeded=random.random() < 0.1,
            mtu_exceeded=random.random() < 0.1,
            domain_id=random.getrandbits(16),
            type=random.choice((1, 2)) if flawed else 1,
            next_protocol_type=random.choice((0, 1)) if flawed else 0,
            version=random.choice((2, 1, 3)) if flawed else 2,
            length=self._flawed_length(stack_words) if random.random() < 0.1 else None,
        )

    def _flawed_length(self, stack_words: int) -> int:
        choices: Sequence[int] = (0, 2, 3, stack_words + 2, stack_words + 4, 250, 255)
        return self._random.choice(choices)
