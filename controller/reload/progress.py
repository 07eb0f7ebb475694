"""What a reload does now, for those who ask while it goes on."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic


@dataclass(frozen=True, slots=True)
class ReloadStep:
    """The step at which a reload is, and how long the reload has gone on."""

    words: str
    for_s: float


class ReloadProgress:
    """The step of the reload that goes on, if one does; ``now_s`` is a monotonic clock."""

    def __init__(self, now_s: Callable[[], float] = monotonic) -> None:
        self._now_s = now_s
        self._begun_s: float | None = None
        self._words = ""

    @property
    def step(self) -> ReloadStep | None:
        """The step of now; None: no reload goes on."""
        return None if self._begun_s is None else ReloadStep(self._words, self._now_s() - self._begun_s)

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Have a reload go on while the context lasts."""
        self._begun_s, self._words = self._now_s(), "it begins"
        try:
            yield
        finally:
            self._begun_s = None

    def at(self, words: str) -> None:
        """Tell at which step the reload is."""
        self._words = words
