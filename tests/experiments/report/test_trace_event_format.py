import math
from itertools import count, pairwise
from pathlib import Path

import pytest

from experiments.report.trace_event_format import CounterSample, Event, Instant, Process, Slice, write_events
from tests.experiments.report.trace_events import TraceFile, nanoseconds


def read(path: Path, events: list[Event]) -> TraceFile:
    write_events(path, events, {"scenario": "small"})
    return TraceFile(path)


def of_process(slices: list[Slice]) -> list[Event]:
    process = Process("job", count(1))
    return [process.header(), *process.slices("transfers", slices)]


def test_slices_that_overlap_lie_on_further_tracks(tmp_path: Path) -> None:
    slices = [Slice("c", 2.0, 4.0), Slice("a", 0.0, 2.0), Slice("b", 1.0, 3.0), Slice("d", 3.0, 5.0)]
    tracks = read(tmp_path / "run.json", of_process(slices)).slices["job"]
    names = {track: [name for _, _, name, _ in spans] for track, spans in tracks.items()}
    assert names == {"transfers": ["a", "c"], "transfers (2)": ["b", "d"]}


def test_slices_that_follow_each_other_still_do_in_a_reader_that_cuts_times(tmp_path: Path) -> None:
    ends_s = [1234.0 + number / 3e6 for number in range(10_000)]
    slices = [Slice("step", start_s, end_s) for start_s, end_s in pairwise(ends_s)]
    (spans,) = read(tmp_path / "run.json", of_process(slices)).slices["job"].values()
    assert [end for _, end, *_ in spans] == [nanoseconds(end_s) for end_s in ends_s[1:]]


def test_arguments_that_json_cannot_hold_are_left_out_or_in_words(tmp_path: Path) -> None:
    slices = [Slice("a", 0.0, 1.0, {"intensity": math.inf, "priority": None, "level": 7})]
    (((_, _, _, arguments),),) = read(tmp_path / "run.json", of_process(slices)).slices["job"].values()
    assert arguments == {"intensity": "inf", "level": 7}


def test_processes_share_no_number(tmp_path: Path) -> None:
    numbers = count(1)
    first, second = Process("first", numbers), Process("second", numbers)
    events = [first.header(), second.header()]
    for process in (first, second):
        events += process.instants("Plans", [Instant("Plan 1", 0.5), Instant("cable down", 0.75, is_global=True)])
    assert len({(event["pid"], event["tid"]) for event in events}) == 4
    found = read(tmp_path / "run.json", events)
    assert found.processes == ["first", "second"]
    assert found.scopes == {"Plan 1": "t", "cable down": "g"}


@pytest.mark.parametrize("name", ["run.json", "run.json.gz"])
def test_the_same_events_make_the_same_bytes(tmp_path: Path, name: str) -> None:
    process = Process("loads of h0 \N{RIGHTWARDS ARROW} t0", count(1))
    events = [process.header(), *process.counter("utilisation", [CounterSample(0.1, {"level 7": 0.25})])]
    written = []
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        found = read(tmp_path / folder / name, events)
        written.append((tmp_path / folder / name).read_bytes())
    assert written[0] == written[1]
    assert found.about == {"scenario": "small"}
    assert found.counters["loads of h0 \N{RIGHTWARDS ARROW} t0"]["utilisation"][0][2] == {"level 7": 0.25}


def test_a_file_without_events_is_sound(tmp_path: Path) -> None:
    assert read(tmp_path / "run.json", []).processes == []
