"""The tables of the configuration and of log messages name the keys and messages that the controller has."""

import ast
import re
from pathlib import Path

import yaml
from prometheus_client import Metric
from prometheus_client.metrics import MetricWrapperBase

from controller import metrics
from controller.config import ControllerConfig
from controller.events import EventKind
from controller.reload.keys import CHANGES

ROOT = Path(__file__).resolve().parents[2]


def _first_column(page: str, heading: str) -> list[str]:
    """Return the code in the first cell of every row of the first table below a heading of a page."""
    section = (ROOT / "docs" / page).read_text(encoding="utf-8").partition(f"{heading}\n")[2].partition("\n#")[0]
    return re.findall(r"^\| `([^`]+)`", section, re.MULTILINE)


def _texts() -> str:
    """Return all string literals of the controller, one per line."""
    return "\n".join(
        node.value
        for path in (ROOT / "controller").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def test_every_configuration_key_is_documented() -> None:
    assert set(_first_column("configuration.md", "# Configuration of the controller")) == set(
        ControllerConfig.model_fields
    )


def _rows(page: str, heading: str) -> list[list[str]]:
    """Return the cells of every row of the first table below a heading of a page."""
    section = (ROOT / "docs" / page).read_text(encoding="utf-8").partition(f"{heading}\n")[2].partition("\n#")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("|")]
    return rows[2:]


def test_documented_log_messages_exist() -> None:
    texts = _texts()
    messages = [
        message
        for row in (*_rows("monitoring.md", "### Events"), *_rows("monitoring.md", "### Other lines"))
        for message in re.findall(r"`([^`]+)`", row[2] if len(row) > 3 else row[0])
    ]
    assert len(messages) > 30
    for message in messages:
        assert all(part.strip(" :,;()") in texts for part in message.split("…")), message


def test_every_kind_of_event_is_documented() -> None:
    assert [row[0].strip("`") for row in _rows("monitoring.md", "### Events")] == [str(kind) for kind in EventKind]


def test_every_metric_is_documented_with_its_labels_and_its_help() -> None:
    declared = []
    for each in vars(metrics).values():
        if isinstance(each, metrics.State):
            family: Metric = each.family({})
            labels = each.labels
        elif isinstance(each, MetricWrapperBase):
            (family,) = each.describe()
            labels = each._labelnames
        else:
            continue
        name = f"{family.name}_total" if family.type == "counter" else family.name
        by = f" by {', '.join(f'`{label}`' for label in labels)}" if labels else ""
        declared.append([f"`{name}`", f"{family.type}{by}", family.documentation])
    assert [row for row in _rows("monitoring.md", "## Metrics") if "process_" not in row[0]] == declared


def test_the_page_about_reloads_says_of_every_key_what_a_reload_does() -> None:
    documented = {row[0].strip("`"): row[1] for row in _rows("reload.md", "## What can change")}
    assert documented == {key: str(CHANGES.get(key, "restart")) for key in ControllerConfig.model_fields}


def test_documented_refusals_of_fabrics_exist() -> None:
    texts = _texts()
    messages = [
        found
        for row in _rows("reload.md", "## What a fabric change may do")
        for found in re.findall(r"`([^`]+…[^`]*|[^`]{30,})`", row[0])
    ]
    assert len(messages) > 6
    for message in messages:
        assert all(part.strip(" :,;()") in texts for part in message.split("…")), message


def test_every_alert_is_documented_with_its_severity_and_its_patience() -> None:
    (group,) = yaml.safe_load((ROOT / "deploy" / "prometheus" / "alerts.yml").read_text())["groups"]
    alerts = [[f"`{each['alert']}`", each["labels"]["severity"], each.get("for", "at once")] for each in group["rules"]]
    assert [[row[0], row[1], row[3]] for row in _rows("monitoring.md", "## Alerts and dashboards")] == alerts
    answered = [alert for row in _rows("operations.md", "### Alerts") for alert in row[0].split(", ")]
    assert answered == [alert for alert, _, _ in alerts]
