"""Files, modules and definitions that the README and the docs name in backticks exist."""

import importlib
import importlib.util
import re
from functools import cache
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, prose_lines

_FOLDERS = (
    *("benchmarks", "controller", "docs", "emulator", "experiments", "hostlib", "p4src", "policies", "runtime"),
    *("simulator", "tests", "topologies", "trainyard", "workloads"),
)
_QUOTED = re.compile(r"`([^`]+)`")
_FILE = re.compile(r"[\w.-]+(?:/[\w.-]+)*\.(?:py|pyi|p4|proto|yaml|toml|txtpb)")
_IN_FOLDER = re.compile(rf"(?:{'|'.join(_FOLDERS)})/[\w./-]*")
_DOTTED = re.compile(rf"(?:{'|'.join(_FOLDERS)})(?:\.\w+)+")
_DEFINED_IN = re.compile(r"`([\w.]+)` \(`([\w/]+\.(?:py|p4|proto))`\)")
_OTHERS = {"trainyard.policies", "trainyard.congestion_controls", "trainyard.json", "trainyard.db"}
"""Entry-point groups, and files."""
_CHANGELOG = ROOT / "CHANGELOG.md"  # names what was there at the time


@cache
def _file_names() -> frozenset[str]:
    return frozenset(path.name for folder in _FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file())


def _exists(dotted: str) -> bool:
    """Whether a dotted name is a module, or an attribute of one."""
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        module = ".".join(parts[:count])
        try:
            is_module = importlib.util.find_spec(module) is not None
        except ModuleNotFoundError:
            continue
        if is_module:
            found: object = importlib.import_module(module)
            for attribute in parts[count:]:
                if not hasattr(found, attribute):
                    return False
                found = getattr(found, attribute)
            return True
    return False


def _is_there(name: str) -> bool:
    if name in _OTHERS:
        return True
    if _IN_FOLDER.fullmatch(name):
        return (ROOT / name).exists()
    if _FILE.fullmatch(name):
        return (ROOT / name).exists() or ("/" not in name and name in _file_names())
    return not _DOTTED.fullmatch(name) or _exists(name)


def _missing(page: Path) -> list[str]:
    """Names of files and modules on ``page`` that do not exist, and definitions that are not in the file named."""
    text = " ".join(line.strip() for line in prose_lines(page))
    missing = [name for name in _QUOTED.findall(text) if not _is_there(name)]
    for name, file in _DEFINED_IN.findall(text):
        source = ROOT / file
        words = re.findall(r"\w+", source.read_text(encoding="utf-8")) if source.is_file() else []
        missing += [f"{name} ({file})"] if not set(name.split(".")) <= set(words) else []
    return missing


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page != _CHANGELOG], ids=lambda page: str(page.relative_to(ROOT))
)
def test_names_exist(page: Path) -> None:
    assert _missing(page) == []


@pytest.mark.parametrize(
    "text",
    [
        "`policies/none.py`",
        "`none.yaml`",
        "`controller/none/`",
        "`engine/loop.py`",
        "`workloads.none`",
        "`policies.plan.None_`",
        "`Planner.fly` (`controller/planning/planner.py`)",
    ],
)
def test_a_missing_name_is_found(text: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"There is {text}.\n", encoding="utf-8")
    assert len(_missing(page)) == 1


def test_names_that_exist_are_accepted(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    text = "`policies/plan.py`, `plan.py`, `policies.plan.Plan`, `policies/`, `Plan` (`policies/plan.py`), `a.b`\n"
    page.write_text(text, encoding="utf-8")
    assert _missing(page) == []
