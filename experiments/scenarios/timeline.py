"""What a job's program did in an iteration: when it computed, and when its collectives were under way.

Times are seconds after the iteration's begin.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Self


@dataclass(frozen=True, slots=True)
class Collective:
    """A collective of an iteration; ``size_bytes`` is the tensor's."""

    name: str
    begin_s: float
    end_s: float
    size_bytes: float


@dataclass(frozen=True, slots=True)
class ProfiledRange:
    """A range that PyTorch's profiler has seen in an iteration."""

    name: str
    begin_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Timeline:
    """An iteration. Without ``computed`` or ``collectives`` it is not known when these were."""

    computed: Sequence[tuple[float, float]] = ()
    collectives: Sequence[Collective] = ()
    profiled: Sequence[ProfiledRange] = ()

    def to_json(self) -> str:
        """Return the timeline as one line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: bytes) -> Self:
        """Return the timeline of a line. Raises ValueError, KeyError or TypeError for what is none."""
        found = json.loads(text)
        computed = tuple((float(begin_s), float(end_s)) for begin_s, end_s in found["computed"])
        collectives = tuple(Collective(**each) for each in found["collectives"])
        return cls(computed, collectives, tuple(ProfiledRange(**each) for each in found["profiled"]))

    def before_scaling(self, scale: float) -> Self:
        """Return the timeline with sizes multiplied."""
        scaled = [replace(each, size_bytes=each.size_bytes * scale) for each in self.collectives]
        return replace(self, collectives=tuple(scaled))


UNKNOWN = Timeline()
"""The timeline of a program that reports none."""
