"""The Markdown pages of the project, and what the tests read from them."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]

_FENCE = re.compile(r"^```(\w*)")
_MARKUP = re.compile(r"[`*]|\[|\]\([^)]*\)")


def prose_lines(page: Path) -> list[str]:
    """Lines of ``page`` outside fenced and indented code."""
    lines = []
    fenced = False
    for line in page.read_text(encoding="utf-8").splitlines():
        if _FENCE.match(line.strip()):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            lines.append(line)
    return lines


def code_lines(page: Path) -> list[str]:
    """Lines of ``page`` inside code blocks, without indentation; continued lines are joined."""
    lines = []
    fenced = False
    for line in page.read_text(encoding="utf-8").splitlines():
        if _FENCE.match(line.strip()):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            lines.append(line.strip())
    return "\n".join(lines).replace("\\\n", " ").splitlines()


def anchors(page: Path) -> set[str]:
    """The link targets that the headings of ``page`` make, by the rule of GitHub and of MyST."""
    found: set[str] = set()
    for line in prose_lines(page):
        if line.startswith("#"):
            title = _MARKUP.sub("", line.lstrip("#").strip()).lower()
            found.add("".join(c for c in title if c.isalnum() or c in "-_ ").replace(" ", "-"))
    return found
