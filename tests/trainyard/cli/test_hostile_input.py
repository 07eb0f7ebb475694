"""Files that somebody made to hang a command, to end it in a traceback, or to control the terminal."""

import json
import os
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from rich.text import Text

from tests.trainyard.cli.conftest import Trainyard
from trainyard.cli.output import PrintableConsole, number_table

_READERS = {
    "check": ("check", "{file}"),
    "plan --diff": ("plan", "{scenario}", "--diff", "{file}"),
    "sweep": ("sweep", "{file}", "--out", "{folder}/out.jsonl"),
    "sweep --out": ("sweep", "{scenario}", "--out", "{file}"),
    "controller": ("controller", "--config", "{file}"),
    "emulator --topology": ("emulator", "--topology", "{file}"),
    "emulator --p4info": ("emulator", "--topology", "{scenario}", "--p4info", "{file}", "--json", "{file}"),
    "coflows": ("coflows", "{file}", "--policy", "fair"),
    "evaluate coflow": ("evaluate", "coflow", "{file}"),
    "trace --assumptions": ("trace", "{folder}", "--assumptions", "{file}"),
    "replay": ("replay", "{file}"),
}

Refused = Callable[..., str]


@pytest.fixture
def refused(trainyard: Trainyard, write: Callable[[object], Path], document: object, tmp_path: Path) -> Refused:
    """Gives a file to a command, which must refuse it with one line or a few; returns them."""
    scenario = write(document)

    def call(reader: str, file: Path) -> str:
        names = {"file": file, "scenario": scenario, "folder": tmp_path}
        ended = trainyard(*(argument.format(**names) for argument in _READERS[reader]))
        assert (ended.exit_code, ended.stdout) == (2, "")
        assert ended.stderr.replace("\n", "").isprintable()
        assert len(ended.stderr) < 20_000
        return ended.stderr

    return call


@pytest.mark.parametrize("reader", _READERS)
def test_devices_and_folders_are_refused_by_name(reader: str, refused: Refused, tmp_path: Path) -> None:
    assert refused(reader, Path("/dev/zero")).startswith("/dev/zero: cannot be ")
    if reader != "sweep --out":  # its option says what it expects
        assert refused(reader, tmp_path) == f"{tmp_path}: cannot be read: Is a directory\n"


@pytest.mark.parametrize("reader", _READERS)
def test_a_pipe_that_nobody_writes_does_not_hang(
    reader: str, refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topologies.files.PATIENCE_S", 0.01)
    os.mkfifo(tmp_path / "fifo")
    assert refused(reader, tmp_path / "fifo").startswith(f"{tmp_path / 'fifo'}: cannot be ")


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe\x00\x00",
        b"\x00" * 100,
        "name: a\n".encode("utf-16"),
        b"9" * 5000,
        b"9" * 5000 + b" 1\n",
        b"4 1\nc 0 1 0 1 " + b"1" * 5000 + b":1\n",
        b"4 1\nc 0 1 0 1 1:5.0e-324\n",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'"\\e]0;owned\\a": 1\n"\xc2\x9b31m": 2\n',
        b"\x1b]0;owned\x07: 1\n",
        b"name: !!binary aGk=\n",
        b"? [a]\n: 1\n",
        b"k" * 200_000 + b": 1\n",
        b"name: " + b"n" * 200_000,
    ],
    ids=range(15),
)
@pytest.mark.parametrize("reader", _READERS)
def test_any_content_is_refused_in_short_printable_lines(
    reader: str, content: bytes, refused: Refused, tmp_path: Path
) -> None:
    file = tmp_path / "\x1b[31mred"
    file.write_bytes(content)
    assert "\\x1b[31mred" in refused(reader, file)


def test_a_number_too_small_to_divide_by_is_refused_with_its_key(
    trainyard: Trainyard, write: Callable[[object], Path], document: dict[str, dict[str, float]]
) -> None:
    document["topology"]["host_link_gbps"] = 5.0e-324
    path = write(document)
    ended = trainyard("check", path)
    assert ended.stderr == f"{path}: topology.host_link_gbps: expected at least 1e-06, got 5e-324\n"


def test_the_first_hundred_problems_are_told(
    trainyard: Trainyard, write: Callable[[object], Path], document: dict[str, object]
) -> None:
    ended = trainyard("check", write(document | {f"key{number}": 1 for number in range(150)}))
    assert ended.stderr.count("\n") == 101
    assert ended.stderr.endswith("\nand 50 more problems\n")


def test_tables_show_no_control_characters() -> None:
    table = number_table("t\x1b[2J", "Job")
    table.add_row(Text("a\x1b[31m\x9b\u202eb"))
    shown = StringIO()
    PrintableConsole(file=shown, width=80).print(table, Text("c\rd\N{NO-BREAK SPACE}"))
    assert r"a\x1b[31m\x9b\u202eb" in shown.getvalue()
    assert r"t\x1b[2J" in shown.getvalue()
    assert shown.getvalue().replace("\n", "").replace("\N{NO-BREAK SPACE}", " ").isprintable()


def test_a_record_with_more_flows_than_its_job_is_refused_at_once(trainyard: Trainyard, tmp_path: Path) -> None:
    topology = {"kind": "star", "hosts": 2, "host_link_gbps": 100}
    setting = {"topology": topology, "hash_seed": 1, "policy": "crux", "num_levels": 8, "seed": 1}
    job = {"arrival_s": 0, "gpus": 1, "profile": [1, 0, 1], "candidates": [], "groups": [], "measured_hosts": []}
    order = {"rank": 0, "level": 0, "intensity": 0, "correction_factor": 0, "priority": 0, "time_shift_s": 0}
    lines = [
        {"format": "trainyard-record", "version": 1},
        {"fact": "controller", "key": "", "body": setting},
        {"fact": "job", "key": "a", "body": job},
        {"fact": "order", "key": "a", "body": order | {"reason": "", "flows": [[10**12, 7, 0], [-(10**12), 7, 0]]}},
        {"fact": "paths", "key": "a", "body": []},
        {"plan": 1, "previous": 0, "time_s": 0},
        {"end": 6},
    ]
    path = tmp_path / "record.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    ended = trainyard("replay", path)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "expected a level for each of its 0 flows" in ended.stderr
