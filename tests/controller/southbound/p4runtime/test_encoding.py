"""Updates are encoded as finsy encodes them, whatever was encoded before."""

from pathlib import Path

import pytest
from finsy import P4Schema, P4TableAction, P4TableEntry, P4TableMatch
from finsy.proto import p4r
from hypothesis import given
from hypothesis import strategies as st

import controller
from controller.southbound.p4runtime.encoding import Encoder
from controller.southbound.p4runtime.entries import base_entries
from controller.southbound.p4runtime.states import Update
from controller.southbound.states import UpdateKind
from topologies.routing import Routing

SCHEMA = P4Schema(Path(controller.__file__).parent.parent / "p4src" / "build" / "trainyard.p4info.txtpb")
ENCODER = Encoder(SCHEMA)
FEW = st.integers(0, 2)
"""So few values that matches and actions come again."""


def _expected(kind: p4r.Update.Type.ValueType, entity: P4TableEntry) -> p4r.Update:
    return p4r.Update(type=kind, entity=entity.encode(SCHEMA))


@st.composite
def flow_entries(draw: st.DrawFn) -> P4TableEntry:
    """An entry of table ``flow``."""
    match = P4TableMatch(
        source_address=draw(FEW | st.integers(0, 0xFFFF_FFFF)),
        destination_address=draw(FEW),
        protocol=draw(FEW),
        source_port=draw(FEW | st.integers(0, 0xFFFF)),
        destination_port=draw(FEW),
    )
    name = draw(st.sampled_from(["steer", "prioritise", "steer_and_prioritise"]))
    arguments = {"next_hop": draw(FEW | st.integers(0, 0xFFFF)), "level": draw(st.integers(0, 7))}
    if name != "steer_and_prioritise":
        del arguments["level" if name == "steer" else "next_hop"]
    return P4TableEntry("flow", match=match, action=P4TableAction(name, **arguments))


@given(flow_entries())
def test_a_flow_rule_is_encoded_as_finsy_does(entry: P4TableEntry) -> None:
    assert ENCODER.update(Update(UpdateKind.INSERT, entry)) == _expected(p4r.Update.INSERT, entry)
    assert ENCODER.update(Update(UpdateKind.MODIFY, entry)) == _expected(p4r.Update.MODIFY, entry)


@given(flow_entries())
def test_a_deletion_names_the_rule_and_not_what_it_did(entry: P4TableEntry) -> None:
    named = P4TableEntry("flow", match=entry.match)
    assert ENCODER.update(Update(UpdateKind.DELETE, entry)) == _expected(p4r.Update.DELETE, named)


def test_everything_else_is_encoded_as_finsy_does(routing: Routing) -> None:
    for entity in base_entries("t0", routing):
        expected = p4r.Update(type=p4r.Update.INSERT, entity=entity.encode(SCHEMA))
        assert ENCODER.update(Update(UpdateKind.INSERT, entity)) == expected


@pytest.mark.parametrize(
    ("match", "action", "message"),
    [
        ({"source_port": 1 << 16}, P4TableAction("steer", next_hop=1), "source_port"),
        ({"vlan": 1}, P4TableAction("steer", next_hop=1), "vlan"),
        ({"source_port": 1}, P4TableAction("steer", next_hop=1 << 16), "steer"),
        ({"source_port": 1}, P4TableAction("send_home"), "send_home"),
    ],
)
def test_what_the_p4info_does_not_have_is_refused(match: dict[str, int], action: P4TableAction, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ENCODER.update(Update(UpdateKind.INSERT, P4TableEntry("flow", match=P4TableMatch(match), action=action)))
