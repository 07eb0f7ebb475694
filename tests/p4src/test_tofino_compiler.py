"""What is made of p4c's output for Tofino, and what is said where p4c is missing or another one."""

import json
from pathlib import Path

import pytest

from p4src import compile_tofino
from p4src.compile_tofino import TofinoOutput, compile_sources, main
from p4src.tofino_resources import resources_table

_P4C = """#!/bin/sh
[ "$1" = --version ] && echo 'p4c 1.2.5.16 (SHA: 34b86e9 BUILD: Release)' && exit
while [ $# -gt 1 ]; do
    case $1 in
        -o) out=$2 ;;
        --p4runtime-files) p4info=$2 ;;
    esac
    shift
done
"""
_WRITES = """
mkdir -p "$out/pipe/logs"
printf 'tables {\\n  preamble {\\n    name: "ingress.flow"\\n  }\\n  size: 64\\n}\\n' > "$p4info"
printf '\\002run_id\\000\\021\\000\\000\\000%s\\000' 0123456789abcdef > "$out/pipe/tofino.bin"
echo '{"build_date": "Sat Nov 28 01:20:11 2026", "run_id": "0123456789abcdef"}' > "$out/pipe/context.json"
echo '{"resources": {"mau": {"mau_stages": []}}}' > "$out/pipe/logs/resources.json"
echo '{"containers": []}' > "$out/pipe/logs/phv.json"
"""


def _install(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    compiler = folder / "p4c"
    compiler.write_text(script)
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_a_missing_compiler_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main() == 1
    assert capsys.readouterr().err == "p4c is not on PATH\n"


def test_a_compiler_that_writes_nothing_for_tofino_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _install(tmp_path, monkeypatch, _P4C)
    assert main() == 1
    assert capsys.readouterr().err.endswith("p4info.txtpb: has it the Tofino back end?\n")


def test_a_compiler_that_fails_gives_its_exit_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _install(tmp_path, monkeypatch, _P4C + "exit 3\n")
    monkeypatch.setattr(compile_tofino.TofinoOutput, "files", lambda _: pytest.fail("nothing is written"))
    assert main() == 3


def test_output_has_neither_time_nor_name_of_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _install(tmp_path, monkeypatch, _P4C + _WRITES)
    output: TofinoOutput = compile_sources()
    assert output.version == "1.2.5.16"
    assert output.binary == b"\x02run_id\0\x11\0\0\0" + b"0" * 16 + b"\0"
    assert json.loads(output.context) == {"build_date": "Thu Jan  1 00:00:00 1970", "run_id": "0" * 16}


def test_resources_are_told_by_table(tmp_path: Path) -> None:
    stages = [
        {
            "stage_number": number,
            "logical_tables": {"ids": [{"table_name": name} for name in names]},
            "rams": {"srams": [{"usages": [{"used_by": name}]} for name in names]},
            "tcams": {"tcams": [{"usages": [{"used_by": "ingress.job"}]}] if number == 3 else []},
        }
        for number, names in enumerate(
            (["ingress.flow$st0"], [".ingress.flow"], [], ["ingress.flow", "ingress.job"], ["tbl_hidden"])
        )
    ]
    container = {"container_type": "normal", "bit_width": 32}
    phv = [container | {"phv_number": number} for number in (0, 1, 1)]
    (tmp_path / "resources.json").write_text(json.dumps({"resources": {"mau": {"mau_stages": stages}}}))
    (tmp_path / "phv.json").write_text(json.dumps({"containers": phv}))
    assert resources_table(tmp_path, {"ingress.flow": 65536, "ingress.job": 0}).splitlines() == [
        "4 of 12 stages, 5 of 960 blocks of SRAM, 1 of 288 blocks of TCAM.",
        "",
        "| | Entries | Stages | SRAM | TCAM |",
        "|---|---|---|---|---|",
        "| ingress.flow | 65,536 | 0-1, 3 | 3 |  |",
        "| ingress.job |  | 3 | 1 | 1 |",
        "| conditions, actions without a table, checksums |  | 4 | 1 |  |",
        "",
        "| Containers | Taken | Of |",
        "|---|---|---|",
        "| normal, 32 bits | 2 | 64 |",
    ]
