"""Small traces in the released format."""

import json
from collections.abc import Sequence
from pathlib import Path

JOB_HEADER = "id,job_name,model,status,gmt_job_submitted,gmt_job_running,gmt_job_stopped,gmt_job_finished,,"
WORKER_HEADER = "id,job_name,worker_name,replica_type,host_ip,gmt_created,gmt_pod_running,gmt_pod_finished,RES"
TOPOLOGY = "ip,DSW,PSW,ASW\nx0,G6,P1,S1\nx1,G6,P1,S1\ny0,G6,P1,S2\nz0,G6,P2,S1\n"


def at(minute: int | None) -> str:
    """Format a time of the day like the dataset; empty for None."""
    return "" if minute is None else f"2023/7/15 {minute // 60:02}:{minute % 60:02}"


def job(
    name: str, submitted: int | None, running: int | None, ended: int | None, status: str = "Succeeded", model: str = ""
) -> str:
    """Return a row of job.csv."""
    return f"1,{name},{model},{status},{at(submitted)},{at(running)},,{at(ended)},,"


def worker(job: str, name: str, host: str, running: int | None, ended: int | None, gpus: int | None = 8) -> str:
    """Return a row of worker.csv; None means no resources."""
    resources = "" if gpus is None else json.dumps({"cpu": "8", "nvidia.com/gpu": str(gpus)}).replace('"', '""')
    return f'1,{job},{name},worker,{host},{at(running)},{at(running)},{at(ended)},"{resources}"'


def write(folder: Path, jobs: Sequence[str], workers: Sequence[str], topology: str = TOPOLOGY) -> Path:
    """Write the three files of a trace."""
    (folder / "topo.csv").write_text(topology)
    (folder / "job.csv").write_text("\n".join([JOB_HEADER, *jobs]) + "\n")
    (folder / "worker.csv").write_text("\n".join([WORKER_HEADER, *workers]) + "\n")
    return folder
