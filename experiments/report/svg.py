"""Elements of SVG and HTML as strings in which everything that is not markup is escaped."""

from collections.abc import Iterable
from html import escape

Attribute = str | float | None


class Markup(str):
    """Text that is markup already; any other text is escaped on its way into an element."""

    __slots__ = ()


def element(name: str, *children: str, **attributes: Attribute) -> Markup:
    """An element around its children. ``class_`` is ``class``, ``stroke_width`` ``stroke-width``; None is left out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_text(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{given}>{joined(children)}</{name}>")


def joined(parts: Iterable[str]) -> Markup:
    """Parts one after the other."""
    return Markup("".join(part if isinstance(part, Markup) else escape(part) for part in parts))


def picture(width: float, height: float, description: str, *children: str) -> Markup:
    """An ``svg`` element that fills its container's width; ``description`` is what a screen reader says."""
    return element("svg", *children, viewBox=f"0 0 {_text(width)} {_text(height)}", role="img", aria_label=description)


def text(x: float, y: float, words: str, class_: str | None = None, anchor: str | None = None) -> Markup:
    """Words at a place; ``anchor`` is start (None), middle or end."""
    return element("text", words, x=x, y=y, class_=class_, text_anchor=anchor)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """A straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def rectangle(x: float, y: float, width: float, height: float, class_: str, *children: str) -> Markup:
    """A rectangle with its upper left corner at (x, y)."""
    return element("rect", *children, x=x, y=y, width=width, height=height, class_=class_)


def _text(value: str | float) -> str:
    """Numbers to a hundredth, which is finer than any screen."""
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
