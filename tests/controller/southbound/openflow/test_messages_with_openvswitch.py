"""Open vSwitch holds what we write, and what it reads back is what we wrote; ``ovs-ofctl`` says the same."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.southbound.openflow.entries import (
    Entry,
    FlowEntry,
    FlowKey,
    Forward,
    Group,
    GroupType,
    Match,
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
from controller.southbound.openflow.flow_stats import HeldFlow, decode_flow_stats, flows_request
from controller.southbound.openflow.group_messages import (
    GroupCommand,
    as_described,
    decode_group_descriptions,
    delete_group,
    encode_group_mod,
    group_descriptions_request,
)
from controller.southbound.openflow.packet_messages import encode_packet_out
from controller.southbound.openflow.port_messages import (
    decode_port_descriptions,
    decode_port_statistics,
    port_descriptions_request,
    port_statistics_request,
)
from tests.controller.southbound.openflow.drawn_entries import cookie_of, flow_entries, groups
from tests.controller.southbound.openflow.ofctl_words import flow_words, group_words
from tests.controller.southbound.openflow.raw_switch import RawSwitch
from tests.openvswitch import add_dummy_bridge, running_openvswitch
from topologies.addressing import Address, MacAddress, Prefix
from topologies.openvswitch.daemons import OpenVSwitch

_OWNER = owner_cookie("tests")
_EVERY_GROUP = 0xFFFF_FFFC
_PORTS = (1, 2, 3)
_IPV4 = 0x0800
_VERSIONS = pytest.mark.parametrize("version", [4, 6])
_DRAWN = settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])

_ports = st.integers(1, 0xFEFF)  # Open vSwitch has no more
_group_ids = st.integers(0, 5)


@pytest.fixture(scope="module")
def openvswitch() -> Iterator[OpenVSwitch]:
    with running_openvswitch() as found:
        add_dummy_bridge(found, "t0", datapath_id=1, ports=_PORTS)
        yield found


def _connected(openvswitch: OpenVSwitch, version: int) -> RawSwitch:
    """Return a connection to the bridge, which holds nothing."""
    switch = RawSwitch(openvswitch.folder / "t0.mgmt", version)
    switch.write([delete_group(_EVERY_GROUP, version), delete_by_cookie(0, 0, version)])
    return switch


def _write(switch: RawSwitch, entries: Iterable[Entry]) -> None:
    switch.write([_message(entry, switch.version) for entry in entries])


def _message(entry: Entry, version: int) -> bytes:
    if isinstance(entry, Group):
        return encode_group_mod(entry, GroupCommand.ADD, version)
    return encode_own(entry, _OWNER, version)


def _flows(switch: RawSwitch, cookie: int = 0, mask: int = 0) -> list[HeldFlow]:
    return decode_flow_stats(switch.request(flows_request(cookie, mask, switch.version)), switch.version)


def _groups(switch: RawSwitch) -> dict[int, Group | None]:
    replies = switch.request(group_descriptions_request(switch.version))
    return {held.group_id: held.group for held in decode_group_descriptions(replies, switch.version)}


def _is_taken(entry: FlowEntry) -> bool:
    """Whether Open vSwitch takes an entry: it refuses those that change a header that packets may not have."""
    return entry.key.match.ether_type == _IPV4 or all(
        isinstance(action, ToController | SetQueue | ToGroup) for action in entry.actions
    )


_all_groups = [Group(number, GroupType.SELECT, ()) for number in range(6)]
_flow_entries = st.lists(
    flow_entries(_ports, _group_ids).filter(_is_taken), max_size=20, unique_by=lambda entry: entry.key
)


@_VERSIONS
@_DRAWN
@given(_flow_entries)
def test_flow_entries_are_held_as_written(
    openvswitch: OpenVSwitch, version: int, tmp_path: Path, entries: list[FlowEntry]
) -> None:
    with _connected(openvswitch, version) as switch:
        _write(switch, [*_all_groups, *entries])
        held = _flows(switch, _OWNER, OWNER_MASK)
    assert {flow.entry for flow in held} == set(entries)
    assert {flow.cookie for flow in held} == {cookie_of(entry, _OWNER) for entry in entries}
    assert all((flow.num_packets, flow.num_bytes) == (0, 0) for flow in held)
    lines = tmp_path / "flows"
    lines.write_text("".join(f"{flow_words(entry, cookie_of(entry, _OWNER))}\n" for entry in entries))
    openvswitch.ofctl("diff-flows", "t0", str(lines))  # raises where it finds a difference


@_VERSIONS
@_DRAWN
@given(st.lists(groups(_ports), max_size=8, unique_by=lambda group: group.group_id))
def test_groups_are_held_as_written(openvswitch: OpenVSwitch, version: int, drawn: list[Group]) -> None:
    with _connected(openvswitch, version) as switch:
        _write(switch, drawn)
        assert _groups(switch) == {group.group_id: as_described(group, version) for group in drawn}
    protocol = "OpenFlow13" if version == 4 else "OpenFlow15"
    shown = openvswitch.ofctl(f"--protocols={protocol}", "dump-groups", "t0").splitlines()[1:]
    assert {line.strip() for line in shown} == {group_words(group, version) for group in drawn}


def test_a_difference_is_found(openvswitch: OpenVSwitch, tmp_path: Path) -> None:
    """The comparison by ``ovs-ofctl`` can fail."""
    entry = FlowEntry(FlowKey(Table.RULES, 1, Match(_IPV4)), (SetQueue(1),))
    with _connected(openvswitch, 6) as switch:
        _write(switch, [entry])
    lines = tmp_path / "flows"
    lines.write_text(flow_words(entry, 1))
    with pytest.raises(Exception, match="diff-flows"):
        openvswitch.ofctl("diff-flows", "t0", str(lines))


@_VERSIONS
def test_many_entries_come_in_many_parts(openvswitch: OpenVSwitch, version: int) -> None:
    destinations = (Prefix(Address(0x0A00_0000 + number), 32) for number in range(2000))
    entries = {FlowEntry(FlowKey(Table.ROUTING, 1, Match(_IPV4, destination=prefix))) for prefix in destinations}
    with _connected(openvswitch, version) as switch:
        _write(switch, entries)
        assert len(switch.request(flows_request(0, 0, version))) > 1
        assert {flow.entry for flow in _flows(switch)} == entries


@_VERSIONS
def test_entries_of_others_are_left_alone(openvswitch: OpenVSwitch, version: int) -> None:
    entry = FlowEntry(FlowKey(Table.RULES, 1, Match(_IPV4)), (SetQueue(1),))
    with _connected(openvswitch, version) as switch:
        _write(switch, [entry])
        openvswitch.ofctl("add-flow", "t0", "cookie=0x5,table=2,priority=7,in_port=1,ipv6,actions=resubmit(,9),flood")
        openvswitch.ofctl("add-flow", "t0", "cookie=0x6,table=2,idle_timeout=9,tcp,tcp_flags=+syn,actions=NORMAL")
        openvswitch.ofctl("add-group", "t0", "group_id=4,type=all,bucket=output:1,bucket=output:2")
        found = {flow.cookie: flow for flow in _flows(switch)}
        assert found[5].entry is found[6].entry is None
        assert _groups(switch) == {4: None}
        assert [flow.entry for flow in _flows(switch, _OWNER, OWNER_MASK)] == [entry]
        switch.write([delete_by_cookie(_OWNER, OWNER_MASK, version)])
        assert {flow.cookie for flow in _flows(switch)} == {5, 6}
        switch.write([delete_held(replace(found[5], cookie=7), version)])
        assert {flow.cookie for flow in _flows(switch)} == {5, 6}
        switch.write([delete_held(found[5], version)])
        assert {flow.cookie for flow in _flows(switch)} == {6}


@_VERSIONS
def test_commands_reach_exactly_their_key(openvswitch: OpenVSwitch, version: int) -> None:
    wide = FlowEntry(FlowKey(Table.RULES, 1, Match(_IPV4)), (SetQueue(1),))
    narrow = FlowEntry(FlowKey(Table.RULES, 1, Match(_IPV4, dscp=8)), (SetQueue(2),))
    with _connected(openvswitch, version) as switch:
        _write(switch, [wide, narrow])
        other = replace(wide, actions=(SetQueue(3),))
        switch.write([encode_flow_mod(other, FlowCommand.MODIFY, 0, version)])
        assert {flow.entry for flow in _flows(switch)} == {other, narrow}
        absent = replace(wide, key=wide.key._replace(priority=2))
        switch.write([encode_flow_mod(absent, FlowCommand.MODIFY, 0, version)])
        switch.write([encode_flow_mod(wide, FlowCommand.DELETE, 0, version)])
        assert {flow.entry for flow in _flows(switch)} == {narrow}


@_VERSIONS
def test_groups_are_changed_and_deleted_with_their_entries(openvswitch: OpenVSwitch, version: int) -> None:
    forward = Forward(1, MacAddress(2), MacAddress(4))
    group = Group(3, GroupType.SELECT, (forward,), 9)
    other = Group(3, GroupType.FAST_FAILOVER, (forward, replace(forward, port=2)))
    entry = FlowEntry(FlowKey(Table.ROUTING, 1, Match(_IPV4)), (ToGroup(3),))
    with _connected(openvswitch, version) as switch:
        _write(switch, [group, entry])
        switch.write([encode_group_mod(other, GroupCommand.MODIFY, version)])
        assert _groups(switch) == {3: other}
        switch.write([encode_group_mod(other, GroupCommand.DELETE, version)] * 2)
        assert _groups(switch) == {}
        assert _flows(switch) == []


@_VERSIONS
def test_counters_go_on_where_an_entry_is_written_anew(openvswitch: OpenVSwitch, version: int) -> None:
    entry = FlowEntry(FlowKey(Table.ADMISSION, 1, Match(_IPV4)), (ToController(64),))
    frame = (
        "in_port(1),eth(src=02:00:00:00:00:01,dst=02:00:00:00:00:02),eth_type(0x0800),ipv4(src=10.0.0.1,dst=10.0.0.2)"
    )
    with _connected(openvswitch, version) as switch:
        _write(switch, [entry])
        openvswitch.appctl("netdev-dummy/receive", "t0-1", frame)
        by_s = time.monotonic() + 60.0
        while not _flows(switch)[0].num_packets:
            assert time.monotonic() < by_s, "the packet is not counted"
            time.sleep(0.01)
        (before,) = _flows(switch)
        _write(switch, [replace(entry, actions=())])
        (after,) = _flows(switch)
    assert before.num_packets == after.num_packets == 1
    assert before.num_bytes == after.num_bytes
    assert after.entry == replace(entry, actions=())


@_VERSIONS
def test_ports_are_described_and_counted(openvswitch: OpenVSwitch, version: int) -> None:
    with _connected(openvswitch, version) as switch:
        ports = decode_port_descriptions(switch.request(port_descriptions_request(version)), version)
        before = decode_port_statistics(switch.request(port_statistics_request(version)), version)
        switch.write([encode_packet_out(2, bytes(60), version)] * 3)
        after = decode_port_statistics(switch.request(port_statistics_request(version)), version)
    assert sorted((port.number, port.name) for port in ports) == [(1, "t0-1"), (2, "t0-2"), (3, "t0-3")]
    sent = {port.number: (port.sent_packets or 0, port.sent_bytes or 0) for port in before}
    sent_after = {port.number: (port.sent_packets or 0, port.sent_bytes or 0) for port in after}
    assert sent_after == sent | {2: (sent[2][0] + 3, sent[2][1] + 180)}


@_VERSIONS
def test_a_port_that_is_disabled_is_down(openvswitch: OpenVSwitch, version: int) -> None:
    openvswitch.ofctl("mod-port", "t0", "t0-3", "down")
    try:
        with _connected(openvswitch, version) as switch:
            ports = decode_port_descriptions(switch.request(port_descriptions_request(version)), version)
    finally:
        openvswitch.ofctl("mod-port", "t0", "t0-3", "up")
    assert {port.number: port.is_up for port in ports}[3] is False
