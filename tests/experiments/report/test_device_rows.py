"""Pictures of what devices ran."""

from typing import Any

import pytest
from matplotlib.colors import to_hex

from experiments.report.device_rows import device_rows
from experiments.report.figure import ReportFigure
from experiments.report.style import NUM_SERIES, colour, series_colour

NAMES = [
    {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "east, host 0"}},
    {"ph": "M", "name": "thread_name", "pid": 0, "tid": 0, "args": {"name": "device 0"}},
    {"ph": "M", "name": "thread_name", "pid": 0, "tid": 1, "args": {"name": "device 1"}},
]


def ran(name: str, client: str, device: int, start_ms: float, end_ms: float) -> dict[str, Any]:
    times = {"ts": start_ms * 1e3, "dur": (end_ms - start_ms) * 1e3}
    return {"ph": "X", "name": name, "pid": 0, "tid": device, "args": {"client": client}, **times}


def spans(figure: ReportFigure) -> dict[str, list[list[float]]]:
    """Return what is drawn: from and to of each bar, by colour."""
    (axes,) = figure.figure.axes
    found: dict[str, list[list[float]]] = {}
    for bars in axes.collections:
        for path in bars.get_paths():
            box = path.get_extents()
            found.setdefault(to_hex(bars.get_facecolor()[0]), []).append([round(box.x0, 6), round(box.x1, 6)])
    return {each: sorted(drawn) for each, drawn in found.items()}


def legend(figure: ReportFigure) -> list[str]:
    return [text.get_text() for each in figure.figure.legends for text in each.get_texts()]


def test_clients_have_colours_and_bars_end_where_the_picture_does() -> None:
    events = [
        *NAMES,
        ran("step", "bob#2", 0, 0, 10),
        ran("step", "alice#1", 0, 10, 14),
        ran("step", "alice#3", 1, 12, 30),
        ran("step", "alice#1", 1, 40, 50),
    ]
    figure = device_rows(events, "Two clients", 5, 20)
    assert figure.name == "two-clients"
    assert legend(figure) == ["alice", "bob"]
    assert spans(figure) == {series_colour(0): [[5, 9], [7, 15]], series_colour(1): [[0, 5]]}
    assert figure.figure.axes[0].get_xlim() == (0, 15)
    assert [text.get_text() for text in figure.figure.texts] == ["east, host 0"]
    assert figure.data.rows[0] == ("east, host 0", "device 0", "bob", "step", 0.0, 10.0)
    assert len(figure.data.rows) == 3


def test_computations_of_one_client_have_colours_by_name_without_their_numbers() -> None:
    events = [
        *NAMES,
        ran("forward-0", "me#1", 0, 0, 1),
        ran("forward-1", "me#1", 1, 1, 2),
        ran("update", "me#1", 0, 2, 4),
    ]
    figure = device_rows(events, "pipeline")
    assert legend(figure) == ["forward", "update"]
    assert spans(figure) == {series_colour(0): [[0, 1], [1, 2]], series_colour(1): [[2, 4]]}
    assert "coloured by computation: forward, update" in figure.description


def test_more_clients_than_colours_share_one() -> None:
    events = [ran("step", f"client {number:02}#1", 0, number, number + 1) for number in range(NUM_SERIES + 2)]
    events += [ran("step", "client 09#1", 0, 20, 21)]  # the most frequent one keeps its own
    figure = device_rows(events, "many")
    assert len(legend(figure)) == NUM_SERIES + 1
    assert "client 09" in legend(figure)
    assert spans(figure)[colour("quiet")] == [[7, 8], [8, 9]]


def test_where_nothing_ran_there_is_no_picture() -> None:
    with pytest.raises(ValueError, match="nothing ran from 2 to 3 ms"):
        device_rows([*NAMES, ran("step", "me#1", 0, 0, 1)], "idle", 2, 3)
    with pytest.raises(ValueError, match="nothing ran"):
        device_rows([], "empty")
