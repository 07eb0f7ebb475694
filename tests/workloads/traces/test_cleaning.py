from pathlib import Path

import pytest

from tests.workloads.traces.builders import job, worker, write
from workloads.traces.cleaning import CleanTrace, Rule, clean
from workloads.traces.lingjun import read_lingjun

SOUND = job("sound", 0, 1, 5)
SOUND_WORKERS = [worker("sound", "0", "x0", 1, 5), worker("sound", "1", "x1", 1, 5, gpus=4)]


def cleaned(folder: Path, jobs: list[str], workers: list[str]) -> CleanTrace:
    return clean(read_lingjun(write(folder, [SOUND, *jobs], [*SOUND_WORKERS, *workers])))


def met(trace: CleanTrace) -> dict[Rule, list[int]]:
    return {
        rule: [at.line for at in trace.findings if at.rule is rule] for rule, count in trace.counts.items() if count
    }


def test_a_sound_job_has_its_gpus_by_host_and_nothing_is_found(tmp_path: Path) -> None:
    trace = cleaned(tmp_path, [], [])
    assert (met(trace), len(trace.racks)) == ({}, 4)
    (sound,) = trace.jobs
    assert (dict(sound.gpus_by_host), sound.gpus, sound.run_time_s) == ({"x0": 8, "x1": 4}, 12, 240.0)


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        (job("a", 1, None, 5), Rule.JOB_NEVER_RAN),
        (job("a", None, None, None), Rule.JOB_NEVER_RAN),
        (job("a", 3, 2, 5), Rule.JOB_RAN_TOO_EARLY),
        (job("a", 1, 2, 2), Rule.JOB_ENDED_TOO_EARLY),
        (job("a", 1, 3, 2), Rule.JOB_ENDED_TOO_EARLY),
        (job("sound", 1, 2, 5), Rule.JOB_REPEATED),
        (job("other", 1, 2, 5), Rule.JOB_WITHOUT_WORKERS),
        (job("cpu", 1, 2, 5), Rule.JOB_WITHOUT_GPUS),
        (job("large", 1, 2, 5), Rule.JOB_WITH_TOO_MANY_GPUS),
        (job("a", 1, 2, 5).replace("2023/7/15 00:02", "soon"), Rule.JOB_UNREADABLE),
        (job("", 1, 2, 5), Rule.JOB_UNREADABLE),
    ],
)
def test_a_job_that_cannot_be_used_is_left_out_with_its_line(tmp_path: Path, row: str, rule: Rule) -> None:
    workers = [
        worker("a", "0", "y0", 2, 5),
        worker("cpu", "0", "y0", 2, 5, gpus=0),
        worker("large", "0", "y0", 2, 5),
        worker("large", "1", "y0", 2, 5, gpus=1),
    ]
    known = [name for name in ("a", "cpu", "large") if f",{name}," in row]
    trace = cleaned(tmp_path, [row], [line for line in workers if any(f",{name}," in line for name in known)])
    assert met(trace) == {rule: [3]}
    assert [job.name for job in trace.jobs] == ["sound"]


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        (worker("a", "1", "y0", None, 5), Rule.WORKER_WITHOUT_TIME),
        (worker("a", "1", "y0", 2, None), Rule.WORKER_WITHOUT_TIME),
        (worker("a", "1", "y0", 5, 5), Rule.WORKER_WITHOUT_DURATION),
        (worker("a", "1", "nowhere", 2, 5), Rule.WORKER_ON_UNKNOWN_HOST),
        (worker("a", "1", "y0", 2, 5, gpus=None), Rule.WORKER_WITHOUT_RESOURCES),
        (worker("b", "1", "y0", 2, 5), Rule.WORKER_OF_UNKNOWN_JOB),
        (worker("a", "1", "y0", 2, 5).replace("2023/7/15 00:05", "late"), Rule.WORKER_UNREADABLE),
        # The first rule that a row meets counts, as in the published counts.
        (worker("a", "1", "nowhere", 5, 5, gpus=None), Rule.WORKER_WITHOUT_DURATION),
    ],
)
def test_a_worker_that_cannot_be_used_is_left_out_and_its_job_told(tmp_path: Path, row: str, rule: Rule) -> None:
    trace = cleaned(tmp_path, [job("a", 1, 2, 5)], [worker("a", "0", "y0", 2, 5), row])
    had_gpus = "gpu" in row and ",a," in row
    assert met(trace) == {rule: [5]} | ({Rule.JOB_LOST_WORKERS: [3]} if had_gpus else {})
    assert [job.gpus for job in trace.jobs] == [12, 8]


def test_a_worker_that_ran_again_counts_once_where_it_ran_last(tmp_path: Path) -> None:
    again = [worker("a", "0", "z0", 4, 9), worker("a", "0", "y0", 2, 3)]
    trace = cleaned(tmp_path, [job("a", 1, 2, 9)], again)
    assert met(trace) == {Rule.WORKER_RESTARTED: [5]}
    assert dict(trace.jobs[1].gpus_by_host) == {"z0": 8}


def test_a_job_that_still_runs_does_so_to_the_end_of_the_log(tmp_path: Path) -> None:
    trace = cleaned(tmp_path, [job("a", 1, 2, None, "Running"), job("b", 7, 9, None)], [worker("a", "0", "y0", 2, 5)])
    assert met(trace) == {Rule.JOB_STILL_RUNNING: [3], Rule.JOB_WITHOUT_WORKERS: [4]}
    assert trace.jobs[1].run_time_s == 7 * 60


def test_jobs_come_in_order_of_submission_and_rows_out_of_it_are_told(tmp_path: Path) -> None:
    rows = [job("late", 9, 10, 20), job("early", 0, 1, 5), job("later", 10, 11, 12)]
    trace = cleaned(tmp_path, rows, [worker(name, "0", "y0", 1, 5) for name in ("late", "early", "later")])
    assert met(trace) == {Rule.JOB_OUT_OF_ORDER: [4]}
    assert [job.name for job in trace.jobs] == ["sound", "early", "late", "later"]
