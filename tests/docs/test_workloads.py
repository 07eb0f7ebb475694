"""docs/workloads.md: its Python runs, its examples are what it shows, and its tables have all that there is."""

import re
import typing

from tests.docs.pages import ROOT
from workloads.chakra_workload import ChakraWorkload
from workloads.combined_workload import CombinedWorkload
from workloads.described.catalogue import PublicModel
from workloads.described.description import AnyLayer, ModelDescription
from workloads.described.devices import DeviceName
from workloads.loading import load_scenario

PAGE = (ROOT / "docs" / "workloads.md").read_text(encoding="utf-8")


def test_its_python_runs() -> None:
    found: dict[str, object] = {}
    exec("\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)), found)
    assert isinstance(found["model"], ModelDescription)
    assert not found["model"].needs_device


def test_its_scenario_can_be_run() -> None:
    scenario = load_scenario(ROOT / "docs" / "examples" / "my-model-jobs.yaml")
    assert [job.name for job in scenario.jobs] == ["mine", "llama", "vision"]
    load_scenario(ROOT / "docs" / "examples" / "combined-jobs.yaml")


def test_it_has_every_layer_with_its_keys() -> None:
    rows = {}
    for line in PAGE.partition("## Layers")[2].partition("- A multiplication")[0].splitlines():
        for kind in re.findall(r"`(\w+)`", line.split("|")[1] if line.startswith("| `") else ""):
            rows[kind] = set(re.findall(r"`(\w+)(?:: [^`]*)?`", line.split("|")[2]))
    union, _ = typing.get_args(AnyLayer)
    layers = {layer.model_fields["type"].default: layer for layer in typing.get_args(union)}
    assert rows.keys() - {"type"} == layers.keys()
    for kind, layer in layers.items():
        keys = layer.model_fields.keys() - {"type", "name", "forward_s", "backward_s"}
        assert rows[kind] >= keys, kind


def test_it_has_every_key_of_combined_parallelism() -> None:
    table = PAGE.partition("## Several parallelisms at once")[2].partition("| Parallelism |")[0]
    first_cells = " ".join(line.split("|")[1] for line in table.splitlines() if line.startswith("| `"))
    assert set(re.findall(r"`(\w+)`", first_cells)) == CombinedWorkload.model_fields.keys()


def test_it_has_every_key_of_execution_traces() -> None:
    table = PAGE.partition("## Execution traces")[2].partition("- **An iteration**")[0]
    first_cells = " ".join(line.split("|")[1] for line in table.splitlines() if line.startswith("| `"))
    assert set(re.findall(r"`(\w+)`", first_cells)) == ChakraWorkload.model_fields.keys()


def test_it_has_every_key_device_and_public_model() -> None:
    table = PAGE.partition("## A model's keys")[2].partition("## Layers")[0]
    assert set(re.findall(r"^\| `(\w+)`", table, re.MULTILINE)) == ModelDescription.model_fields.keys()
    assert all(f"`{name}`" in PAGE for name in (*DeviceName, *PublicModel))
