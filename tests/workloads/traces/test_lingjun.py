from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.workloads.traces.builders import TOPOLOGY, job, worker, write
from workloads.traces.csv_rows import TraceError
from workloads.traces.lingjun import Rack, Unreadable, read_lingjun

JOBS = [job("a", 0, 1, 5, model="llama")]
WORKERS = [worker("a", "a-0", "x0", 1, 5)]


def test_the_rows_of_the_three_files(tmp_path: Path) -> None:
    rows = read_lingjun(write(tmp_path, JOBS, WORKERS))
    (a,), (a0,) = rows.jobs, rows.workers
    start_s = datetime(2023, 7, 15, tzinfo=UTC).timestamp()
    assert (a.name, a.model, a.submitted_s, a.running_s, a.ended_s) == (
        "a",
        "llama",
        start_s,
        start_s + 60,
        start_s + 300,
    )
    assert (a0.job, a0.host, a0.gpus, a0.line) == ("a", "x0", 8, 2)
    assert rows.racks["y0"] == Rack("G6", "P1", "S2")


@pytest.mark.parametrize("written", ["2023/7/15 00:05", "2023-07-15 00:05:00", "2023/07/15 0:05"])
def test_times_have_two_forms(tmp_path: Path, written: str) -> None:
    (a,) = read_lingjun(write(tmp_path, [JOBS[0].replace("2023/7/15 00:05", written)], [])).jobs
    assert a.ended_s == datetime(2023, 7, 15, 0, 5, tzinfo=UTC).timestamp()


def test_a_job_that_was_stopped_may_have_that_time_alone(tmp_path: Path) -> None:
    (a,) = read_lingjun(write(tmp_path, ["1,a,,Stopped,,,2023/7/15 00:05,NaN,,"], [])).jobs
    assert (a.submitted_s, a.running_s) == (None, None)
    assert a.ended_s == datetime(2023, 7, 15, 0, 5, tzinfo=UTC).timestamp()


@pytest.mark.parametrize("written", ["2023/7/32 00:05", "2023/7-15 00:05", "yesterday", "2023/7/15 24:05"])
def test_a_time_that_cannot_be_read_is_kept_as_such(tmp_path: Path, written: str) -> None:
    (a,) = read_lingjun(write(tmp_path, [JOBS[0].replace("2023/7/15 00:05", written)], [])).jobs
    assert (a.ended_s, a.unreadable) == (None, (Unreadable("gmt_job_finished", written),))


@pytest.mark.parametrize(
    ("resources", "gpus", "readable"),
    [
        ('"{""nvidia.com/gpu"": 4}"', 4, True),
        ('"{""cpu"": ""8""}"', 0, True),
        ('"{""nvidia.com/gpu"": ""2"", ""other/gpu"": 1.0}"', 3, True),
        ("", None, True),
        ('"{""nvidia.com/gpu"": ""1.5""}"', None, False),
        ('"{""nvidia.com/gpu"": -1}"', None, False),
        ('"{""nvidia.com/gpu"": NaN}"', None, False),
        ('"{""nvidia.com/gpu"": null}"', None, False),
        ('"{""nvidia.com/gpu"": ""8"', None, False),
        ("[8]", None, False),
        ('"{""nvidia.com/gpu"": 1' + "0" * 400 + '}"', None, False),
    ],
)
def test_gpus_are_among_the_resources(tmp_path: Path, resources: str, gpus: int | None, readable: bool) -> None:
    row = WORKERS[0].rpartition(',"{')[0]
    (a0,) = read_lingjun(write(tmp_path, JOBS, [f"{row},{resources}"])).workers
    assert (a0.gpus, not a0.unreadable) == (gpus, readable)


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("job.csv", "model,", "modell,", "job.csv: line 1, column 11: model: missing"),
        ("job.csv", "id,job_name", "job_name,job_name", "job.csv: line 1, column 11: job_name: there more than once"),
        (
            "job.csv",
            ",2023/7/15 00:01,,2023/7/15 00:05,,",
            "",
            "job.csv: line 2, column 6: gmt_job_running: missing; the",
        ),
        ("job.csv", "00:05,,", "00:05,,,more", "line 2, column 11: expected the end of the line, got 'more'"),
        ("worker.csv", '}"', "", "worker.csv: line 2, column 1: not valid CSV"),
        ("topo.csv", ",S2", ",", "topo.csv: line 4, column ASW: empty"),
        ("topo.csv", "x1", "x0", "topo.csv: line 3, column ip: expected every host once, x0"),
        ("topo.csv", TOPOLOGY[15:], "", "topo.csv: line 2, column 1: expected hosts"),
    ],
)
def test_what_is_no_such_file_is_refused_with_its_place(
    tmp_path: Path, file: str, old: str, new: str, message: str
) -> None:
    path = write(tmp_path, JOBS, WORKERS) / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(TraceError) as refused:
        read_lingjun(tmp_path)
    assert message in str(refused.value)


def test_a_file_cut_off_anywhere_but_between_rows_is_refused(tmp_path: Path) -> None:
    write(tmp_path, JOBS, WORKERS)
    for file in ("job.csv", "worker.csv", "topo.csv"):
        whole = (tmp_path / file).read_bytes()
        for length in range(len(whole)):
            (tmp_path / file).write_bytes(whole[:length])
            if (
                length
                and whole[:length].endswith(b"\n")
                and not (file == "topo.csv" and whole[:length].count(b"\n") == 1)
            ):
                read_lingjun(tmp_path)
            else:
                with pytest.raises(TraceError, match=f"{file}: line"):
                    read_lingjun(tmp_path)
        (tmp_path / file).write_bytes(whole)


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "cannot be read: No such file"), (b"\xff\xfe", "is not a text file"), (b"", "line 0, column")],
)
def test_a_file_that_is_none(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = write(tmp_path, JOBS, WORKERS) / "job.csv"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(TraceError, match=message if content != b"" else "line 1, column 1: job_name: missing"):
        read_lingjun(tmp_path)
