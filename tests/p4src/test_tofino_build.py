"""What is committed for Tofino: the twin of the v1model program by its P4Info, and what p4c makes of its sources."""

import hashlib
import json
import re
import shutil
from collections.abc import Mapping

import pytest
from finsy.proto import p4i
from google.protobuf import text_format

from p4src import P4INFO, SOURCES, TNA_MANIFEST, TNA_P4INFO
from p4src.compile import source_hashes
from p4src.compile_tofino import COMPILER, compile_sources

_ONLY_HERE = {
    # The controller fills the groups that a selector has there.
    "ecmp",
    # The chip adds, multiplies and shifts less: tables of constants know the results.
    *(f"hash_box_{number}" for number in range(4)),
    *("int_content_words", "int_hop_words", "int_more_words", "window_number", "window_step"),
}


@pytest.fixture(scope="module")
def twins() -> tuple[p4i.P4Info, p4i.P4Info]:
    return _read(P4INFO.read_text()), _read(TNA_P4INFO.read_text())


def test_tables_and_their_keys_are_those_of_v1model(twins: tuple[p4i.P4Info, p4i.P4Info]) -> None:
    ours, theirs = (_tables(each) for each in twins)
    assert set(theirs) - set(ours) == _ONLY_HERE
    for name, table in ours.items():
        assert theirs[name] == table, name


def test_actions_of_tables_are_those_of_v1model(twins: tuple[p4i.P4Info, p4i.P4Info]) -> None:
    ours, theirs = (
        {
            action.preamble.alias: action.preamble.id
            for action in each.actions
            if action.preamble.id in {reference.id for table in each.tables for reference in table.action_refs}
        }
        for each in twins
    )
    assert {name: theirs.get(name) for name in ours} == ours


def test_counters_meters_and_packet_headers_are_those_of_v1model(twins: tuple[p4i.P4Info, p4i.P4Info]) -> None:
    """p4c gives counters and meters for Tofino ids of its own, whatever the source says."""
    for kind in ("counters", "direct_counters", "meters"):
        ours, theirs = (
            {part.preamble.alias: (part.spec.unit, getattr(part, "size", None)) for part in getattr(each, kind)}
            for each in twins
        )
        assert ours == theirs, kind
    headers = [list(each.controller_packet_metadata) for each in twins]
    assert headers[0] == headers[1]


def test_hash_boxes_hold_the_numbers_that_their_comment_says() -> None:
    text = (SOURCES / "tna" / "hash_boxes.p4").read_text()
    found = {
        (int(box), int(byte)): int(number, 16)
        for byte, box, number in re.findall(r"(\d+): set_box_(\d)\((0x[0-9A-F]{4})\);", text)
    }
    assert found == {
        (box, byte): int.from_bytes(hashlib.sha256(f"trainyard ecmp {box} {byte}".encode()).digest()[:2], "big")
        for box in range(4)
        for byte in range(256)
    }


def test_the_manifest_names_the_sources_as_they_are() -> None:
    assert json.loads(TNA_MANIFEST.read_text())["sources"] == source_hashes("tna")


@pytest.mark.slow
def test_compiling_again_gives_the_same() -> None:
    if not shutil.which(COMPILER):
        pytest.skip(
            f"{COMPILER} is not on PATH: that the sources compile for Tofino to what is committed is not checked"
        )
    output = compile_sources()
    if output.version != json.loads(TNA_MANIFEST.read_text())["p4c"]:
        pytest.skip(f"p4c here is {output.version}, not the version that made what is committed")
    for path, content in output.files().items():
        assert path.read_bytes() == content, path.name


def _read(text: str) -> p4i.P4Info:
    return text_format.Parse(text, p4i.P4Info())


def _tables(p4info: p4i.P4Info) -> Mapping[str, tuple[int, int, list[tuple[int, str, int, int]]]]:
    """Of every table its id, its size and its key fields: number, name, width and kind of match."""
    return {
        table.preamble.alias: (
            table.preamble.id,
            table.size,
            [(field.id, field.name, field.bitwidth, field.match_type) for field in table.match_fields],
        )
        for table in p4info.tables
    }
