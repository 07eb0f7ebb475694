"""Random sessions: entries in every table, and packets that meet them or just miss."""

import struct
from random import Random

from emulator.entries import ActionCall, EntryKey, FieldMatch, GroupReference, MemberReference
from emulator.meters import MeterRates
from emulator.switch import EmulatedSwitch
from tests.bmv2.emulated import Emulator, entries_of
from tests.bmv2.session import CPU_PORT, Packet, Session
from tests.emulator.fabrics import exact, prefix
from tests.p4src.one_switch import HOST_MAC, SWITCH_MAC
from tests.p4src.packets import Instruction, IntMd, Ipv4, Protocol, ethernet

PACKETS_PER_SESSION = 24

_PORTS = (1, 2, 3)
_HOPS = (1, 2, 3, 4, 5)
_MISSING_HOP = 6
_ADDRESSES = (0x0A00_0001, 0x0A00_0002, 0x0A00_0103, 0x0A01_0004, 0x0B00_0005, 0xC0A8_0001)
_PROTOCOLS = (Protocol.UDP, Protocol.TCP, Protocol.ICMP)
_L4_PORTS = (0, 4000, 4791, 5000, 0xFFFF)
_LEVELS = range(8)
_ADDRESS_BITS, _WORD = 32, 0xFFFF_FFFF
_ETHER_TYPES = (0x0806, 0x86DD, 0x88CC)
_FLOWS, _JOBS = 20, 6


def sample(emulator: Emulator, seed: int) -> Session:
    """The session of a seed; the emulator only holds its entries, and is emptied."""
    random = Random(seed)
    emulator.clear()
    _fill(emulator.control, random)
    return Session(entries_of(emulator.control), tuple(_arrival(random) for _ in range(PACKETS_PER_SESSION)))


# ---- entries ---------------------------------------------------------------------------------------------------------


def _fill(switch: EmulatedSwitch, random: Random) -> None:
    _fill_routing(switch, random)
    _fill_classification(switch, random)
    for port in _PORTS:
        if random.random() < 0.4:
            depth = random.choice((0, 1, 0x7_FFFF))
            switch.insert("egress.ecn", exact((port, 9)), ActionCall("egress.mark_from", (depth,)))
        if random.random() < 0.4:
            switch.insert("egress.mtu", exact((port, 9)), ActionCall("egress.set_mtu", (random.randrange(60, 400),)))
        if random.random() < 0.4:
            # One packet and no more, however long the session lasts: no two switches agree on times.
            switch.meter("ingress.packet_in_meter").set(port, MeterRates(0, 0, peak_rate=0, peak_burst=1))
    for level in random.sample(_LEVELS, 2):
        action = ActionCall("ingress.set_class", (random.choice(_LEVELS),))
        switch.insert("ingress.traffic_class", exact((level, 3)), action)
    defaults = {
        "ingress.node": ActionCall("ingress.set_node", (random.getrandbits(32) | 1,)),
        "ingress.port": ActionCall("ingress.distrust"),
        "egress.node_id": ActionCall("egress.set_node_id", (random.getrandbits(32),)),
        "egress.mtu": ActionCall("egress.set_mtu", (random.randrange(60, 2000),)),
        "egress.ecn": ActionCall("egress.mark_from", (0,)),
        "egress.utilisation_window": ActionCall("egress.set_window", (random.randrange(32),)),
    }
    for table, action in defaults.items():
        if random.random() < 0.4:
            switch.set_default(table, action)


def _fill_routing(switch: EmulatedSwitch, random: Random) -> None:
    for hop in _HOPS:
        port = random.choice(_PORTS)
        forward = ActionCall("ingress.forward", (port, SWITCH_MAC + hop, HOST_MAC + hop))
        switch.insert("ingress.next_hop", exact((hop, 16)), forward)
        chosen = _MISSING_HOP if random.random() < 0.05 else hop
        switch.insert_member("ingress.ecmp", hop, ActionCall("ingress.set_next_hop", (chosen,)))
    groups = (1, 2, 3)
    for group in groups:
        members = tuple(sorted(random.sample(_HOPS, random.randint(1, len(_HOPS)))))
        switch.insert_group("ingress.ecmp", group, members, max_size=0)
    choices = [MemberReference(hop) for hop in _HOPS] + [GroupReference(group) for group in groups]
    lengths = [random.choice((1, 8, 16, 24, 31, _ADDRESS_BITS)) for _ in range(2 * len(_ADDRESSES))]
    for key in {prefix(random.choice(_ADDRESSES), length): None for length in lengths}:
        switch.insert("ingress.routing", key, random.choice(choices))


def _fill_classification(switch: EmulatedSwitch, random: Random) -> None:
    def level() -> int:
        return random.choice(_LEVELS)

    # Even ones only: an odd one never matches in P4, but BMv2 drops the bit that the key leaves out of an entry too.
    for dscp in random.sample(range(0, 64, 2), 24):
        switch.insert("ingress.level", exact((dscp, 6)), ActionCall("ingress.set_level", (level(),)))
    for port in _PORTS:
        if random.random() < 0.4:
            action = random.choice(("ingress.trust", "ingress.distrust"))
            switch.insert("ingress.port", exact((port, 9)), ActionCall(action))
    for key in {_flow(random): None for _ in range(_FLOWS)}:
        hop = random.choice((*_HOPS * 3, _MISSING_HOP))
        steer, prioritise = ActionCall("ingress.steer", (hop,)), ActionCall("ingress.prioritise", (level(),))
        both = ActionCall("ingress.steer_and_prioritise", (hop, level()))
        switch.insert("ingress.flow", key, random.choice((steer, prioritise, both)))
    for priority in random.sample(range(1, 100), _JOBS):
        fields = (random.choice(_ADDRESSES), _WORD), (random.choice(_ADDRESSES), _WORD)
        others = (int(random.choice(_PROTOCOLS)), 0xFF), (random.choice(_L4_PORTS), 0xFFFF)
        match = []
        for value, full in (*fields, *others):
            mask = random.choice((0, 0, full, full & ~0xFF, random.getrandbits(32) & full))
            match.append(FieldMatch(value & mask, mask))
        switch.insert("ingress.job", EntryKey(tuple(match), priority), ActionCall("ingress.prioritise_job", (level(),)))


def _flow(random: Random) -> EntryKey:
    source, destination, protocol, *ports = _five_tuple(random)
    return exact((source, 32), (destination, 32), (protocol, 8), (ports[0], 16), (ports[1], 16))


def _five_tuple(random: Random) -> tuple[int, int, int, int, int]:
    # Few enough of them that flows and packets often agree.
    protocol = random.choice((Protocol.UDP, Protocol.UDP, Protocol.TCP, Protocol.ICMP))
    ports = (0, 0) if random.random() < 0.1 or protocol == Protocol.ICMP else (4000, random.choice((4791, 5000)))
    return random.choice(_ADDRESSES[:2]), random.choice(_ADDRESSES), int(protocol), *ports


# ---- packets ---------------------------------------------------------------------------------------------------------


def _arrival(random: Random) -> Packet:
    match random.choices(("ipv4", "other", "controller"), (85, 10, 5))[0]:
        case "ipv4":
            return Packet(random.choice(_PORTS), _damaged(_ipv4(random).octets(), random))
        case "other":
            octets = ethernet(random.randbytes(random.randrange(60)), random.choice(_ETHER_TYPES))
            return Packet(random.choice(_PORTS), octets)
        case _:
            header = struct.pack("!H", random.choice(_PORTS) << 7)
            return Packet(CPU_PORT, header + random.randbytes(random.randrange(1, 80)))


def _ipv4(random: Random) -> Ipv4:
    source, destination, protocol, source_port, destination_port = _five_tuple(random)
    announces = random.random() < 0.5
    return Ipv4(
        source=source,
        destination=destination,
        protocol=protocol,
        source_port=source_port if random.random() < 0.8 else random.getrandbits(16),
        destination_port=destination_port,
        dscp=random.randrange(32) << 1 | announces,
        ecn=random.randrange(4),
        time_to_live=random.choice((0, 1, *(2, 64, 255) * 6)),
        telemetry=_telemetry(random) if announces and random.random() < 0.9 else None,
        payload=random.randbytes(random.randrange(40)),
        options=random.randbytes(4 * random.choice((*(0,) * 30, *range(1, 11)))),
        flags=random.choice((*(0, 2) * 8, 1)),
        fragment_offset=random.choice((*(0,) * 19, 185)),
        tcp_options=random.randbytes(4) if random.random() < 0.1 else b"",
        udp_checksum=random.random() < 0.8,
        checksum_error=random.choice((*(0,) * 19, 0x0100)),
        l4_checksum_error=random.choice((0, 0, 0, random.getrandbits(16))),
    )


def _telemetry(random: Random) -> IntMd:
    instructions = sum(int(instruction) for instruction in Instruction if random.random() < 0.4)
    if random.random() < 0.2:
        instructions |= random.getrandbits(8)
    return IntMd(
        instructions=instructions,
        hop_words=random.choice((12, 19, 31, random.randrange(32))),
        remaining_hop_count=random.choice((0, 1, 8, 255)),
        stack=random.randbytes(4 * random.randrange(20)),
        hop_count_exceeded=random.random() < 0.1,
        mtu_exceeded=random.random() < 0.1,
        domain_id=random.getrandbits(16),
        type=random.choice((*(1,) * 19, 2)),
        next_protocol_type=random.choice((*(0,) * 19, 1)),
        version=random.choice((*(2,) * 19, 1)),
        length=random.choice((*(None,) * 19, random.getrandbits(8))),
    )


def _damaged(frame: bytes, random: Random) -> bytes:
    """Mostly the frame itself; else cut short, longer than it says, or with a byte changed."""
    match random.choices(("whole", "cut", "longer", "changed"), (75, 8, 7, 10))[0]:
        case "cut":
            return frame[: random.randrange(1, len(frame))]
        case "longer":
            return frame + random.randbytes(random.randrange(1, 20))
        case "changed":
            changed = bytearray(frame)
            changed[random.randrange(len(frame))] ^= random.randrange(1, 256)
            return bytes(changed)
        case _:
            return frame
