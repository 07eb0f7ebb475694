"""Writer of synthetic traces in the Lingjun dataset's format, with its unused columns and its two time formats.

Columns whose contents are not known stay empty.
"""

import csv
import json
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from workloads.traces.generator import SyntheticJob, SyntheticTrace, SyntheticWorker
from workloads.traces.lingjun import JOB_FILE, TOPOLOGY_COLUMNS, TOPOLOGY_FILE, WORKER_FILE
from workloads.traces.published import FIRST_DAY
from workloads.traces.sampling import Status

_JOB_HEADER = (
    "id", "uid", "job_name", "kind", "namespace", "model", "status", "reason", "reason_code", "etcd_version",
    "cluster_id", "tenant_id", "group_id", "user_id", "is_enable_gpu_topo_aware", "is_deleted", "is_in_k8s",
    "gmt_job_submitted", "gmt_job_running", "gmt_job_stopped", "gmt_job_finished", "gmt_created", "gmt_modified",
    "extended", "job_max_running_time_minutes", "workspace_id", "priority", "resource_id", "resource_level",
    "workspace_name", "sub_status", "job_restart_times",
)  # fmt: skip
_UNNAMED_COLUMNS = 98
_WORKER_HEADER = (
    "id", "job_name", "worker_name", "replica_type", "host_ip", "gmt_created", "gmt_pod_running", "gmt_pod_finished",
    "RES",
)  # fmt: skip
_START = datetime.fromisoformat(FIRST_DAY)


def write_trace(trace: SyntheticTrace, folder: Path) -> None:
    """Write the three files. Raises FileExistsError, before writing, where one exists; OSError where writing fails."""
    paths = [folder / name for name in (TOPOLOGY_FILE, JOB_FILE, WORKER_FILE)]
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{folder}: exists, and is not a folder")
    for path in paths:
        if path.exists():
            raise FileExistsError(f"{path}: exists already")
    folder.mkdir(parents=True, exist_ok=True)
    topology, jobs, workers = paths
    hosts = ((host, rack.core, rack.aggregation, rack.tor) for host, rack in trace.racks.items())
    _write(topology, TOPOLOGY_COLUMNS, hosts)
    header = (*_JOB_HEADER, *[""] * _UNNAMED_COLUMNS)
    _write(jobs, header, ([*_job(job), *[""] * _UNNAMED_COLUMNS] for job in trace.jobs))
    _write(workers, _WORKER_HEADER, (_worker(number, worker) for number, worker in enumerate(trace.workers, 1)))


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def _job(job: SyntheticJob) -> list[object]:
    sampled = job.sampled
    # Rows of jobs stopped while running have times with seconds, except for the time of the stop.
    stopped = sampled.status is Status.STOPPED
    time = _time_with_seconds if stopped and job.running_min is not None else _time
    values = {
        "id": job.id,
        "job_name": job.name,
        "kind": "PyTorchJob",
        "model": sampled.model,
        "status": sampled.status,
        "is_enable_gpu_topo_aware": 0,
        "gmt_job_submitted": time(sampled.submitted_min),
        "gmt_job_running": time(job.running_min),
        "gmt_job_stopped": _time(job.ended_min) if stopped else "",
        "gmt_job_finished": time(job.ended_min),
        "gmt_created": time(sampled.submitted_min),
        "priority": "1.0",
        "resource_level": "L0",
    }
    return [values.get(column, "") for column in _JOB_HEADER]


def _worker(number: int, worker: SyntheticWorker) -> list[object]:
    resources = {"cpu": "8", "memory": "64Gi"} | ({"nvidia.com/gpu": str(worker.gpus)} if worker.gpus else {})
    return [
        number,
        worker.job,
        worker.name,
        "master" if "-master-" in worker.name else "worker",
        worker.host,
        _time(worker.running_min),
        _time(worker.running_min),
        _time(worker.ended_min),
        "" if worker.gpus is None else json.dumps(resources),
    ]


def _time(minute: int | None) -> str:
    if minute is None:
        return ""
    moment = _START + timedelta(minutes=minute)
    return f"{moment.year}/{moment.month}/{moment.day} {moment:%H:%M}"


def _time_with_seconds(minute: int | None) -> str:
    return "" if minute is None else f"{_START + timedelta(minutes=minute):%Y-%m-%d %H:%M:%S}"
