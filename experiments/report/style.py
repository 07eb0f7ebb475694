"""Colours, sizes and file formats of figures, in a light and a dark theme.

Figures are drawn in the light colours. A page replaces each of them by the CSS variable of the same name, so that one
SVG follows the reader's theme.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

NUM_LEVELS = 8
"""Priority levels, of which each has a colour."""

NUM_HEATS = 5
"""Classes of GPU intensity, of which each has a colour."""

NUM_SERIES = 8
"""Colours of policies and other series; they repeat after that."""

WIDTH_PT = 252.0
"""Width of every figure: 3.5 inches, a column of a paper and about the screen of a phone."""

FONT_PT = 8.5
SMALL_FONT_PT = 7.5


class FigureFormat(StrEnum):
    """File formats of figures."""

    PNG = "png"
    SVG = "svg"
    PDF = "pdf"


LineStyle = Literal["solid"] | tuple[float, Sequence[float]]
"""Solid, or an offset and the lengths of dashes and gaps."""


@dataclass(frozen=True, slots=True)
class Colour:
    """One colour in both themes, as ``#rrggbb``."""

    light: str
    dark: str


# Series: Okabe and Ito, "Color Universal Design", without its yellow. Levels: hues and lightness
# change from step to step; the most urgent level has the most contrast with the page.
COLOURS: Mapping[str, Colour] = {
    "page": Colour("#f6f7f7", "#121617"),
    "sheet": Colour("#ffffff", "#191f20"),
    "ink": Colour("#1c2526", "#e2e8e8"),
    "quiet": Colour("#556163", "#9aa8aa"),
    "hair": Colour("#d3dada", "#364142"),
    "track": Colour("#edf1f1", "#232b2c"),
    "compute": Colour("#8795a1", "#8fa0ad"),
    "published": Colour("#7b8788", "#869495"),
    "event": Colour("#c2185b", "#ff7fb0"),
    "good": Colour("#1f7a5c", "#6cc3a3"),
    "bad": Colour("#a8472f", "#e39078"),
    "series-0": Colour("#0072b2", "#4aa3df"),
    "series-1": Colour("#d55e00", "#f0824a"),
    "series-2": Colour("#009e73", "#2fc79a"),
    "series-3": Colour("#cc79a7", "#e39cc4"),
    "series-4": Colour("#e69f00", "#f2b733"),
    "series-5": Colour("#56b4e9", "#8accf2"),
    "series-6": Colour("#7a6a1f", "#b8a13a"),
    "series-7": Colour("#4d4d4d", "#b5bdbe"),
    "level-0": Colour("#f2dc1c", "#6b3a80"),
    "level-1": Colour("#b0d740", "#5f55a8"),
    "level-2": Colour("#66c266", "#4670b8"),
    "level-3": Colour("#1fae8e", "#2b8cae"),
    "level-4": Colour("#2492ad", "#22ab92"),
    "level-5": Colour("#3f6fc0", "#4fc874"),
    "level-6": Colour("#6a45ad", "#a6dc3c"),
    "level-7": Colour("#3a0650", "#fde725"),
    "heat-0": Colour("#f4b860", "#6f4c2c"),
    "heat-1": Colour("#ee9236", "#9c5d2a"),
    "heat-2": Colour("#dd6b1d", "#d0752f"),
    "heat-3": Colour("#b8430f", "#f39b56"),
    "heat-4": Colour("#7f2404", "#ffd3a6"),
}


def colour(name: str) -> str:
    """Return the light variant of a colour, in which figures are drawn."""
    return COLOURS[name].light


def series_colour(index: int) -> str:
    """Return the colour of a policy or another series by its place in the report."""
    return colour(f"series-{index % NUM_SERIES}")


FIGURE_SETTINGS: Mapping[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib: the same layout everywhere
    "font.size": FONT_PT,
    "text.color": colour("ink"),
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "axes.facecolor": colour("track"),
    "axes.edgecolor": colour("hair"),
    "axes.axisbelow": True,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.spines.bottom": False,
    "grid.color": colour("hair"),
    "grid.linewidth": 0.6,
    "xtick.labelcolor": colour("quiet"),
    "ytick.labelcolor": colour("quiet"),
    "xtick.labelsize": SMALL_FONT_PT,
    "ytick.labelsize": SMALL_FONT_PT,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "legend.fontsize": SMALL_FONT_PT,
    "legend.frameon": False,
    "legend.labelcolor": colour("ink"),
    "hatch.linewidth": 0.7,
    "figure.facecolor": colour("sheet"),
    "figure.dpi": 72,
    "savefig.dpi": 200,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "trainyard",  # the same identifiers in every file of the same figure
    "pdf.fonttype": 42,
}
"""Settings of matplotlib while a figure is drawn or saved."""
