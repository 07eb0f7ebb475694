"""A reader of files in the JSON trace event format, as strict as Perfetto: what it misreads or drops fails here."""

import gzip
import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

Span = tuple[int, int, str, dict[str, Any]]
"""Start and end in nanoseconds, name and arguments."""
Point = tuple[int, str, dict[str, Any]]


class TraceFile:
    """A file's slices and instants by process and track, and its counters' samples by process and name."""

    def __init__(self, path: Path) -> None:
        octets = path.read_bytes()
        text = gzip.decompress(octets) if path.suffix == ".gz" else octets
        whole = json.loads(text, parse_constant=lambda constant: _refuse(f"{constant} is no JSON"))
        assert set(whole) == {"displayTimeUnit", "otherData", "traceEvents"}
        self.about = whole["otherData"]
        self._processes: dict[int, str] = {}
        self._tracks: dict[tuple[int, int], str] = {}
        self.slices: defaultdict[str, defaultdict[str, list[Span]]] = defaultdict(lambda: defaultdict(list))
        self.instants: defaultdict[str, defaultdict[str, list[Point]]] = defaultdict(lambda: defaultdict(list))
        self.counters: defaultdict[str, defaultdict[str, list[Point]]] = defaultdict(lambda: defaultdict(list))
        self.scopes: dict[str, str] = {}
        for event in whole["traceEvents"]:
            self._take(event)
        for tracks in self.slices.values():
            for spans in tracks.values():
                for (_, end, *_), (start, *_) in pairwise(spans):
                    assert end <= start
        assert len({track for _, track in self._tracks}) == len(self._tracks)
        assert len(set(self._processes.values())) == len(self._processes)

    @property
    def processes(self) -> list[str]:
        """The names of the processes, in order."""
        return list(self._processes.values())

    @property
    def times(self) -> list[int]:
        """All times in nanoseconds."""
        spans = [
            time for tracks in self.slices.values() for track in tracks.values() for at in track for time in at[:2]
        ]
        points = (tracks for kind in (self.instants, self.counters) for tracks in kind.values())
        return spans + [at[0] for tracks in points for track in tracks.values() for at in track]

    def _take(self, event: dict[str, Any]) -> None:
        kind, process, track, name, arguments = (event.pop(key) for key in ("ph", "pid", "tid", "name", "args"))
        if kind == "M":
            assert not event
            if name == "process_name":
                self._processes[process] = arguments["name"]
            else:
                assert name == "thread_name"
                self._tracks[process, track] = arguments["name"]
            return
        at, of = _nanoseconds(event.pop("ts")), self._processes[process]
        assert at >= 0
        if kind == "X":
            length = _nanoseconds(event.pop("dur"))
            assert length >= 0
            self.slices[of][self._tracks[process, track]].append((at, at + length, name, arguments))
        elif kind == "i":
            self.scopes[name] = event.pop("s")
            self.instants[of][self._tracks[process, track]].append((at, name, arguments))
        else:
            assert kind == "C"
            samples = self.counters[of][name]
            assert not samples or (samples[-1][0] < at and samples[-1][2].keys() == arguments.keys())
            assert all(type(value) in (int, float) for value in arguments.values())
            samples.append((at, name, arguments))
        assert not event


def nanoseconds(time_s: float) -> int:
    """A time as the file has it: to an eighth of a microsecond."""
    return round(time_s * 8e6) * 125


def _nanoseconds(microseconds: float) -> int:
    """What Perfetto makes of a time: it cuts what is left."""
    return int(microseconds * 1000)


def _refuse(reason: str) -> None:
    raise AssertionError(reason)
