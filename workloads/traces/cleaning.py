"""Cleaning of a trace: rules that leave rows out or only note them. Each finding names its rule and row.

Worker rules apply in order. They reproduce the counts of two users of the dataset: of 23,742 rows 28 have no time, 946
no duration, 2,917 a host outside the topology, and 5 no resources.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from workloads.traces.lingjun import JobRow, LingjunRows, Rack, WorkerRow


class Rule(StrEnum):
    """Something wrong with a row; the text says what the cleaning does about it."""

    WORKER_UNREADABLE = "worker with a value that cannot be read: left out"
    WORKER_WITHOUT_TIME = "worker without a time: left out"
    WORKER_WITHOUT_DURATION = "worker that ended when it began, or before: left out"
    WORKER_ON_UNKNOWN_HOST = "worker on a host that is not in the topology: left out"
    WORKER_WITHOUT_RESOURCES = "worker without resources: left out"
    WORKER_OF_UNKNOWN_JOB = "worker of a job that is not in job.csv: left out"
    WORKER_RESTARTED = "worker that ran again later: left out"

    JOB_UNREADABLE = "job with a value that cannot be read: left out"
    JOB_REPEATED = "job of a name that was there before: left out"
    JOB_NEVER_RAN = "job that never ran: left out"
    JOB_RAN_TOO_EARLY = "job that ran before it was submitted: left out"
    JOB_ENDED_TOO_EARLY = "job that ended when it began, or before: left out"
    JOB_WITHOUT_WORKERS = "job without workers: left out"
    JOB_WITHOUT_GPUS = "job without GPUs: left out"
    JOB_WITH_TOO_MANY_GPUS = "job with more GPUs on a host than it has: left out"

    JOB_STILL_RUNNING = "job that had not ended: taken as running to the end of the log"
    JOB_LOST_WORKERS = "job some of whose workers were left out: those left count"
    JOB_OUT_OF_ORDER = "job submitted before that of the row above: sorted"


@dataclass(frozen=True, slots=True)
class Finding:
    """A row of ``job.csv`` or ``worker.csv`` that met a rule; ``detail`` names the job, the column and the value."""

    rule: Rule
    line: int
    detail: str


@dataclass(frozen=True, slots=True)
class LoggedJob:
    """A job that ran on GPUs: times in seconds since 1970, GPUs by host."""

    name: str
    model: str
    submitted_s: float
    running_s: float
    ended_s: float
    gpus_by_host: Mapping[str, int]

    @property
    def gpus(self) -> int:
        """GPUs on all hosts together."""
        return sum(self.gpus_by_host.values())

    @property
    def run_time_s(self) -> float:
        """Time from start to end."""
        return self.ended_s - self.running_s


@dataclass(frozen=True, slots=True)
class CleanTrace:
    """The remaining jobs in order of submission, the rack of every host, and the findings."""

    jobs: tuple[LoggedJob, ...]
    racks: Mapping[str, Rack]
    findings: tuple[Finding, ...]

    @property
    def counts(self) -> Mapping[Rule, int]:
        """Number of rows that matched each rule; zero for rules without a match."""
        met = Counter(finding.rule for finding in self.findings)
        return {rule: met[rule] for rule in Rule}


def clean(rows: LingjunRows, gpus_per_host: int = 8) -> CleanTrace:
    """Apply the rules to a trace whose hosts have ``gpus_per_host`` GPUs each."""
    findings: list[Finding] = []
    workers, lost = _sound_workers(rows, findings)
    end_s = _end_of_the_log_s(rows)
    jobs: list[LoggedJob] = []
    seen: set[str] = set()
    previous_s = float("-inf")
    for row in rows.jobs:
        rule, detail = _fault(row, seen, workers.get(row.name, ()), gpus_per_host)
        if rule is not None:
            findings.append(Finding(rule, row.line, f"{row.name}{detail}"))
        seen.add(row.name)
        if row.submitted_s is not None:
            if row.submitted_s < previous_s:
                findings.append(Finding(Rule.JOB_OUT_OF_ORDER, row.line, row.name))
            previous_s = row.submitted_s
        if rule is not None or row.submitted_s is None or row.running_s is None:
            continue
        if row.ended_s is None:
            findings.append(Finding(Rule.JOB_STILL_RUNNING, row.line, row.name))
        if row.name in lost:
            findings.append(Finding(Rule.JOB_LOST_WORKERS, row.line, row.name))
        ended_s = end_s if row.ended_s is None else row.ended_s
        hosts = _gpus_by_host(workers[row.name])
        jobs.append(LoggedJob(row.name, row.model, row.submitted_s, row.running_s, ended_s, hosts))
    return CleanTrace(tuple(sorted(jobs, key=lambda job: job.submitted_s)), rows.racks, tuple(findings))


def _sound_workers(rows: LingjunRows, findings: list[Finding]) -> tuple[dict[str, list[WorkerRow]], set[str]]:
    """Return the workers of each job that no rule leaves out, and the jobs that lost workers with GPUs."""
    names = {row.name for row in rows.jobs}
    sound: dict[tuple[str, str], WorkerRow] = {}
    lost: set[str] = set()
    for row in rows.workers:
        rule, detail = _worker_fault(row, rows.racks, names)
        if rule is not None:
            findings.append(Finding(rule, row.line, f"{row.job}: {row.name}{detail}"))
            if row.gpus:
                lost.add(row.job)
            continue
        earlier = sound.get((row.job, row.name))
        if earlier is not None:
            first, row = sorted((earlier, row), key=lambda worker: worker.running_s or 0.0)
            findings.append(Finding(Rule.WORKER_RESTARTED, first.line, f"{first.job}: {first.name}"))
        sound[row.job, row.name] = row
    by_job: defaultdict[str, list[WorkerRow]] = defaultdict(list)
    for (job, _), row in sound.items():
        by_job[job].append(row)
    return dict(by_job), lost


def _worker_fault(row: WorkerRow, racks: Mapping[str, Rack], jobs: set[str]) -> tuple[Rule | None, str]:
    if row.unreadable:
        return Rule.WORKER_UNREADABLE, "".join(f", {fault.column}: {fault.value!r}" for fault in row.unreadable)
    if row.running_s is None or row.ended_s is None:
        return Rule.WORKER_WITHOUT_TIME, ""
    if row.ended_s <= row.running_s:
        return Rule.WORKER_WITHOUT_DURATION, ""
    if row.host not in racks:
        return Rule.WORKER_ON_UNKNOWN_HOST, f", host_ip: {row.host!r}"
    if row.gpus is None:
        return Rule.WORKER_WITHOUT_RESOURCES, ""
    return (None if row.job in jobs else Rule.WORKER_OF_UNKNOWN_JOB), ""


def _fault(row: JobRow, seen: set[str], workers: Sequence[WorkerRow], gpus_per_host: int) -> tuple[Rule | None, str]:
    """Return the first rule that leaves a job out."""
    if row.unreadable or not row.name:
        unnamed = () if row.name else (": job_name is empty",)
        return Rule.JOB_UNREADABLE, "".join((*unnamed, *(f", {bad.column}: {bad.value!r}" for bad in row.unreadable)))
    if row.name in seen:
        return Rule.JOB_REPEATED, ""
    if row.running_s is None or row.submitted_s is None:
        return Rule.JOB_NEVER_RAN, ""
    if row.running_s < row.submitted_s:
        return Rule.JOB_RAN_TOO_EARLY, ""
    if row.ended_s is not None and row.ended_s <= row.running_s:
        return Rule.JOB_ENDED_TOO_EARLY, ""
    if not workers:
        return Rule.JOB_WITHOUT_WORKERS, ""
    hosts = _gpus_by_host(workers)
    if not hosts:
        return Rule.JOB_WITHOUT_GPUS, ""
    crowded = max(hosts, key=lambda host: hosts[host])
    if hosts[crowded] > gpus_per_host:
        return Rule.JOB_WITH_TOO_MANY_GPUS, f": {hosts[crowded]} on {crowded}, which has {gpus_per_host}"
    return None, ""


def _gpus_by_host(workers: Sequence[WorkerRow]) -> dict[str, int]:
    gpus: Counter[str] = Counter()
    for worker in workers:
        gpus[worker.host] += worker.gpus or 0
    return {host: count for host, count in gpus.items() if count}


def _end_of_the_log_s(rows: LingjunRows) -> float:
    return max(_times_s(rows), default=0.0)


def _times_s(rows: LingjunRows) -> Iterator[float]:
    for row in rows.jobs:
        yield from (time_s for time_s in (row.submitted_s, row.running_s, row.ended_s) if time_s is not None)
