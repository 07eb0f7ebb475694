"""What is committed under p4src/build is what p4c makes of the sources beside it."""

import json
import shutil

import pytest
from finsy.proto import p4i
from google.protobuf import text_format

from p4src import MANIFEST, P4INFO, PROGRAM
from p4src.compile import compile_sources, compiler_command, source_hashes


def test_the_manifest_names_the_sources_as_they_are() -> None:
    assert json.loads(MANIFEST.read_text())["sources"] == source_hashes("v1model")


def test_compiling_again_gives_the_same() -> None:
    if not shutil.which("p4c-bm2-ss"):
        pytest.skip("p4c-bm2-ss is not on PATH: that the sources compile to what is committed is not checked here")
    output = compile_sources(compiler_command())
    if output.version != json.loads(MANIFEST.read_text())["p4c"]:
        pytest.skip(f"p4c here is {output.version}, not the version that made what is committed")
    assert output.program == PROGRAM.read_text()
    assert output.p4info == P4INFO.read_text()


def test_every_table_and_action_of_p4info_has_a_stable_id() -> None:
    p4info = text_format.Parse(P4INFO.read_text(), p4i.P4Info())
    given = {table.preamble.alias: table.preamble.id for table in p4info.tables}
    assert given == {
        "node": 0x02000001,
        "flow": 0x02000002,
        "level": 0x02000003,
        "routing": 0x02000004,
        "next_hop": 0x02000005,
        "port": 0x02000006,
        "job": 0x02000007,
        "traffic_class": 0x02000008,
        "ecn": 0x02000009,
        "utilisation_window": 0x0200000A,
        "mtu": 0x0200000B,
        "node_id": 0x0200000C,
    }
    actions = {action.preamble.alias: action.preamble.id for action in p4info.actions}
    assert {name: actions[name] for name in ("set_node", "steer", "prioritise", "steer_and_prioritise")} == {
        "set_node": 0x01000001,
        "steer": 0x01000002,
        "prioritise": 0x01000003,
        "steer_and_prioritise": 0x01000004,
    }
    assert p4info.action_profiles[0].preamble.id == 0x11000001
    direct_counters = {counter.preamble.alias: counter.preamble.id for counter in p4info.direct_counters}
    assert direct_counters["flow_counter"] == 0x13000001
    counters = {counter.preamble.alias: counter.preamble.id for counter in p4info.counters}
    assert counters["level_counter"] == 0x12000001
    assert {meter.preamble.alias: meter.preamble.id for meter in p4info.meters} == {"packet_in_meter": 0x14000001}
