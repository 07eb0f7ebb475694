"""Files of entries, and entries as people write them."""

import json
from pathlib import Path
from typing import Any

import pytest
from finsy.proto import p4i, p4r
from google.protobuf import text_format

from emulator.p4runtime.entry_files import read_entries, updates_of
from emulator.p4runtime.readable import EntryError, Readable
from topologies.documents import DocumentError

ROUTER = Path(__file__).resolve().parents[3] / "docs" / "examples" / "p4"
P4INFO = text_format.Parse((ROUTER / "router.p4info.txtpb").read_text(), p4i.P4Info())


def _entries(tmp_path: Path, **parts: object) -> Path:
    path = tmp_path / "s1-runtime.json"
    path.write_text(json.dumps(parts))
    return path


def test_a_file_becomes_updates_in_its_order(tmp_path: Path) -> None:
    path = _entries(
        tmp_path,
        target="bmv2",
        table_entries=[
            {
                "table": "ingress.routes",
                "default_action": True,
                "action_name": "ingress.count_drop",
                "action_params": {},
            },
            {
                "table": "routes",
                "match": {"destination": ["10.0.1.0", 24]},
                "action_name": "forward",
                "action_params": {"next_hop": "08:00:00:00:01:11", "port": 300},
            },
            {
                "table": "access",
                "match": {"headers.ipv4.source": ["10.0.0.0", "255.0.0.0"], "protocol": [6, 255]},
                "action_name": "drop",
                "action_params": {},
                "priority": 3,
            },
            {"table": "senders", "match": {"source": ["08:00:00:00:01:11"]}, "action_name": "NoAction"},
        ],
        multicast_group_entries=[{"multicast_group_id": 4, "replicas": [{"egress_port": 1, "instance": 2}]}],
        clone_session_entries=[{"clone_session_id": 5, "replicas": [{"egress_port": 3}], "packet_length_bytes": 64}],
    )
    default, route, drop, sender, group, session = updates_of(read_entries(path), P4INFO)
    assert default.type == p4r.Update.MODIFY
    assert default.entity.table_entry.is_default_action
    assert route.type == p4r.Update.INSERT
    (field,) = route.entity.table_entry.match
    assert (field.lpm.value, field.lpm.prefix_len) == (bytes([10, 0, 1, 0]), 24)
    next_hop, port = route.entity.table_entry.action.action.params
    assert (next_hop.value, port.value) == (bytes.fromhex("080000000111"), b"\x01\x2c")
    source, protocol = sorted(drop.entity.table_entry.match, key=lambda each: each.field_id)
    assert (source.ternary.value, source.ternary.mask) == (bytes([10, 0, 0, 0]), bytes([255, 0, 0, 0]))
    assert (protocol.ternary.value, drop.entity.table_entry.priority) == (b"\x06", 3)
    assert sender.entity.table_entry.match[0].exact.value == bytes.fromhex("080000000111")
    copies = group.entity.packet_replication_engine_entry.multicast_group_entry
    assert (copies.multicast_group_id, [each.instance for each in copies.replicas]) == (4, [2])
    clones = session.entity.packet_replication_engine_entry.clone_session_entry
    assert (clones.session_id, clones.packet_length_bytes) == (5, 64)


_ROUTE: dict[str, Any] = {
    "table": "routes",
    "match": {"destination": "10.0.1.0/24"},
    "action_name": "forward",
    "action_params": {"next_hop": 1, "port": 1},
}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"table": "router"}, "there is no table 'router'"),
        ({"match": {"target": "10.0.1.0/24"}}, "there is no field of table ingress.routes 'target'"),
        ({"match": {"destination": "10.0.1.0/33"}}, "destination"),
        ({"match": {"destination": "nowhere"}}, "destination"),
        ({"action_name": "drop"}, "there is no action of table ingress.routes 'drop'"),
        ({"action_params": {"port": 1}}, "its parameters are next_hop, port; given are port"),
        ({"action_params": {"next_hop": 1, "port": 512}}, "port"),
    ],
)
def test_an_entry_that_the_program_cannot_have_is_named(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    path = _entries(tmp_path, table_entries=[_ROUTE, {**_ROUTE, **change}])
    with pytest.raises(EntryError) as raised:
        updates_of(read_entries(path), P4INFO)
    assert str(raised.value).startswith("table_entries[1]: ")
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"tables": []}, "tables: unknown key"),
        ({"target": "tofino"}, "target"),
        ({"table_entries": [{"match": {}}]}, "table_entries[0].table"),
        ({"clone_session_entries": [{"clone_session_id": -1, "replicas": []}]}, "clone_session_id"),
    ],
)
def test_a_file_with_faults_is_refused_with_their_places(tmp_path: Path, parts: dict[str, Any], said: str) -> None:
    with pytest.raises(DocumentError) as raised:
        read_entries(_entries(tmp_path, **parts))
    assert said in str(raised.value)


def test_an_ambiguous_name_is_refused() -> None:
    twice = p4i.P4Info()
    twice.CopyFrom(P4INFO)
    twice.tables.add(preamble=p4i.Preamble(id=0x0200_0001, name="egress.routes", alias="egress.routes"))
    with pytest.raises(EntryError, match=r"more than one table 'routes': ingress.routes, egress.routes"):
        Readable(twice).table("routes")
