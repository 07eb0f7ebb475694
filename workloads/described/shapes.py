"""Shapes: what one sample is between two layers of a model."""

from dataclasses import dataclass

from topologies.problems import Location, Problem


@dataclass(frozen=True, slots=True)
class Shape:
    """A row of ``tokens`` positions with ``width`` numbers each.

    An image of ``size`` x ``size`` pixels has as many positions, and its channels are the width.
    """

    tokens: int
    width: int
    size: int | None = None

    @classmethod
    def of_image(cls, size: int, channels: int) -> "Shape":
        """Return the shape of a square image."""
        return cls(size * size, channels, size)

    @property
    def elements(self) -> int:
        """Numbers of one sample."""
        return self.tokens * self.width

    def __str__(self) -> str:
        if self.size is None:
            return f"{self.tokens} tokens of width {self.width}"
        return f"an image of {self.size} x {self.size} with {self.width} channels"


class ShapeError(ValueError):
    """A layer that does not fit what it gets: the key that is wrong (None: the layer), what is expected, the value."""

    def __init__(self, key: str | None, expected: str, given: str | float | None = None) -> None:
        super().__init__(expected)
        self.key = key
        self.given = given

    def problem(self, location: Location) -> Problem:
        """Return the problem of the layer at this location."""
        return Problem(location if self.key is None else (*location, self.key), str(self), self.given)


def divided(what: int, by: int, key: str, expected: str) -> int:
    """Return ``what / by``. Raises ShapeError about the value ``by`` of ``key`` where that is no whole number."""
    if what % by:
        raise ShapeError(key, expected, by)
    return what // by


def as_image(shape: Shape, kind: str) -> int:
    """Return the size of an image. Raises ShapeError where a layer of this kind gets something else."""
    if shape.size is None:
        raise ShapeError(None, f"{kind} needs an image, but gets {shape}")
    return shape.size


def as_tokens(shape: Shape, kind: str) -> None:
    """Raise ShapeError where a layer of this kind gets an image instead of tokens."""
    if shape.size is not None:
        raise ShapeError(None, f"{kind} needs tokens, but gets {shape}")
