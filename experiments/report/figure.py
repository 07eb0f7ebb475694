"""A figure of a report: what matplotlib draws, its data, and how both are saved or embedded in a page."""

import csv
import io
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree  # nosec B405 # parses only what Matplotlib has written

import matplotlib
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from experiments.report.style import COLOURS, FIGURE_SETTINGS, FONT_PT, SMALL_FONT_PT, WIDTH_PT, FigureFormat, colour

MARGIN_PT = 6.0

_LETTER, _BOLD_LETTER = 0.58, 0.66  # mean width of a letter, in parts of the font size

Value = str | float | None
"""A cell of a figure's data; None where there is no value."""


@dataclass(frozen=True, slots=True)
class FigureData:
    """The values that a figure shows, as a table."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]

    def to_csv(self) -> str:
        """Return the table as CSV with a header line; empty cells stand for missing values."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return text.getvalue()


@dataclass(frozen=True, slots=True)
class ReportFigure:
    """A figure with its data and words.

    Attributes:
        name: The stem of its files, made of lower-case letters, digits and hyphens.
        title: Its heading on a page.
        description: Its text alternative for readers who do not see it.
        figure: The matplotlib figure, independent of any global state of matplotlib.
        data: The values that it shows.
        tooltips: Words shown over single marks, by the ``gid`` of the mark.
    """

    name: str
    title: str
    description: str
    figure: Figure
    data: FigureData
    tooltips: Mapping[str, str] = field(default_factory=dict)


class Tooltips:
    """Words for single marks of one figure."""

    def __init__(self) -> None:
        """Start without any."""
        self.words: dict[str, str] = {}

    def add(self, artist: Artist, words: str) -> None:
        """Show words over a mark."""
        gid = f"tip-{len(self.words)}"
        artist.set_gid(gid)
        self.words[gid] = words


@contextmanager
def figure_settings() -> Iterator[None]:
    """Draw or save with the settings of reports, and restore those of the caller."""
    settings: Any = dict(FIGURE_SETTINGS)  # the keys that matplotlib expects are a long Literal
    with warnings.catch_warnings(), matplotlib.rc_context(settings):
        # A name may have characters that the font lacks. A reader of the page has other fonts.
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from", category=UserWarning)
        yield


def new_figure(height_pt: float) -> Figure:
    """Return an empty figure of the usual width."""
    return Figure(figsize=(WIDTH_PT / 72, height_pt / 72), dpi=72)


def add_axes(figure: Figure, top_pt: float, height_pt: float, left_pt: float = MARGIN_PT) -> Axes:
    """Add axes at a distance from the figure's top and left; they end at the right margin."""
    width_pt, total_pt = WIDTH_PT - MARGIN_PT - left_pt, figure.get_figheight() * 72
    return figure.add_axes(
        (left_pt / WIDTH_PT, 1 - (top_pt + height_pt) / total_pt, width_pt / WIDTH_PT, height_pt / total_pt)
    )


def add_text(figure: Figure, top_pt: float, words: str, x_pt: float = MARGIN_PT, **properties: Any) -> Text:
    """Add a line of words whose baseline is at a distance from the figure's top."""
    return figure.text(x_pt / WIDTH_PT, 1 - top_pt / (figure.get_figheight() * 72), words, **properties)


def add_label(figure: Figure, top_pt: float, label: str, note: str) -> None:
    """Add a line with a bold label at the left, cut where it would meet the note at the right."""
    room_pt = WIDTH_PT - 3 * MARGIN_PT - len(note) * SMALL_FONT_PT * _LETTER
    fitting = max(int(room_pt / (FONT_PT * _BOLD_LETTER)), 8)
    add_text(figure, top_pt, shortened(label, fitting), fontweight="bold")
    right_pt = WIDTH_PT - MARGIN_PT
    add_text(figure, top_pt, note, right_pt, ha="right", fontsize=SMALL_FONT_PT, color=colour("quiet"))


def add_legend(figure: Figure, top_pt: float, handles: Sequence[Artist], columns: int) -> None:
    """Add a legend, row by row, whose upper edge is at a distance from the figure's top."""
    if not handles:
        return
    figure.legend(
        handles=[handle for column in range(columns) for handle in handles[column::columns]],
        loc="upper left",
        bbox_to_anchor=(MARGIN_PT / WIDTH_PT, 1 - top_pt / (figure.get_figheight() * 72)),
        ncols=columns,
        borderpad=0,
        borderaxespad=0,
        handlelength=1.4,
        handleheight=0.9,
        handletextpad=0.5,
        columnspacing=1.2,
        labelspacing=0.4,
    )


def legend_height(entries: int, columns: int) -> float:
    """Return the height of a legend in points, with the gap below it."""
    return -(-entries // columns) * (SMALL_FONT_PT + 4) + 6 if entries else 0.0


def shortened(name: str, letters: int) -> str:
    """Return a name cut to a number of letters, with an ellipsis where it is longer."""
    return name if len(name) <= letters else f"{name[: letters - 1]}\N{HORIZONTAL ELLIPSIS}"


def slug(words: str) -> str:
    """Return words as a part of a file name: lower-case letters, digits and hyphens, at most 60."""
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")[:60].strip("-") or "figure"


def with_unique_names(figures: Iterable[ReportFigure]) -> list[ReportFigure]:
    """Number figures that would otherwise have the same name."""
    taken: set[str] = set()
    unique = []
    for figure in figures:
        name, number = figure.name, 2
        while name in taken:
            name, number = f"{figure.name}-{number}", number + 1
        taken.add(name)
        unique.append(figure if name == figure.name else replace(figure, name=name))
    return unique


def save_figure(figure: ReportFigure, path: Path, file_format: FigureFormat) -> None:
    """Write a figure to a file. Raises OSError where that cannot be written."""
    with figure_settings():
        figure.figure.savefig(path, format=file_format, metadata=_METADATA[file_format])


def save_figures(figures: Iterable[ReportFigure], folder: Path, file_format: FigureFormat) -> list[Path]:
    """Write every figure and its data as CSV beside it.

    Returns:
        The paths of the figures.

    Raises:
        OSError: A file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for figure in figures:
        paths.append(folder / f"{figure.name}.{file_format}")
        save_figure(figure, paths[-1], file_format)
        (folder / f"{figure.name}.csv").write_text(figure.data.to_csv(), encoding="utf-8")
    return paths


# Without dates and versions, the same figure gives the same bytes.
_METADATA: Mapping[FigureFormat, dict[str, Any]] = {
    FigureFormat.PNG: {"Software": None},
    FigureFormat.SVG: {"Date": None, "Creator": None},
    FigureFormat.PDF: {"CreationDate": None, "Creator": None, "Producer": None},
}

_NAMES_BY_COLOUR = {both.light: name for name, both in COLOURS.items()}
_FONT = re.compile(r"font-family: [^;]*;?\s*")
_LONG_FRACTION = re.compile(r"(\.\d\d)\d+")  # finer than any screen
_HEX = re.compile(r"#[0-9a-f]{6}\b")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")


def embedded_svg(figure: ReportFigure) -> str:
    """Return the figure as an SVG element for a page.

    Its colours are the page's CSS variables, its font is the page's, and its identifiers are unique among figures of
    different names.
    """
    drawn = io.StringIO()
    with figure_settings():
        figure.figure.savefig(drawn, format="svg", facecolor="none", metadata=_METADATA[FigureFormat.SVG])
    root = ElementTree.fromstring(drawn.getvalue())  # nosec B314 # Matplotlib has written it just now
    for element in root.iter():
        element.tag = _local(element.tag)
        element.attrib = {_local(key): value for key, value in element.attrib.items()}
        element.text, element.tail = _trimmed(element.text), _trimmed(element.tail)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in ("metadata", "style"):
                parent.remove(child)
    _add_tooltips(root, figure.tooltips)
    _restyle(root, figure.name)
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": figure.description}
    return ElementTree.tostring(root, encoding="unicode")


def _local(name: str) -> str:
    """Return a name without its namespace: an SVG inside HTML needs none."""
    return name.rpartition("}")[2]


def _trimmed(text: str | None) -> str | None:
    return text if text is None or text.strip() else None


def _add_tooltips(root: ElementTree.Element, tooltips: Mapping[str, str]) -> None:
    for element in root.iter():
        if (words := tooltips.get(element.get("id", ""))) is not None:
            title = ElementTree.Element("title")
            title.text = words
            element.insert(0, title)


def _restyle(root: ElementTree.Element, name: str) -> None:
    """Use the page's colours and font, and keep only identifiers that something refers to."""
    used = {
        found for element in root.iter() for value in element.attrib.values() for found in _REFERENCE.findall(value)
    }
    used |= {value[1:] for element in root.iter() if (value := element.get("href", "")).startswith("#")}
    for element in root.iter():
        if element.get("id") is not None and element.attrib["id"] not in used:
            del element.attrib["id"]
        for key, value in element.attrib.items():
            if key == "id":
                value = f"{name}-{value}"
            elif key == "href":
                value = f"#{name}-{value[1:]}"
            else:
                value = _REFERENCE.sub(rf"url(#{name}-\1)", value)
            if key == "d":
                value = " ".join(_LONG_FRACTION.sub(r"\1", value).split())
            if key == "style":
                value = _HEX.sub(_variable, _FONT.sub("", value))
            element.attrib[key] = value


def _variable(found: re.Match[str]) -> str:
    name = _NAMES_BY_COLOUR.get(found.group())
    return f"var(--{name})" if name else found.group()
