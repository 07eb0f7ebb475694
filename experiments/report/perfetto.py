"""Runs as a file for ui.perfetto.dev and chrome://tracing: what happened, from iterations down to queues, by time.

Every policy has processes of its own, whose names begin with the policy: one for its Plans, one for each job, one for
the utilisation of links and one for their queues.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import count, pairwise
from pathlib import Path

from experiments.report.link_names import LEAST_LOAD, link_name
from experiments.report.trace_event_format import CounterSample, Event, Instant, Process, Slice, write_events
from experiments.scenarios.results import JobResult, RunResult
from policies.plan import JobPlan
from workloads.replay import CommunicationInterval, ComputeInterval

LevelsByLink = Sequence[Sequence[float]]


def write_perfetto(results: Sequence[RunResult], path: Path) -> None:
    """Write runs of one scenario, each under another policy; compressed where the name ends in ``.gz``.

    Raises:
        OSError: The file cannot be written.
    """
    first = results[0]
    about = {"scenario": first.scenario, "backend": first.backend, "enforcement": first.enforcement}
    write_events(path, perfetto_events(results), about | {"seed": first.seed, "scale": first.scale})


def perfetto_events(results: Sequence[RunResult]) -> Iterator[Event]:
    """Yield the events of runs of one scenario."""
    numbers = count(1)
    yield from _scenario(results, numbers)
    for result in results:
        yield from _plans(result, numbers)
        for job in result.jobs:
            yield from _job(result, job, numbers)
        yield from _link_utilisation(result, numbers)
        yield from _queued_bytes(result, numbers)


def _scenario(results: Sequence[RunResult], numbers: "count[int]") -> Iterator[Event]:
    """Yield what happens to the fabric, the same under every policy."""
    events = dict.fromkeys(event for result in results for event in result.events)
    if events:
        process = Process(f"scenario {results[0].scenario}", numbers)
        yield process.header()
        yield from process.instants("events", (Instant(event.in_words, event.at_s, is_global=True) for event in events))


def _plans(result: RunResult, numbers: "count[int]") -> Iterator[Event]:
    process = Process(f"{result.policy}: Plans", numbers)
    yield process.header()
    window = Slice("measurement window", result.window_from_s, min(result.window_to_s, result.ended_s))
    yield from process.slices("measurement window", [window])
    yield from process.instants(
        "Plans in force",
        (
            Instant(f"Plan {number}", plan.since_s, {"jobs": len(plan.jobs), "rules": plan.num_rules})
            for number, plan in enumerate(result.plans, start=1)
        ),
    )


def _job(result: RunResult, job: JobResult, numbers: "count[int]") -> Iterator[Event]:
    """Yield the tracks of a job: iterations, decisions, computation by hosts, transfers by flow group, its profile."""
    process = Process(f"{result.policy}: job {job.name}", numbers)
    yield process.header()
    iterations = (Slice(f"iteration {one.number}", one.start_s, one.end_s) for one in job.iterations)
    yield from process.slices("iterations", iterations)
    yield from process.slices("level", _decisions(result, job))
    for hosts, computed in _by_hosts(job.computing).items():
        slices = (Slice(one.name, one.start_s, one.end_s, {"iteration": one.iteration}) for one in computed)
        yield from process.slices(f"computation: {', '.join(hosts)}", slices)
    sent: defaultdict[str, list[Slice]] = defaultdict(list)
    for transfer in job.communicating:
        arguments = {
            "iteration": transfer.iteration,
            "bytes": transfer.size_bytes,
            "level": _level(result, job.name, transfer),
        }
        sent[transfer.group].append(Slice(transfer.group, transfer.start_s, transfer.end_s, arguments))
    for group, transfers in sent.items():
        yield from process.slices(f"flow group: {group}", transfers)
    if job.profiled:
        ranges = (Slice(one.name, one.start_s, one.end_s, {"iteration": one.iteration}) for one in job.profiled)
        yield from process.slices("PyTorch profiler", ranges)


def _decisions(result: RunResult, job: JobResult) -> Iterator[Slice]:
    """Yield what was decided for a job, from the Plan that changed it to the next such Plan or the job's end."""
    departed = job.jct_s is not None and job.iterations
    end_s = job.iterations[-1].end_s if departed else result.ended_s
    changes: list[tuple[float, JobPlan | None]] = []
    for plan in result.plans:
        decision = plan.jobs.get(job.name)
        if plan.since_s < end_s and (not changes or changes[-1][1] != decision):
            changes.append((plan.since_s, decision))
    for (since_s, decision), (until_s, _) in pairwise([*changes, (end_s, None)]):
        if decision is not None:
            arguments = {
                "level": decision.level,
                "rank": decision.rank,
                "intensity": decision.intensity,
                "correction factor": decision.correction_factor,
                "priority": decision.priority,
                "time shift (s)": decision.time_shift_s,
                "reason": decision.reason,
            }
            yield Slice(f"level {decision.level}", since_s, until_s, arguments)


def _level(result: RunResult, job: str, transfer: CommunicationInterval) -> int | None:
    """Return the level of a transfer when it started, None where no Plan was for its job.

    A job that the controller measures has one level for all that it sends.
    """
    in_force = bisect_right(result.plans, transfer.start_s, key=lambda plan: plan.since_s)
    if not in_force or job not in (plan := result.plans[in_force - 1]).jobs:
        return None
    return plan.flow_group_levels.get((job, transfer.group), plan.jobs[job].level)


def _by_hosts(computing: Sequence[ComputeInterval]) -> dict[tuple[str, ...], tuple[ComputeInterval, ...]]:
    """Return what hosts compute; hosts that always compute together are one."""
    by_host: defaultdict[str, list[ComputeInterval]] = defaultdict(list)
    for interval in computing:
        for host in interval.hosts:
            by_host[host].append(interval)
    together: defaultdict[tuple[ComputeInterval, ...], list[str]] = defaultdict(list)
    for host, intervals in by_host.items():
        together[tuple(intervals)].append(host)
    return {tuple(hosts): intervals for intervals, hosts in together.items()}


def _link_utilisation(result: RunResult, numbers: "count[int]") -> Iterator[Event]:
    """Yield the utilisation of links by level, each value from the beginning of its sample on."""
    if not result.loads:
        return
    process = Process(f"{result.policy}: link utilisation", numbers)
    yield process.header()
    idle = [[0.0] * len(levels) for levels in result.loads[0].utilisation]
    samples = [(sample.from_s, sample.utilisation) for sample in result.loads]
    yield from _counters(result, process, "utilisation", [*samples, (result.loads[-1].to_s, idle)], LEAST_LOAD, 3)


def _queued_bytes(result: RunResult, numbers: "count[int]") -> Iterator[Event]:
    """Yield what waited in front of links by level, where the back end has queues."""
    samples = [(sample.to_s, sample.queued_bytes) for sample in result.loads if sample.queued_bytes is not None]
    if samples:
        process = Process(f"{result.policy}: queued bytes", numbers)
        yield process.header()
        yield from _counters(result, process, "queued bytes", samples, 1.0, 0)


def _counters(
    result: RunResult,
    process: Process,
    quantity: str,
    samples: Sequence[tuple[float, LevelsByLink]],
    least: float,
    decimals: int,
) -> Iterator[Event]:
    """Yield a counter for each link with a series for each level that ever reaches ``least``; what changes alone."""
    for link in range(len(result.fabric.links)):
        rows = [(at_s, by_link[link]) for at_s, by_link in samples]
        levels = [level for level, highest in enumerate(map(max, *(row for _, row in rows))) if highest >= least]
        if levels:
            changes, last = [], None
            for at_s, row in rows:
                values = {f"level {level}": round(row[level], decimals) for level in reversed(levels)}
                if values != last:
                    changes.append(CounterSample(at_s, values))
                last = values
            yield from process.counter(f"{link_name(result.fabric, link)} {quantity}", changes)
