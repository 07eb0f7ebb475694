from pathlib import Path

import pytest

from tests.workloads.traces.builders import job, worker, write
from workloads.traces.cleaning import LoggedJob, clean
from workloads.traces.comparison import compare_with_published
from workloads.traces.lingjun import Rack, read_lingjun
from workloads.traces.statistics import Peak, TraceStatistics, contending_share, describe

RACKS = {f"{rack}{number}": Rack("G6", "P1", rack) for rack in "abc" for number in range(2)}


def ran(name: str, from_s: float, to_s: float, *hosts: str) -> LoggedJob:
    return LoggedJob(name, "unknown", from_s, from_s, to_s, dict.fromkeys(hosts, 8))


@pytest.mark.parametrize(
    ("jobs", "share"),
    [
        ([ran("1", 0, 9, "a0", "b0"), ran("2", 5, 9, "b1", "c0")], 1.0),
        ([ran("1", 0, 5, "a0", "b0"), ran("2", 5, 9, "b1", "c0")], 0.0),  # one after the other
        ([ran("1", 0, 9, "a0", "b0"), ran("2", 0, 9, "b1")], 0.0),  # who stays on a host uses no uplink
        ([ran("1", 0, 9, "a0", "a1"), ran("2", 0, 9, "a1", "b0")], 0.0),  # nor who stays in a rack
        ([ran("1", 0, 9, "a0", "b0"), ran("2", 1, 2, "c0", "c1"), ran("3", 8, 9, "c0", "a1")], 2 / 3),
        ([ran("long", 0, 9, "a0", "b0"), ran("short", 1, 2, "a1", "c0"), ran("late", 3, 4, "a1", "b1")], 1.0),
        ([], 0.0),
    ],
)
def test_jobs_contend_that_use_the_uplink_of_a_rack_at_one_time(jobs: list[LoggedJob], share: float) -> None:
    assert contending_share(jobs, RACKS) == pytest.approx(share)


@pytest.fixture
def statistics(tmp_path: Path) -> TraceStatistics:
    jobs = [
        job("a", 0, 1, 5, model="llama"),
        job("b", 61, 64, 74, "Failed"),
        job("c", 62, 63, 64, "Failed"),
        job("d", 62, None, 63, "Failed"),
    ]
    workers = [
        worker("a", "0", "x0", 1, 5),
        worker("b", "0", "x0", 64, 74),
        worker("b", "1", "z0", 64, 74),
        worker("c", "0", "y0", 63, 64),
    ]
    rows = read_lingjun(write(tmp_path, jobs, workers))
    return describe(rows, clean(rows))


def test_a_trace_in_numbers(statistics: TraceStatistics) -> None:
    assert (statistics.jobs, statistics.workers, statistics.hosts, statistics.racks) == (4, 4, 4, 3)
    assert statistics.status == {"Failed": 3, "Succeeded": 1}
    assert statistics.models == {"": 3, "llama": 1}
    assert (statistics.gpus, statistics.gpu_jobs) == ({8: 2, 16: 1}, 3)
    assert (statistics.share_up_to(8), statistics.share_up_to(16)) == (pytest.approx(2 / 3), 1.0)
    assert (statistics.duration_min[0.5], statistics.duration_min[1.0]) == (4.0, 10.0)
    assert (statistics.queue_min[0.5], statistics.queue_min[1.0]) == (1.0, 3.0)
    assert (statistics.submitted_by_hour[:2], statistics.submitted_by_day) == ((1, 3), (4,))
    assert statistics.peak == Peak(1, 16)  # c ends when b begins


def test_a_figure_that_a_trace_does_not_have_is_none(tmp_path: Path) -> None:
    rows = read_lingjun(write(tmp_path, [], []))
    here = {figure.name: figure.here for figure in compare_with_published(describe(rows, clean(rows)))}
    assert (here["jobs"], here["duration, p50"], here["jobs that meet contention"]) == (0, None, 0.0)
