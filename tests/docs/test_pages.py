"""Links of the README, the changelog and the docs lead to files and headings that exist."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, anchors, prose_lines

_LINK = re.compile(r"\]\(([^)\s]+)\)")


def _broken(page: Path) -> list[str]:
    broken = []
    for target in _LINK.findall("\n".join(prose_lines(page))):
        if "://" in target or target.startswith("mailto:"):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    return broken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_local_links_lead_somewhere(page: Path) -> None:
    assert _broken(page) == []


def test_a_link_to_a_missing_heading_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One\n\n## `Two`, or *three*\n\n[a](#two-or-three) [b](#four) [c](other.md)\n", encoding="utf-8")
    assert _broken(page) == ["#four", "other.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_line_of_prose_is_a_comment_on_the_site(page: Path) -> None:
    """MyST leaves out lines that begin with a percent sign, also where a number stands at the end of the one before."""
    assert [line for line in prose_lines(page) if line.lstrip().startswith("%")] == []
