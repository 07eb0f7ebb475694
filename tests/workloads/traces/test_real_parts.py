"""Known figures of the real dataset, checked where parts of it are in a folder beside the checkout."""

import csv
from collections import Counter
from pathlib import Path

import pytest

from tests.workloads.traces.builders import WORKER_HEADER
from workloads.traces import published
from workloads.traces.cleaning import Rule, clean
from workloads.traces.generator import cluster_of
from workloads.traces.lingjun import Rack, read_lingjun, read_racks

_FOLDER = Path(__file__).parents[4] / "shared/data/lingjun"

pytestmark = pytest.mark.skipif(not _FOLDER.exists(), reason=f"parts of the Lingjun dataset are not at {_FOLDER}")


def test_the_racks_are_those_of_the_topology() -> None:
    racks = read_racks(_FOLDER / "topo.csv")
    assert len(racks) == published.NUM_HOSTS
    sizes = {
        pod: tuple(
            count
            for _, count in sorted(
                (int(rack.tor[1:]), count) for rack, count in Counter(racks.values()).items() if rack.aggregation == pod
            )
        )
        for pod in published.RACK_SIZES
    }
    assert sizes == published.RACK_SIZES
    assert sum(len(rack) for rack in cluster_of(racks, 8).racks) == published.NUM_HOSTS
    assert {rack.core for rack in racks.values()} == {Rack("G6", "", "").core}


def test_sizes_by_model_are_those_of_the_jobs_whose_model_has_a_name() -> None:
    counted: dict[str, Counter[int]] = {}
    with (_FOLDER / "job_models_gpus.csv").open() as file:
        for row in csv.DictReader(file):
            counted.setdefault(row["model"], Counter())[int(row["total_gpu"])] += 1
    assert counted == published.GPUS_BY_MODEL


def test_the_peak_is_that_of_the_jobs_at_it() -> None:
    with (_FOLDER / "peak_jobs.csv").open() as file:
        gpus = [int(row["total_gpu"]) for row in csv.DictReader(file)]
    assert (len(gpus), sum(gpus)) == (published.PEAK_JOBS, published.PEAK_GPUS)


def test_rows_that_users_showed_are_read_as_they_saw_them(tmp_path: Path) -> None:
    (tmp_path / "topo.csv").write_bytes((_FOLDER / "topo.csv").read_bytes())
    (tmp_path / "job.csv").write_bytes((_FOLDER / "job_rows.csv").read_bytes())
    (tmp_path / "worker.csv").write_text(WORKER_HEADER + "\n")
    rows = read_lingjun(tmp_path)
    trace = clean(rows)
    met = {rule: count for rule, count in trace.counts.items() if count}
    assert met == {
        Rule.JOB_RAN_TOO_EARLY: 1,  # id 8169
        Rule.JOB_NEVER_RAN: 10,
        Rule.JOB_OUT_OF_ORDER: 1,
        Rule.JOB_WITHOUT_WORKERS: 31,
    }
    assert not any(row.unreadable for row in rows.jobs)
    assert Counter(row.status for row in rows.jobs)["Running"] == published.STATUS["Running"]
