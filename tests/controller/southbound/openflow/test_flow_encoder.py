"""Flow mods are byte for byte those of os-ken; their cookies tell owner and intent."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.southbound.openflow.entries import (
    FlowEntry,
    FlowKey,
    Forward,
    Match,
    SetDscp,
    SetQueue,
    Table,
    ToController,
    ToGroup,
)
from controller.southbound.openflow.flow_encoder import (
    OWNER_MASK,
    FlowCommand,
    delete_by_cookie,
    delete_held,
    encode_flow_mod,
    encode_own,
    owner_cookie,
)
from controller.southbound.openflow.flow_stats import decode_flow_stats
from tests.controller.southbound.openflow.drawn_entries import cookie_of, cookies, flow_entries
from tests.controller.southbound.openflow.os_ken_messages import OsKen, match_fields
from topologies.addressing import Address, MacAddress, Prefix

_VERSIONS = st.sampled_from((4, 6))
_MAC = MacAddress(2)


_addresses = st.integers(0, 0xFFFF_FFFF).map(lambda number: Prefix(Address(number), 32))
_ports = st.integers(0, 0xFFFF)


@given(flow_entries(), st.sampled_from(FlowCommand), cookies, _VERSIONS)
def test_flow_mods_are_those_of_os_ken(entry: FlowEntry, command: FlowCommand, cookie: int, version: int) -> None:
    assert encode_flow_mod(entry, command, cookie, version) == OsKen(version).flow_mod(entry, command, cookie)


@given(st.lists(_addresses, min_size=2, max_size=2), st.sampled_from((6, 17)), _ports, _ports, _VERSIONS)
def test_matches_of_single_flows_are_those_of_os_ken(
    ends: list[Prefix], protocol: int, source_port: int, destination_port: int, version: int
) -> None:
    """Most entries are such, and are encoded in a way of their own."""
    match = Match(0x0800, None, ends[0], ends[1], protocol, source_port, destination_port)
    entry = FlowEntry(FlowKey(Table.RULES, 1, match))
    written = encode_flow_mod(entry, FlowCommand.ADD, 7, version)
    assert written == OsKen(version).flow_mod(entry, FlowCommand.ADD, 7)


@given(cookies, cookies, _VERSIONS)
def test_deleting_by_cookie_asks_for_all_tables(cookie: int, mask: int, version: int) -> None:
    os_ken = OsKen(version)
    assert delete_by_cookie(cookie, mask, version) == os_ken.octets(
        "OFPFlowMod",
        cookie=cookie,
        cookie_mask=mask,
        table_id=os_ken.numbers.OFPTT_ALL,
        command=os_ken.numbers.OFPFC_DELETE,
        priority=0,
        out_port=os_ken.numbers.OFPP_ANY,
        out_group=os_ken.numbers.OFPG_ANY,
        match=os_ken.parts.OFPMatch(),
    )


@given(cookies, _VERSIONS)
def test_an_entry_of_others_is_deleted_by_the_match_that_it_has(cookie: int, version: int) -> None:
    os_ken = OsKen(version)
    match = {"in_port": 3, "eth_type": 0x86DD, "ipv6_src": ("fe80::", "ffff::"), "vlan_vid": (0x1000, 0x1000)}
    (held,) = decode_flow_stats([os_ken.flow_reply(match, [], table=9, priority=5, cookie=cookie)], version)
    assert held.entry is None
    assert delete_held(held, version) == os_ken.octets(
        "OFPFlowMod",
        cookie=cookie,
        cookie_mask=0xFFFF_FFFF_FFFF_FFFF,
        table_id=9,
        command=os_ken.numbers.OFPFC_DELETE_STRICT,
        priority=5,
        out_port=os_ken.numbers.OFPP_ANY,
        out_group=os_ken.numbers.OFPG_ANY,
        match=os_ken.parts.OFPMatch(**match),
    )


@given(flow_entries(), flow_entries())
def test_cookies_tell_owner_and_intent(entry: FlowEntry, other: FlowEntry) -> None:
    owner = owner_cookie("a fabric")
    cookie = cookie_of(entry, owner)
    assert cookie & OWNER_MASK == owner
    assert owner & ~OWNER_MASK == 0
    assert cookie == cookie_of(replace(entry), owner) == cookie_of(entry, owner, version=4)
    assert entry == other or cookie != cookie_of(other, owner)


@given(flow_entries(), st.sampled_from((4, 6)))
def test_an_entry_of_our_own_is_written_with_its_cookie(entry: FlowEntry, version: int) -> None:
    owner = owner_cookie("a fabric")
    written = encode_flow_mod(entry, FlowCommand.ADD, cookie_of(entry, owner), version)
    assert encode_own(entry, owner, version) == written


def test_cookies_stay_the_same_between_versions() -> None:
    match = Match(ether_type=0x0800, destination=Prefix(Address.parse("10.0.1.0"), 24))
    entry = FlowEntry(FlowKey(Table.ROUTING, 124, match), (Forward(1, _MAC, _MAC),))
    assert cookie_of(entry, owner_cookie("lab")) == 0x5472_A511_2D79_AC2B


def test_owners_differ() -> None:
    assert len({owner_cookie(name) for name in ("a", "b", "c", "")}) == 4


@pytest.mark.parametrize(
    "match",
    [
        Match(dscp=8),
        Match(ether_type=0x86DD, protocol=17),
        Match(ether_type=0x0800, source_port=4791),
        Match(ether_type=0x0800, protocol=1, destination_port=4791),
        Match(ether_type=0x0800, dscp=64),
        Match(ether_type=0x0800, destination=Prefix(Address(0), 0)),
        Match(ether_type=0x1_0000),
        Match(ether_type=0x0800, protocol=17, destination_port=-1),
        Match(0x0800, None, Prefix(Address(1), 32), Prefix(Address(2), 32), 17, 4791, 1 << 16),
        Match(0x86DD, None, Prefix(Address(1), 32), Prefix(Address(2), 32), 17, 4791, 4791),
    ],
)
def test_a_match_that_openflow_cannot_say_is_refused(match: Match) -> None:
    with pytest.raises(ValueError, match=r"Match|prefix|DSCP|ports"):
        encode_flow_mod(FlowEntry(FlowKey(Table.RULES, 1, match)), FlowCommand.ADD, 0, 4)


@pytest.mark.parametrize(
    "action",
    [SetDscp(64), SetQueue(1 << 32), ToController(1 << 16), Forward(0, _MAC, _MAC), Forward(0xFFFF_FFFD, _MAC, _MAC)],
)
def test_an_action_that_openflow_cannot_say_is_refused(action: SetDscp) -> None:
    entry = FlowEntry(FlowKey(Table.RULES, 1, Match()), (action,))
    with pytest.raises(ValueError, match=r"DSCP|fit|reserved"):
        encode_flow_mod(entry, FlowCommand.ADD, 0, 6)


def test_an_entry_leads_to_a_group_once() -> None:
    """Open vSwitch 3.1 ends by an assertion when a group is deleted to which an entry leads twice."""
    entry = FlowEntry(FlowKey(Table.RULES, 1, Match()), (ToGroup(1), ToGroup(2), ToGroup(1)))
    with pytest.raises(ValueError, match="leads to a group once"):
        encode_flow_mod(entry, FlowCommand.ADD, 0, 6)


def test_match_fields_of_os_ken_tell_the_protocol_of_ports() -> None:
    match = Match(0x0800, protocol=6, source_port=1)
    assert match_fields(match) == {"eth_type": 0x0800, "ip_proto": 6, "tcp_src": 1}
