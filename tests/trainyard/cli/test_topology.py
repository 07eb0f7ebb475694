"""``trainyard topology``: the cables of a file as a table, and the fabric as JSON."""

import json
from pathlib import Path

from tests.docs.pages import ROOT
from tests.trainyard.cli.conftest import Trainyard

FILE = ROOT / "docs/examples/class-room.yaml"


def test_a_table_has_every_cable(trainyard: Trainyard) -> None:
    result = trainyard("topology", FILE)
    assert result.exit_code == 0
    assert "4 hosts, 4 switches, 8 cables" in result.stdout
    assert ["t1", "4", "a1", "2", "0.1", "Gbit/s"] in [line.split() for line in result.stdout.splitlines()]


def test_json_has_all_that_other_programs_need(trainyard: Trainyard) -> None:
    found = json.loads(trainyard("topology", FILE, "--json").stdout)
    assert found["topology"]["kind"] == "clos"
    assert found["hosts"][1] == {
        "name": "h1",
        "nics": [{"mac": "02:00:00:00:01:01", "address": "10.0.1.1", "rate_bps": 1e8}],
    }
    assert found["switches"][2] == {"name": "a0", "device_id": 3, "num_ports": 2}
    assert found["cables"][-1] == {"ends": [["t1", 4], ["a1", 2]], "rate_bps": 1e8}


def test_a_bad_file_is_refused(trainyard: Trainyard, tmp_path: Path) -> None:
    result = trainyard("topology", tmp_path / "none.yaml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.endswith("none.yaml: cannot be read: No such file or directory\n")


def test_what_expand_writes_is_the_same_fabric(trainyard: Trainyard, tmp_path: Path) -> None:
    written = trainyard("expand", FILE)
    assert written.exit_code == 0, written.stderr
    file = tmp_path / "expanded.yaml"
    file.write_text(written.stdout)
    assert trainyard("check", file).stdout == "ok\n"
    one, other = (json.loads(trainyard("topology", each, "--json").stdout) for each in (FILE, file))
    assert all(one[key] == other[key] for key in ("hosts", "switches", "cables"))


def test_expand_leaves_out_nothing_of_a_fabric_file(trainyard: Trainyard, tmp_path: Path) -> None:
    rack = ROOT / "docs/examples/rack.yaml"
    file = tmp_path / "expanded.yaml"
    file.write_text(trainyard("expand", rack).stdout)
    one, other = (json.loads(trainyard("topology", each, "--json").stdout)["topology"] for each in (rack, file))
    assert one == other
