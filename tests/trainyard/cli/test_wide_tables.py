"""A table in a file or a pipe is as wide as it needs to be: nobody sees there that columns are missing."""

from io import StringIO

import pytest

from trainyard.cli.output import PrintableConsole, number_table


@pytest.mark.parametrize(("columns", "is_whole"), [(None, True), ("40", False)])
def test_a_pipe_gets_all_columns_unless_its_width_is_given(
    columns: str | None, is_whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    headings = [f"heading-{number}" for number in range(20)]
    table = number_table("wide", *headings)
    table.add_row(*("1",) * len(headings))
    shown = StringIO()
    PrintableConsole(file=shown).print(table)
    assert (headings[-1] in shown.getvalue()) == is_whole
