"""Flow entries are read back as they were written, whatever stands beside them."""

import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from controller.southbound.openflow.entries import FlowEntry, FlowKey, Match, Table, ToController
from controller.southbound.openflow.flow_stats import HeldFlow, decode_flow_stats, flows_request
from controller.southbound.openflow.messages import MalformedError
from tests.controller.southbound.openflow.drawn_entries import cookies, flow_entries
from tests.controller.southbound.openflow.os_ken_messages import OsKen, match_fields
from topologies.addressing import Address, Prefix

_VERSIONS = st.sampled_from((4, 6))
_COUNTS = st.integers(0, 0xFFFF_FFFF_FFFF_FFFE)


def _reply(os_ken: OsKen, entry: FlowEntry, **fields: Any) -> bytes:
    table, priority, match = entry.key
    instructions = os_ken.instructions(entry)
    return os_ken.flow_reply(match_fields(match), instructions, table=table, priority=priority, **fields)


def _entry_of(reply: bytes) -> FlowEntry | None:
    (held,) = decode_flow_stats([reply], reply[0])
    return held.entry


@given(flow_entries(), cookies, st.tuples(_COUNTS, _COUNTS), _VERSIONS)
def test_what_os_ken_builds_is_read(entry: FlowEntry, cookie: int, counts: tuple[int, int], version: int) -> None:
    (held,) = decode_flow_stats([_reply(OsKen(version), entry, cookie=cookie, counts=counts)], version)
    assert held.entry == entry
    assert (held.cookie, held.num_packets, held.num_bytes) == (cookie, *counts)
    assert (held.table, held.priority) == entry.key[:2]


@given(flow_entries(), cookies, st.tuples(_COUNTS, _COUNTS), _VERSIONS)
def test_os_ken_reads_the_same(entry: FlowEntry, cookie: int, counts: tuple[int, int], version: int) -> None:
    """The replies of these tests, which they build in part, are what a switch would send."""
    os_ken = OsKen(version)
    (found,) = os_ken.read(_reply(os_ken, entry, cookie=cookie, counts=counts)).body
    assert (found.table_id, found.priority, found.cookie) == (entry.key.table, entry.key.priority, cookie)
    numbers = found if version == 4 else found.stats
    taken = (
        (numbers.packet_count, numbers.byte_count) if version == 4 else (numbers["packet_count"], numbers["byte_count"])
    )
    assert taken == counts
    assert dict(found.match.items()) == match_fields(entry.key.match)
    assert [str(part) for part in found.instructions] == [
        str(type(part).parser(_serialized(part), 0)) for part in os_ken.instructions(entry)
    ]


@given(cookies, cookies, _VERSIONS)
def test_the_request_is_that_of_os_ken(cookie: int, mask: int, version: int) -> None:
    os_ken = OsKen(version)
    name = "OFPFlowStatsRequest" if version == 4 else "OFPFlowDescStatsRequest"
    assert flows_request(cookie, mask, version) == os_ken.octets(name, cookie=cookie, cookie_mask=mask)


@given(st.lists(st.lists(flow_entries(), max_size=3), max_size=4), _VERSIONS)
def test_a_reply_has_parts(parts: list[list[FlowEntry]], version: int) -> None:
    os_ken = OsKen(version)
    replies = [os_ken.reply(1, b"".join(_reply(os_ken, entry)[16:] for entry in part)) for part in parts]
    held = decode_flow_stats(replies, version)
    assert [flow.entry for flow in held] == [entry for part in parts for entry in part]


FOREIGN_MATCHES: list[dict[str, object]] = [
    {"in_port": 1},
    {"eth_type": 0x86DD, "ipv6_dst": "::1"},
    {"eth_type": 0x0800, "ip_proto": 132, "sctp_dst": 7},
    {"eth_type": 0x0800, "ip_proto": 17, "udp_dst": (16, 0xFFF0)},
    {"eth_type": 0x0800, "ipv4_dst": ("10.0.0.1", "255.0.0.255")},
    {"eth_type": 0x0806, "arp_tpa": "10.0.0.1"},
    {"vlan_vid": (0x1000, 0x1000)},
    {"eth_type": 0x8847, "mpls_label": 3},
    {"tunnel_id": 7},
]


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("match", FOREIGN_MATCHES, ids=str)
def test_a_match_of_others_is_no_entry_and_leaves_its_neighbours(match: dict[str, object], version: int) -> None:
    os_ken = OsKen(version)
    ours = FlowEntry(FlowKey(Table.RULES, 7, Match()), (ToController(1),))
    body = _reply(os_ken, ours)[16:] + os_ken.flow_reply(match, [], priority=3)[16:] + _reply(os_ken, ours)[16:]
    first, other, last = decode_flow_stats([os_ken.reply(1, body)], version)
    assert (first.entry, other.entry, last.entry) == (ours, None, ours)
    assert (other.table, other.priority) == (0, 3)


def _foreign_instructions(parts: Any, numbers: Any) -> dict[str, list[Any]]:
    apply, write = numbers.OFPIT_APPLY_ACTIONS, numbers.OFPIT_WRITE_ACTIONS
    actions = {
        "output": [parts.OFPActionOutput(1, 0)],
        "flood": [parts.OFPActionOutput(numbers.OFPP_FLOOD, 0)],
        "time to live alone": [parts.OFPActionDecNwTtl()],
        "half a Forward": [parts.OFPActionDecNwTtl(), parts.OFPActionSetField(eth_src="02:00:00:00:00:01")],
        "a Forward in another order": [
            parts.OFPActionSetField(eth_src="02:00:00:00:00:01"),
            parts.OFPActionSetField(eth_dst="02:00:00:00:00:02"),
            parts.OFPActionDecNwTtl(),
            parts.OFPActionOutput(1, 0),
        ],
        "a Forward to the controller": [
            parts.OFPActionDecNwTtl(),
            parts.OFPActionSetField(eth_src="02:00:00:00:00:01"),
            parts.OFPActionSetField(eth_dst="02:00:00:00:00:02"),
            parts.OFPActionOutput(numbers.OFPP_CONTROLLER, 0),
        ],
        "another field": [parts.OFPActionSetField(ipv4_dst="10.0.0.1")],
        "a tag": [parts.OFPActionPushVlan(0x8100)],
        "resubmit": [parts.NXActionResubmitTable(table_id=1)],
    }
    return {name: [parts.OFPInstructionActions(apply, found)] for name, found in actions.items()} | {
        "written actions": [parts.OFPInstructionActions(write, [])],
        "metadata": [parts.OFPInstructionWriteMetadata(1, 1)],
        "a table that we do not have": [parts.OFPInstructionGotoTable(9)],
        "twice": [parts.OFPInstructionGotoTable(1), parts.OFPInstructionGotoTable(2)],
    }


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("name", _foreign_instructions(OsKen(4).parts, OsKen(4).numbers))
def test_instructions_of_others_are_no_entry(name: str, version: int) -> None:
    os_ken = OsKen(version)
    assert _entry_of(os_ken.flow_reply({}, _foreign_instructions(os_ken.parts, os_ken.numbers)[name])) is None


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize(
    "fields", [{"timeouts_s": (1, 0)}, {"timeouts_s": (0, 1)}, {"flags": 16}, {"table": 4}], ids=str
)
def test_an_entry_that_ends_or_does_not_count_is_none_of_ours(fields: dict[str, Any], version: int) -> None:
    assert _entry_of(OsKen(version).flow_reply({}, [])) is not None
    assert _entry_of(OsKen(version).flow_reply({}, [], **fields)) is None


@pytest.mark.parametrize("version", [4, 6])
def test_flags_that_only_say_how_it_was_written_do_not_matter(version: int) -> None:
    assert _entry_of(OsKen(version).flow_reply({}, [], flags=7)) is not None


@pytest.mark.parametrize("version", [4, 6])
def test_masks_that_say_nothing_are_left_out(version: int) -> None:
    match = {
        "eth_type": 0x0800,
        "ipv4_src": ("10.0.0.1", "255.255.255.255"),
        "ipv4_dst": ("0.0.0.0", "0.0.0.0"),
        "ip_proto": 6,
        "tcp_src": (80, 0xFFFF),
        "tcp_dst": (0, 0),
    }
    source = Prefix(Address.parse("10.0.0.1"), 32)
    entry = _entry_of(OsKen(version).flow_reply(match, []))
    assert entry is not None
    assert entry.key.match == Match(0x0800, source=source, protocol=6, source_port=80)


def test_counters_that_a_switch_lacks_are_none() -> None:
    unknown = 0xFFFF_FFFF_FFFF_FFFF
    (held,) = decode_flow_stats([OsKen(4).flow_reply({}, [], counts=(unknown, unknown))], 4)
    assert (held.num_packets, held.num_bytes) == (None, None)
    entry = struct.pack("!H2xBxHHHHHQ", 40, 0, 0, 0, 0, 0, 0, 0) + struct.pack("!HH4xHH4x", 1, 4, 0, 4)
    (held,) = decode_flow_stats([OsKen(6).reply(1, entry)], 6)
    assert (held.num_packets, held.num_bytes) == (None, None)
    assert held.entry is not None


def _damaged(draw: Callable[[st.SearchStrategy[int]], int], octets: bytes) -> bytes:
    """Return bytes of which some are others, and some at the end are lacking."""
    changed = bytearray(octets[: draw(st.integers(17, len(octets)))])
    for _ in range(draw(st.integers(0, 3))):
        changed[draw(st.integers(16, len(changed) - 1))] = draw(st.integers(0, 255))
    changed[2:4] = len(changed).to_bytes(2, "big")
    return bytes(changed)


@given(st.data(), st.lists(flow_entries(), min_size=1, max_size=3), _VERSIONS)
def test_damaged_replies_are_malformed_or_read(data: st.DataObject, entries: list[FlowEntry], version: int) -> None:
    """Whatever a switch sends, nothing else than the error is raised, and what is read can be named."""
    os_ken = OsKen(version)
    reply = _damaged(data.draw, os_ken.reply(1, b"".join(_reply(os_ken, entry)[16:] for entry in entries)))
    try:
        held = decode_flow_stats([reply], version)
    except MalformedError:
        return
    assert all(isinstance(flow, HeldFlow) for flow in held)


@pytest.mark.parametrize("version", [4, 6])
def test_every_truncation_is_malformed(version: int) -> None:
    os_ken = OsKen(version)
    match = Match(0x0800, 8, Prefix(Address.parse("10.0.0.0"), 8), None, 17, 1, 2)
    whole = _reply(os_ken, FlowEntry(FlowKey(Table.RULES, 1, match), (ToController(1),), Table.ROUTING))
    for length in range(17, len(whole)):
        cut = whole[:2] + length.to_bytes(2, "big") + whole[4:length]
        with pytest.raises(MalformedError):
            decode_flow_stats([cut], version)
    without_goto, without_instructions = len(whole) - 8, len(whole) - 8 - 24
    shorter = [os_ken.reply(1, (length - 16).to_bytes(2, "big") + whole[18:length]) for length in range(18, len(whole))]
    readable = [len(reply) for reply in shorter if not _is_malformed(reply, version)]
    assert readable == [without_instructions, without_goto]


@example(b"")
@given(st.binary(max_size=64))
def test_garbage_is_malformed(octets: bytes) -> None:
    assert _is_malformed(octets, 4)
    assert _is_malformed(octets, 6)


def _is_malformed(reply: bytes, version: int) -> bool:
    try:
        decode_flow_stats([reply], version)
    except MalformedError as error:
        return bool(str(error))
    return False


def _serialized(part: Any) -> bytes:
    octets = bytearray()
    part.serialize(octets, 0)
    return bytes(octets)
