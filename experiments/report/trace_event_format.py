"""The JSON trace event format, which ui.perfetto.dev and chrome://tracing read: processes with tracks of events."""

import gzip
import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

Event = dict[str, Any]
"""An event of the format: its kind (``ph``), time in microseconds (``ts``), process, track and arguments."""

_STEPS_PER_S = 8_000_000
"""Times are whole eighths of a microsecond.

Readers multiply microseconds by 1,000 and cut what is left. Eighths survive that, so that slices never overlap by it.
"""


@dataclass(frozen=True, slots=True)
class Slice:
    """Something that lasts; ``arguments`` are shown where it is selected."""

    name: str
    start_s: float
    end_s: float
    arguments: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Instant:
    """Something that happens at once. One that ``is_global`` is marked over all processes."""

    name: str
    at_s: float
    arguments: Mapping[str, object] = field(default_factory=dict)
    is_global: bool = False


@dataclass(frozen=True, slots=True)
class CounterSample:
    """The values of a counter's series from a time on."""

    at_s: float
    values: Mapping[str, float]


class Process:
    """A named group of tracks. Processes of a file share ``numbers``: no track has the number of another."""

    def __init__(self, name: str, numbers: "count[int]") -> None:
        self._numbers = numbers
        self._number = next(numbers)
        self._name = name

    def header(self) -> Event:
        """Return the event that names the process."""
        return self._event("M", self._number, name="process_name", args={"name": self._name})

    def slices(self, track: str, slices: Iterable[Slice]) -> Iterator[Event]:
        """Yield a track. Slices that overlap lie on further tracks, numbered from 2: on one they could only nest."""
        for place, lane in enumerate(_lanes(slices), start=1):
            number = next(self._numbers)
            yield self._track(number, track if place == 1 else f"{track} ({place})")
            for one in lane:
                start, length = _steps(one.start_s), _steps(one.end_s) - _steps(one.start_s)
                times = {"ts": _microseconds(start), "dur": _microseconds(length)}
                yield self._event("X", number, name=one.name, **times, args=_shown(one.arguments))

    def instants(self, track: str, instants: Iterable[Instant]) -> Iterator[Event]:
        """Yield a track of instants."""
        number = next(self._numbers)
        yield self._track(number, track)
        for one in instants:
            at, scope = _microseconds(_steps(one.at_s)), "g" if one.is_global else "t"
            yield self._event("i", number, name=one.name, ts=at, s=scope, args=_shown(one.arguments))

    def counter(self, name: str, samples: Iterable[CounterSample]) -> Iterator[Event]:
        """Yield a counter. All its samples have the same series."""
        for sample in samples:
            at = _microseconds(_steps(sample.at_s))
            yield self._event("C", self._number, name=name, ts=at, args=dict(sample.values))

    def _track(self, number: int, name: str) -> Event:
        return self._event("M", number, name="thread_name", args={"name": name})

    def _event(self, kind: str, track: int, **rest: object) -> Event:
        return {"ph": kind, "pid": self._number, "tid": track, **rest}


def write_events(path: Path, events: Iterable[Event], about: Mapping[str, object]) -> None:
    """Write a file, an event a line, compressed where its name ends in ``.gz``. Raises OSError.

    ``about`` describes the file as a whole. The same events make the same bytes.
    """
    with io.TextIOWrapper(_opened(path), encoding="utf-8", newline="\n") as file:
        file.write(f'{{"displayTimeUnit": "ms", "otherData": {_json(about)}, "traceEvents": [')
        for number, event in enumerate(events):
            file.write((",\n" if number else "\n") + _json(event))
        file.write("\n]}\n")


def _opened(path: Path) -> "gzip.GzipFile | io.BufferedWriter":
    return gzip.GzipFile(path, "wb", mtime=0) if path.suffix == ".gz" else path.open("wb")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _lanes(slices: Iterable[Slice]) -> Sequence[Sequence[Slice]]:
    """Split slices into as few rows as hold them without overlap, each in order of time."""
    lanes: list[list[Slice]] = []
    for one in sorted(slices, key=lambda one: (one.start_s, one.end_s)):
        free = (lane for lane in lanes if _steps(lane[-1].end_s) <= _steps(one.start_s))
        lane = next(free, None)
        if lane is None:
            lanes.append(lane := [])
        lane.append(one)
    return lanes


def _steps(time_s: float) -> int:
    return round(time_s * _STEPS_PER_S)


def _microseconds(steps: int) -> float:
    return steps * 1e6 / _STEPS_PER_S


def _shown(arguments: Mapping[str, object]) -> dict[str, object]:
    """Return arguments as JSON can hold them: without those that are None, and with infinity in words."""
    return {
        name: str(value) if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in arguments.items()
        if value is not None
    }
