"""``trainyard import``: what it writes can be used, and where something is wrong it writes nothing."""

from pathlib import Path

from tests.topologies.imports.test_imports import ADDRESSES, CABLES, LAB
from tests.trainyard.cli.conftest import Trainyard


def test_tables_become_a_fabric_file(trainyard: Trainyard, tmp_path: Path) -> None:
    cables, addresses, output = (tmp_path / name for name in ("cables.csv", "ips.csv", "rack.yaml"))
    cables.write_text(CABLES)
    addresses.write_text(ADDRESSES)
    command = ("import", "cables", cables, "--switches", "leaf*", "--addresses", addresses, "--out", output)
    result = trainyard(*command, "--gbps", 100, "--port-names", "Ethernet1/{number}")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert trainyard("check", output).stdout == "ok\n"
    written = output.read_text()
    result = trainyard(*command)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{cables}: line 3: expected the speed of this cable; add --gbps" in result.stderr
    assert output.read_text() == written


def test_a_lab_becomes_a_fabric_file(trainyard: Trainyard, tmp_path: Path) -> None:
    lab = tmp_path / "lab.clab.yml"
    lab.write_text(LAB)
    result = trainyard("import", "containerlab", lab, "--gbps", 10, "--port-names", "eth{number}")
    assert (result.exit_code, result.stderr) == (0, "")
    (tmp_path / "rack.yaml").write_text(result.stdout)
    assert trainyard("check", tmp_path / "rack.yaml").stdout == "ok\n"
    assert trainyard("import", "containerlab", lab, "--host-kind", "bmv2").exit_code == 2


def test_options_without_which_nothing_can_be_told_are_asked_for(trainyard: Trainyard, tmp_path: Path) -> None:
    cables = tmp_path / "cables.csv"
    cables.write_text(CABLES)
    for options, complaint in (
        ([], "which devices are switches is not said: add --switches"),
        (["--switch-role", "leaf"], "which devices are switches is not said"),
        (["--switches", "leaf*", "--host-role", "server"], "--host-role: needs --devices"),
        (
            ["--switches", "leaf*", "--port-names", "Ethernet"],
            "--port-names: expected names of ports with {number} once",
        ),
    ):
        result = trainyard("import", "cables", cables, *options)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith(complaint)
