"""docs/fabric.md: its tables name the keys that there are, and what it shows is what its commands print and write."""

import re
from collections.abc import Mapping
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from controller.config import load_config
from tests.docs.pages import ROOT, code_lines
from tests.docs.test_commands import _commands
from tests.trainyard.cli.conftest import Trainyard, trainyard
from topologies.ecmp import hash_multipliers
from topologies.fabric_parts import (
    CableSpecification,
    HostSpecification,
    NicSpecification,
    PortSpecification,
    SwitchSpecification,
)
from topologies.fabric_specification import FabricSpecification
from topologies.imports import netbox
from topologies.routing import Routing
from workloads.loading import load_scenario, load_topology

__all__ = ["trainyard"]  # a fixture

PAGE = ROOT / "docs/fabric.md"
TEXT = PAGE.read_text(encoding="utf-8")
EXAMPLES = ROOT / "docs/examples"
RACK = EXAMPLES / "rack.yaml"


def _table_below(line: str) -> list[list[str]]:
    """Return the cells of the first table below a line, without its header."""
    below = dropwhile(lambda each: not each.startswith("|"), TEXT.partition(f"\n{line}\n")[2].splitlines())
    rows = takewhile(lambda each: each.startswith("|"), below)
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows][2:]


@pytest.mark.parametrize(
    ("line", "model"),
    [
        ("### The topology", FabricSpecification),
        ("### A host", HostSpecification),
        ("A NIC:", NicSpecification),
        ("### A switch", SwitchSpecification),
        ("A port:", PortSpecification),
        ("### A cable", CableSpecification),
    ],
)
def test_tables_have_every_key(line: str, model: type[BaseModel]) -> None:
    rows = {row[0].strip("`"): row for row in _table_below(line)}
    assert rows.keys() == model.model_fields.keys()
    for key, field in model.model_fields.items():
        assert (rows[key][2] == "required") == field.is_required(), key


def test_the_table_of_columns_is_that_of_the_import() -> None:
    rows = _table_below("### From NetBox")
    shown = [[set(re.findall(r"`([a-z0-9_]+)`", cell)) for cell in row[1:]] for row in rows]
    tables = netbox.CABLE_COLUMNS, netbox.DEVICE_COLUMNS, netbox.ADDRESS_COLUMNS, netbox.INTERFACE_COLUMNS
    assert shown == [[each.required, each.optional] for each in tables]


def test_the_rack_and_all_that_names_it_can_be_used() -> None:
    rack = load_topology(RACK)
    config = load_config(EXAMPLES / "rack-controller.yaml")
    assert config.topology == load_scenario(EXAMPLES / "rack-jobs.yaml").topology == rack
    assert [switch.device_id for switch in config.switch_addresses] == [1, 2, 3, 4]


def test_lines_shown_of_the_rack_are_in_its_file() -> None:
    block = TEXT.partition("```yaml\n")[2].partition("```")[0].splitlines()
    held = iter(RACK.read_text(encoding="utf-8").splitlines())
    for line in block:
        assert line.strip() == "# …" or line in held, line


def test_the_table_of_cables_is_what_is_printed(trainyard: Trainyard) -> None:
    printed = [line.split() for line in trainyard("topology", RACK).stdout.splitlines()]
    shown = [line.split() for line in code_lines(PAGE) if line.endswith("Gbit/s")]
    assert len(shown) == 8
    assert [line for line in printed if line[-1:] == ["Gbit/s"]] == shown


def test_switches_route_as_the_table_says() -> None:
    fabric = load_topology(RACK).build()
    routing = Routing(fabric, hash_multipliers(fabric.switches, seed=1))
    found = [
        [
            f"`{switch}`",
            f"`{route.address}/{route.prefix_length}`",
            ", ".join(str(fabric.links[link].source_port) for link in route.links),
        ]
        for switch in fabric.switches
        for route in routing.routes(switch)
    ]
    assert found == _table_below("Each switch then routes like this, by P4Runtime's port numbers:")


def _without_ports(specification: Mapping[str, Any]) -> dict[str, Any]:
    switches = [{key: value for key, value in each.items() if key != "ports"} for each in specification["switches"]]
    return {**specification, "switches": switches}


def test_the_import_gives_the_rack(trainyard: Trainyard, tmp_path: Path) -> None:
    (command,) = [words for words in _commands(PAGE) if words[:2] == ["import", "cables"]]
    words = [str(ROOT / word) if word.startswith("docs/") else word for word in command]
    output = tmp_path / "rack.yaml"
    result = trainyard(*words, "--out", output)
    assert (result.exit_code, result.stderr) == (0, "")
    imported, rack = load_topology(output), load_topology(RACK)
    # Connectors are split in the one, and the parts stand alone in the other.
    assert _without_ports(imported.model_dump()) == _without_ports(rack.model_dump())
    assert imported.build().links == rack.build().links


def test_the_lab_shown_can_be_imported(trainyard: Trainyard, tmp_path: Path) -> None:
    (command,) = [words for words in _commands(PAGE) if words[:2] == ["import", "containerlab"]]
    lab = TEXT.partition("### From containerlab")[2].partition("```yaml\n")[2].partition("```")[0]
    (tmp_path / "lab.clab.yml").write_text(lab, encoding="utf-8")
    words = [str(tmp_path / word) if word.endswith(("lab.clab.yml", "rack.yaml")) else word for word in command]
    result = trainyard(*words)
    assert (result.exit_code, result.stderr) == (0, "")
    assert load_topology(tmp_path / "rack.yaml").build().hosts == ("gpu1", "gpu2")
