"""Tables on terminals of any width, and in files and pipes."""

import re
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from experiments.report.numbers import count, percent, quantity, seconds
from trainyard.cli.output import PrintableConsole, number_table

_NUMBERS = st.one_of(
    st.integers(0, 10**12).map(count),
    st.floats(0.0, 1e21).map(quantity),
    st.floats(0.0, 1.0).map(percent),
    st.floats(0.0, 1e6).map(seconds),
    st.floats(0.0, 1e6).map(lambda age_s: f"{age_s:.1f} s ago"),
    st.sampled_from(["100 Gbit/s", count(None)]),
)
_NAMES = st.text("abcdefghij-./>", min_size=1, max_size=60)
_HEADINGS = st.text("abcdefghij ", min_size=1, max_size=16).map(str.strip).filter(bool)


def _shown(width: int | None, title: str, headings: list[str], rows: list[list[str]]) -> str:
    table = number_table(title, *headings)
    for name, *numbers in rows:
        table.add_row(Text(name), *numbers)
    shown = StringIO()
    PrintableConsole(file=shown, width=width).print(table)
    return shown.getvalue()


def _without_layout(text: str) -> str:
    return re.sub(r"[\s\u2500]", "", text)


@given(st.data(), st.integers(20, 200), st.integers(2, 9), st.integers(1, 4))
def test_at_any_width_every_number_is_whole_and_nothing_is_dropped(
    data: st.DataObject, width: int, num_columns: int, num_rows: int
) -> None:
    headings = data.draw(st.lists(_HEADINGS, min_size=num_columns, max_size=num_columns))
    rows = [[data.draw(_NAMES), *(data.draw(_NUMBERS) for _ in range(num_columns - 1))] for _ in range(num_rows)]
    title = "A title of several words"
    shown = _shown(width, title, headings, rows)
    lines = shown.splitlines()
    assert max(map(len, lines)) <= width
    for _, *numbers in rows:
        for number in numbers:
            digits = number.split()[0]
            assert any(digits in line for line in lines), (digits, shown)
    # Names continue in the next line, between other cells: their characters are all there.
    cells = "".join(cell for row in rows for cell in row)
    table = title + "".join(headings) + cells
    paragraphs = title + ("".join(headings) + ":" * num_columns) * num_rows + cells
    everything = sorted(_without_layout(shown))
    assert everything in (sorted(_without_layout(table)), sorted(_without_layout(paragraphs)))


def test_a_row_becomes_a_paragraph_where_numbers_need_more_than_a_line() -> None:
    shown = _shown(20, "Jobs", ["Job", "Bytes", "Rate"], [["gpt", "123,456,789,012", "100 Gbit/s"]])
    assert shown.split("\n") == ["Jobs", "", "Job: gpt", "Bytes: ", "123,456,789,012", "Rate: 100 Gbit/s", "", ""]


def test_names_give_way_before_a_table_becomes_paragraphs() -> None:
    shown = _shown(30, "Jobs", ["Job", "Bytes"], [["a-job-with-a-name-of-no-end", "123,456,789"]])
    lines = [line.split() for line in shown.splitlines()]
    assert lines[4:6] == [["a-job-with-a-na", "123,456,789"], ["me-of-no-end"]]


@pytest.mark.parametrize("forced", [False, True])
def test_a_pipe_gets_every_row_in_one_line_also_where_colours_are_asked_for(
    forced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if forced:
        monkeypatch.setenv("FORCE_COLOR", "1")
    headings = [f"heading-{number}" for number in range(300)]
    shown = _shown(None, "a title " * 50, headings, [["n" * 500, *["1"] * 299]])
    lines = [re.sub(r"\x1b\[[\d;]*m", "", line) for line in shown.splitlines()]
    assert lines[0].strip() == ("a title " * 50).strip()
    assert [line.split() for line in lines if "n" * 500 in line] == [["n" * 500, *["1"] * 299]]


def test_a_width_that_the_environment_gives_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert max(map(len, _shown(None, "wide", ["Name", "Number"], [["n" * 500, "1"]]).splitlines())) <= 40
