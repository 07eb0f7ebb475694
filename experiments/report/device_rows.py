"""What devices ran and flows carried over time, a row for each, from events of the Trace Event Format."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from experiments.report.figure import (
    MARGIN_PT,
    FigureData,
    ReportFigure,
    add_axes,
    add_legend,
    add_text,
    figure_settings,
    legend_height,
    new_figure,
    shortened,
    slug,
)
from experiments.report.style import NUM_SERIES, SMALL_FONT_PT, colour, series_colour

_ROW_PT, _HEADING_PT, _AXIS_PT = 9.0, 12.0, 24.0
_COLUMNS, _LETTERS = 3, 16
_OTHERS = "others"
_US_PER_MS = 1e3

Row = tuple[int, int]
"""A device: its process and its thread there."""


@dataclass(frozen=True, slots=True)
class _Ran:
    """A computation; times in milliseconds. ``kind`` is what it is coloured by."""

    row: Row
    client: str
    name: str
    start_ms: float
    end_ms: float
    kind: str = ""


def device_rows(
    events: Sequence[Mapping[str, Any]], title: str, from_ms: float = 0.0, to_ms: float | None = None
) -> ReportFigure:
    """Draw what each device ran, and each flow carried, between two times; the picture counts from the first of them.

    Colours are those of clients. Where there is one client, computations have colours by their names, without numbers
    at the end.

    Args:
        events: Complete events (``X``) that name their client, or as transfers their job, and names of processes and
            threads (``M``).
        title: The heading, and the stem of the file.
        from_ms: Where the picture begins.
        to_ms: Where it ends; by default with the last computation.

    Raises:
        ValueError: Nothing ran between these times.
    """
    ran = list(_ran(events))
    end_ms = max((each.end_ms for each in ran), default=0.0) if to_ms is None else to_ms
    shown = _coloured([each for each in ran if each.end_ms > from_ms and each.start_ms < end_ms])
    if not shown:
        raise ValueError(f"nothing ran from {from_ms:g} to {end_ms:g} ms")
    hosts, devices = _names(events)
    tops, height = _places({each.row for each in shown} | devices.keys())
    colours = _colours([each.kind for each in shown])
    handles = [Patch(color=found, label=shortened(kind, _LETTERS)) for kind, found in colours.items()]
    above = MARGIN_PT + legend_height(len(handles), _COLUMNS)
    with figure_settings():
        figure = new_figure(above + height + _AXIS_PT)
        add_legend(figure, MARGIN_PT, handles, _COLUMNS)
        axes = add_axes(figure, above, height)
        axes.set_facecolor("none")
        axes.set_xlim(0, end_ms - from_ms)
        axes.set_ylim(height, 0)
        axes.set_yticks([])
        axes.xaxis.set_major_locator(MaxNLocator(6, prune="upper"))  # the figure ends with the axis
        axes.set_xlabel("ms", fontsize=SMALL_FONT_PT, color=colour("quiet"), labelpad=1)
        for host in dict.fromkeys(process for process, _ in tops):
            top = min(top for row, top in tops.items() if row[0] == host)
            add_text(figure, above + top - 2, hosts.get(host, f"process {host}"), fontsize=SMALL_FONT_PT)
        for row, top in tops.items():
            axes.axhspan(top, top + _ROW_PT - 2, color=colour("track"), linewidth=0)
            for kind, found in colours.items():
                spans = [
                    (max(each.start_ms, from_ms) - from_ms, min(each.end_ms, end_ms) - max(each.start_ms, from_ms))
                    for each in shown
                    if each.row == row and each.kind == kind
                ]
                edge = colour("sheet")
                axes.broken_barh(spans, (top, _ROW_PT - 2), facecolor=found, edgecolor=edge, linewidth=0.25)
    by = "client" if len({each.client for each in shown}) > 1 else "computation"
    flows = {(each["pid"], each["tid"]) for each in events if each.get("cat") == "transfer"} & tops.keys()
    carried = f" and {len(flows)} flows carried" if flows else ""
    what = f"What {len(tops) - len(flows)} devices ran{carried} in {end_ms - from_ms:.0f} ms"
    words = f"{what}, coloured by {by}: {', '.join(colours)}"
    rows = [
        (hosts.get(each.row[0]), devices.get(each.row), each.client, each.name, each.start_ms, each.end_ms)
        for each in sorted(shown, key=lambda each: (each.row, each.start_ms))
    ]
    columns = ("host", "device", "client", "computation", "start_ms", "end_ms")
    return ReportFigure(slug(title), title, words, figure, FigureData(columns, tuple(rows)))


def _ran(events: Iterable[Mapping[str, Any]]) -> Iterator[_Ran]:
    for event in events:
        if event["ph"] == "X":
            start_ms = event["ts"] / _US_PER_MS
            client = event["args"].get("client", event["args"].get("job", ""))
            client = client.partition("#")[0]  # without the number of the connection
            end_ms = start_ms + event["dur"] / _US_PER_MS
            yield _Ran((event["pid"], event["tid"]), client, event["name"], start_ms, end_ms)


def _coloured(ran: Sequence[_Ran]) -> list[_Ran]:
    """Say what each computation is coloured by; what has no colour of its own is one of the others."""
    has_clients = len({each.client for each in ran}) > 1
    kinds = [each.client if has_clients else re.sub(r"-\d+$", "", each.name) for each in ran]
    common = {kind for kind, _ in Counter(kinds).most_common(NUM_SERIES)}
    return [
        _Ran(each.row, each.client, each.name, each.start_ms, each.end_ms, kind if kind in common else _OTHERS)
        for each, kind in zip(ran, kinds, strict=True)
    ]


def _colours(kinds: Sequence[str]) -> dict[str, str]:
    colours = {kind: series_colour(number) for number, kind in enumerate(sorted(set(kinds) - {_OTHERS}))}
    return colours | ({_OTHERS: colour("quiet")} if _OTHERS in kinds else {})


def _names(events: Iterable[Mapping[str, Any]]) -> tuple[dict[int, str], dict[Row, str]]:
    """Return the names of processes, which are hosts, and of their threads, which are devices."""
    hosts: dict[int, str] = {}
    devices: dict[Row, str] = {}
    for event in events:
        if event["ph"] == "M" and event["name"] == "process_name":
            hosts[event["pid"]] = event["args"]["name"]
        elif event["ph"] == "M" and event["name"] == "thread_name":
            devices[event["pid"], event["tid"]] = event["args"]["name"]
    return hosts, devices


def _places(rows: Iterable[Row]) -> tuple[dict[Row, float], float]:
    """Return the upper edge of each row, below a heading for its host, and the height of all."""
    tops: dict[Row, float] = {}
    height, last = 0.0, None
    for row in sorted(rows):
        height += _HEADING_PT if row[0] != last else 0.0
        tops[row] = height
        height, last = height + _ROW_PT, row[0]
    return tops, height
