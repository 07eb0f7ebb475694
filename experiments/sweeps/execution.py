"""What carries out the runs of a sweep, behind one signature: ``processes`` here, or a ``ray_cluster`` elsewhere.

Both do one piece of work, a function that every process can import, for all items. They are generators: an item with
its answer as soon as there is one, in whatever order. Closed early, they end what they have started.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Failure:
    """An item that has no answer, and why."""

    reason: str


Answers = Generator[tuple[T, R | Failure], None, None]


def attempt(work: Callable[[T], R], item: T) -> R | Failure:
    """The answer, or why there is none: one item that fails keeps no other from being done."""
    try:
        return work(item)
    except Exception as error:
        return Failure(f"{type(error).__name__}: {error}")
