"""Group mods are byte for byte those of os-ken; groups are read back as they were written."""

import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.southbound.openflow.entries import Forward, Group, GroupType
from controller.southbound.openflow.group_messages import (
    GroupCommand,
    HeldGroup,
    as_described,
    decode_group_descriptions,
    delete_group,
    encode_group_mod,
    group_descriptions_request,
)
from controller.southbound.openflow.messages import MalformedError
from tests.controller.southbound.openflow.drawn_entries import groups
from tests.controller.southbound.openflow.os_ken_messages import OsKen
from topologies.addressing import MacAddress

_VERSIONS = st.sampled_from((4, 6))
_FORWARD = Forward(1, MacAddress(2), MacAddress(4))
_SELECT = Group(7, GroupType.SELECT, (_FORWARD, replace(_FORWARD, port=2)), 0x1234_5678)
_DESCRIPTIONS = 7


def _description(mod: bytes) -> bytes:
    """Return the description that a switch gives of a group that was written so: the same buckets and properties."""
    version = mod[0]
    kind, group_id = struct.unpack_from("!BxI", mod, 10)
    start = 16 if version == 4 else 24
    fixed = struct.pack("!BxI", kind, group_id)
    if version == 6:
        fixed += mod[16:18] + bytes(6)
    return struct.pack("!H", 2 + len(fixed) + len(mod) - start) + fixed + mod[start:]


def _reply(mods: Sequence[bytes]) -> bytes:
    return OsKen(mods[0][0]).reply(_DESCRIPTIONS, b"".join(map(_description, mods)))


def _held(mod: bytes) -> HeldGroup:
    (held,) = decode_group_descriptions([_reply([mod])], mod[0])
    return held


@given(groups(), st.sampled_from((GroupCommand.ADD, GroupCommand.MODIFY)), _VERSIONS)
def test_group_mods_are_those_of_os_ken(group: Group, command: GroupCommand, version: int) -> None:
    assert encode_group_mod(group, command, version) == OsKen(version).group_mod(group, command)


@given(groups(), _VERSIONS)
def test_deleting_a_group_names_it_alone(group: Group, version: int) -> None:
    os_ken = OsKen(version)
    expected = os_ken.octets("OFPGroupMod", os_ken.numbers.OFPGC_DELETE, group_id=group.group_id)
    assert delete_group(group.group_id, version) == expected
    assert encode_group_mod(group, GroupCommand.DELETE, version) == expected


@given(st.lists(groups(), min_size=1, max_size=4), _VERSIONS)
def test_what_os_ken_builds_is_read(drawn: list[Group], version: int) -> None:
    reply = _reply([OsKen(version).group_mod(group, 0) for group in drawn])
    found = decode_group_descriptions([reply, reply], version)
    expected = [HeldGroup(group.group_id, as_described(group, version)) for group in drawn]
    assert found == expected * 2


@given(groups())
def test_os_ken_reads_the_same_descriptions(group: Group) -> None:
    """Of version 1.3: os-ken cannot read several groups of version 1.5, nor the name of a hash."""
    os_ken = OsKen(4)
    (found,) = os_ken.read(_reply([encode_group_mod(group, GroupCommand.ADD, 4)])).body
    assert found.group_id == group.group_id
    assert [bucket.actions[-1].port for bucket in found.buckets] == [forward.port for forward in group.buckets]


@pytest.mark.parametrize("version", [4, 6])
def test_the_requests_are_those_of_os_ken(version: int) -> None:
    os_ken = OsKen(version)
    assert group_descriptions_request(version) == os_ken.octets("OFPGroupDescStatsRequest", 0)


def test_version_1_3_describes_no_hash_basis() -> None:
    assert as_described(_SELECT, 6) == _SELECT
    assert as_described(_SELECT, 4) == replace(_SELECT, hash_basis=0)


def _foreign_groups(os_ken: OsKen) -> dict[str, bytes]:
    """Return group mods of others for each reason why our words do not tell them."""
    parts, numbers = os_ken.parts, os_ken.numbers
    forward = os_ken.actions([_FORWARD])
    if os_ken.version == 4:

        def mod(kind: int, **bucket: Any) -> bytes:
            fields = {"weight": 1, "watch_port": 1, "watch_group": numbers.OFPG_ANY, "actions": forward} | bucket
            return os_ken.octets("OFPGroupMod", 0, kind, 7, [parts.OFPBucket(**fields)])

        return {
            "all": mod(numbers.OFPGT_ALL),
            "experimenter": mod(200),
            "weight": mod(numbers.OFPGT_SELECT, weight=2),
            "no watch": mod(numbers.OFPGT_SELECT, watch_port=numbers.OFPP_ANY),
            "another watch": mod(numbers.OFPGT_SELECT, watch_port=2),
            "watched group": mod(numbers.OFPGT_SELECT, watch_group=3),
            "no actions": mod(numbers.OFPGT_SELECT, actions=[]),
            "two actions": mod(numbers.OFPGT_SELECT, actions=forward * 2),
            "another action": mod(numbers.OFPGT_SELECT, actions=[parts.OFPActionGroup(1)]),
        }
    plain = os_ken.group_mod(_SELECT, 0)
    method = plain.index(b"dp_hash")
    watch = [parts.OFPGroupBucketPropWatch(type_=numbers.OFPGBPT_WATCH_GROUP, watch=3)]
    watching = [parts.OFPBucket(bucket_id=0, actions=forward, properties=watch)]
    everything = numbers.OFPG_BUCKET_ALL
    return {
        "another hash": plain[:method] + b"hash\0\0\0" + plain[method + 7 :],
        "another function": plain[:-8] + b"\1" + plain[-7:],
        "fields of the hash": _longer(plain, b"\x80\x00\x16\x04\xff\xff\xff\xff", grows_property=True),
        "two properties": _longer(plain, plain[-40:]),
        "no property": os_ken.octets("OFPGroupMod", 0, 1, 7, everything, []),
        "a property of an INDIRECT group": plain[:10] + b"\2" + plain[11:],
        "watched group": os_ken.octets("OFPGroupMod", 0, 3, 7, everything, watching),
    }


def _longer(mod: bytes, more: bytes, *, grows_property: bool = False) -> bytes:
    if grows_property:
        mod = mod[:-38] + (40 + len(more)).to_bytes(2, "big") + mod[-36:]
    return mod[:2] + (len(mod) + len(more)).to_bytes(2, "big") + mod[4:] + more


@pytest.mark.parametrize(
    ("version", "name"), [(version, name) for version in (4, 6) for name in _foreign_groups(OsKen(version))]
)
def test_a_group_of_others_is_none_and_leaves_its_neighbours(version: int, name: str) -> None:
    os_ken = OsKen(version)
    ours = os_ken.group_mod(_SELECT, 0)
    found = decode_group_descriptions([_reply([ours, _foreign_groups(os_ken)[name], ours])], version)
    expected = as_described(_SELECT, version)
    assert [held.group for held in found] == [expected, None, expected]
    assert found[1].group_id == 7


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize(
    "group",
    [
        Group(1, GroupType.INDIRECT, ()),
        Group(1, GroupType.INDIRECT, (_FORWARD, _FORWARD)),
        Group(1, GroupType.SELECT, (_FORWARD,), 1 << 32),
        Group(1, GroupType.SELECT, (_FORWARD,), -1),
        Group(1, GroupType.SELECT, (_FORWARD,) * 1000),
        Group(1, GroupType.SELECT, (replace(_FORWARD, port=0),)),
        Group(1 << 32, GroupType.SELECT, (_FORWARD,)),
    ],
)
def test_a_group_that_openflow_cannot_say_is_refused(group: Group, version: int) -> None:
    with pytest.raises(ValueError, match=r"one bucket|32 bits|longer|reserved|fit"):
        encode_group_mod(group, GroupCommand.ADD, version)


@given(st.data(), st.lists(groups(), min_size=1, max_size=3), _VERSIONS)
def test_damaged_replies_are_malformed_or_read(data: st.DataObject, drawn: list[Group], version: int) -> None:
    reply = _reply([encode_group_mod(group, GroupCommand.ADD, version) for group in drawn])
    changed = bytearray(reply[: data.draw(st.integers(17, len(reply)))])
    for _ in range(data.draw(st.integers(0, 3))):
        changed[data.draw(st.integers(16, len(changed) - 1))] = data.draw(st.integers(0, 255))
    changed[2:4] = len(changed).to_bytes(2, "big")
    try:
        held = decode_group_descriptions([bytes(changed)], version)
    except MalformedError:
        return
    assert all(isinstance(group, HeldGroup) for group in held)


@pytest.mark.parametrize("version", [4, 6])
def test_every_truncation_is_malformed(version: int) -> None:
    whole = _reply([encode_group_mod(_SELECT, GroupCommand.ADD, version)])
    for length in range(17, len(whole)):
        with pytest.raises(MalformedError):
            decode_group_descriptions([whole[:2] + length.to_bytes(2, "big") + whole[4:length]], version)
