"""Strategies that draw entries as OpenFlow can say them."""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from controller.southbound.openflow.entries import (
    Action,
    FlowEntry,
    FlowKey,
    Forward,
    Group,
    GroupType,
    Match,
    SetDscp,
    SetQueue,
    Table,
    ToController,
    ToGroup,
)
from controller.southbound.openflow.flow_encoder import encode_own
from topologies.addressing import TCP_PROTOCOL, UDP_PROTOCOL, Address, MacAddress, Prefix

_NUMBERS_16 = st.integers(0, 0xFFFF)
_PORTS = st.integers(1, 0xFFFF_FF00)
_GROUP_IDS = st.integers(0, 0xFFFF_FF00)
_DSCPS = st.integers(0, 63)

macs = st.integers(0, 0xFFFF_FFFF_FFFF).map(MacAddress)
prefixes = st.builds(Prefix.around, st.integers(0, 0xFFFF_FFFF).map(Address), st.integers(1, 32))


def _optional(numbers: SearchStrategy[int]) -> SearchStrategy[int | None]:
    return st.none() | numbers


def _matches(**fields: SearchStrategy[object]) -> SearchStrategy[Match]:
    """Draw matches on these fields alone."""
    return st.builds(Match, **(dict.fromkeys(Match._fields, st.none()) | fields))


_ipv4_fields = {
    "ether_type": st.just(0x0800),
    "dscp": _optional(_DSCPS),
    "source": st.none() | prefixes,
    "destination": st.none() | prefixes,
}
_ports = {"source_port": _optional(_NUMBERS_16), "destination_port": _optional(_NUMBERS_16)}

matches = st.one_of(
    _matches(ether_type=_optional(st.integers(0x600, 0xFFFF))),
    _matches(**_ipv4_fields, protocol=_optional(st.integers(0, 0xFF))),
    _matches(**_ipv4_fields, protocol=st.sampled_from((TCP_PROTOCOL, UDP_PROTOCOL)), **_ports),
)
cookies = st.integers(0, 0xFFFF_FFFF_FFFF_FFFF)


def forwards(ports: SearchStrategy[int]) -> SearchStrategy[Forward]:
    """Draw Forwards out of such ports."""
    return st.builds(Forward, ports, macs, macs)


def _identity(action: Action) -> object:
    """Return what no other action of an entry may have: groups stand there once, others as often as they like."""
    return action if isinstance(action, ToGroup) else object()


@st.composite
def flow_entries(
    draw: st.DrawFn,
    ports: SearchStrategy[int] = _PORTS,
    group_ids: SearchStrategy[int] = _GROUP_IDS,
) -> FlowEntry:
    """Draw an entry whose packets go to later tables only."""
    table = draw(st.sampled_from(Table))
    actions: SearchStrategy[Action] = st.one_of(
        st.builds(SetDscp, _DSCPS),
        st.builds(SetQueue, st.integers(0, 0xFFFF_FFFE)),
        forwards(ports),
        st.builds(ToGroup, group_ids),
        st.builds(ToController, _NUMBERS_16),
    )
    later = [None, *(other for other in Table if other > table)]
    return FlowEntry(
        FlowKey(table, draw(_NUMBERS_16), draw(matches)),
        tuple(draw(st.lists(actions, max_size=4, unique_by=_identity))),
        draw(st.sampled_from(later)),
    )


@st.composite
def groups(
    draw: st.DrawFn,
    ports: SearchStrategy[int] = _PORTS,
    group_ids: SearchStrategy[int] = _GROUP_IDS,
) -> Group:
    """Draw a group."""
    kind = draw(st.sampled_from(GroupType))
    is_indirect = kind is GroupType.INDIRECT
    buckets = st.lists(forwards(ports), min_size=int(is_indirect), max_size=1 if is_indirect else 5)
    basis = draw(st.integers(0, 0xFFFF_FFFF)) if kind is GroupType.SELECT else 0
    return Group(draw(group_ids), kind, tuple(draw(buckets)), basis)


def cookie_of(entry: FlowEntry, owner: int, version: int = 6) -> int:
    """The cookie of the message that writes an entry, which follows the header."""
    return int.from_bytes(encode_own(entry, owner, version)[8:16], "big")
