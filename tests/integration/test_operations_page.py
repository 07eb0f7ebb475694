"""The tables of docs/operations.md name the configuration keys and log messages that the controller has."""

import ast
import re
from pathlib import Path

from controller.config import ControllerConfig

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")


def _first_column(heading: str) -> list[str]:
    """Return the code in the first cell of every row of the first table below a heading."""
    section = PAGE.partition(f"\n{heading}\n")[2].partition("\n#")[0]
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
    assert set(_first_column("## Configuration")) == set(ControllerConfig.model_fields)


def test_documented_log_messages_exist() -> None:
    texts = _texts()
    messages = _first_column("### Log messages")
    assert messages
    for message in messages:
        assert all(part.strip(" :,") in texts for part in message.split("…")), message
