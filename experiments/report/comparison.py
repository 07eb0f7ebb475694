"""The runs of one scenario under several policies, side by side: words, tables and figures of an article."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from experiments.report.bars import utilisation_bars
from experiments.report.figure import ReportFigure
from experiments.report.figures import LINKS_SHOWN
from experiments.report.numbers import change, count, percent, points, seconds, signed, slowdown
from experiments.report.over_time import busiest_links, link_loads, load_limit, recovery, timeline
from experiments.report.time_axis import close_look
from experiments.report.topology import HeatScale, topology
from experiments.scenarios.results import JobResult, RunResult

_POLICIES_IN_WORDS = 3
_DASH = "\N{EN DASH}"


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table; ``tone`` is good, bad or empty, ``target`` an anchor that it leads to or empty."""

    words: str
    tone: str = ""
    target: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its caption; the first cell of a row names it."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of an article."""

    title: str
    explanation: str = ""
    tables: tuple[Table, ...] = ()
    figures: tuple[ReportFigure, ...] = ()
    items: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Article:
    """Everything about one scenario, or about the findings of one evaluation."""

    anchor: str
    kicker: str
    headline: str
    lead: str
    sections: tuple[Section, ...]
    footer: str


def comparison(results: Sequence[RunResult], anchor: str) -> Article:
    """Return the article about one scenario.

    Args:
        results: One result for each policy, the policy to compare with first.
        anchor: The identifier that links on the page lead to.

    Raises:
        ValueError: There is no result, or results belong to different scenarios.
    """
    scenarios = {result.scenario for result in results}
    if len(scenarios) != 1:
        raise ValueError(f"a comparison needs results of one scenario, not of {sorted(scenarios) or 'none'}")
    return Article(
        anchor,
        f"Scenario {results[0].scenario}",
        _headline(results),
        _lead(results),
        (
            *(_utilisation(results), _jobs(results), *_recovery(results)),
            *(_timelines(results), _loads(results), _topologies(results)),
        ),
        _footer(results),
    )


def _headline(results: Sequence[RunResult]) -> str:
    """Name every policy where there are few, else the first and the best."""
    first, *others = results
    title = f"GPUs compute {percent(first.gpu_utilisation)} of the time under {first.policy}"
    if len(results) <= _POLICIES_IN_WORDS:
        return title + "".join(f", {percent(other.gpu_utilisation)} under {other.policy}" for other in others) + "."
    best = max(others, key=lambda other: other.gpu_utilisation)
    return f"{title}, {percent(best.gpu_utilisation)} under {best.policy}, the best of {len(others)} others."


def _lead(results: Sequence[RunResult]) -> str:
    first, *others = results
    lead = (
        f"With the fabric to itself, every job at its best, they would compute {percent(first.ideal_gpu_utilisation)}."
    )
    if not others or len(results) > _POLICIES_IN_WORDS:
        return lead
    gains = ", ".join(f"{other.policy} {points(other.gpu_utilisation - first.gpu_utilisation)}" for other in others)
    return f"Against {first.policy}: {gains}. {lead}"


def _utilisation(results: Sequence[RunResult]) -> Section:
    first = results[0]
    rows = tuple(
        (
            Cell(result.policy),
            Cell(percent(result.gpu_utilisation)),
            Cell(_DASH if result is first else signed((result.gpu_utilisation - first.gpu_utilisation) * 100, 1)),
            Cell(percent(result.ideal_gpu_utilisation)),
            Cell(percent(result.fluid_bound_gpu_utilisation)),
            Cell(slowdown(result.worst_speed)),
            Cell(count(result.starved_jobs)),
        )
        for result in results
    )
    columns = (
        *("Policy", "Utilisation", f"Points against {first.policy}", "Ideal", "Fluid bound"),
        *("Worst slowdown", "Starved jobs"),
    )
    return Section(
        "GPU utilisation",
        "Computing GPU-seconds over allocated GPU-seconds in the measured window. Ideal: each job alone on the fabric. "
        "Fluid bound: no policy can exceed it while the jobs share the fabric. "
        "Slowdown: a job's iteration time over the ideal. Starved: no iteration in the window.",
        (Table("GPU utilisation of every policy", columns, rows),),
        (utilisation_bars(results),),
    )


def _jobs(results: Sequence[RunResult]) -> Section:
    """Return a table for each job: as readable with eleven policies as with two."""
    by_policy = [(result.policy, {job.name: job for job in result.jobs}) for result in results]
    columns = ("Policy", "Iteration time", f"Against {results[0].policy}", "Level")
    tables = tuple(
        Table(
            f"{job.name}: {count(job.gpus)} GPUs, ideal {seconds(job.ideal_iteration_time_s)}",
            columns,
            tuple(_iteration_time(policy, jobs[job.name], job) for policy, jobs in by_policy),
        )
        for job in results[0].jobs
    )
    return Section(
        "Iteration times",
        "Mean over the iterations inside the measured window. Level 7 is the most urgent.",
        tables,
    )


def _iteration_time(policy: str, job: JobResult, reference: JobResult) -> tuple[Cell, ...]:
    tone = ""
    if job.iteration_time_s is not None and reference.iteration_time_s is not None:
        ratio = round(job.iteration_time_s / reference.iteration_time_s, 3)
        tone = "good" if ratio < 1 else "bad" if ratio > 1 else ""
    against = _DASH if job is reference else change(job.iteration_time_s, reference.iteration_time_s)
    return Cell(policy), Cell(seconds(job.iteration_time_s)), Cell(against, tone), Cell(count(job.level))


def _recovery(results: Sequence[RunResult]) -> Iterator[Section]:
    if any(result.events for result in results):
        yield Section(
            "What failed",
            "GPU utilisation over the run, in steps about as long as the longest iteration; the scale fits the data. "
            "Shaded: an element is down. Solid lines: it fails; dashed lines: it comes back.",
            (_between_events(results),),
            (recovery(results),),
        )


def _between_events(results: Sequence[RunResult]) -> Table:
    """Return GPU utilisation before, between and after events, of each policy in its own window."""
    begin_s = min(result.window_from_s for result in results)
    moments = sorted({event.at_s for event in results[0].events if event.at_s > begin_s})
    spans = list(pairwise((begin_s, *moments, math.inf)))
    columns = ["Policy"]
    for from_s, _ in spans:
        began = ", ".join(event.in_words for event in results[0].events if event.at_s == from_s)
        columns.append(f"From {round(from_s, 3):g}\N{NO-BREAK SPACE}s{f': {began}' if began else ''}")
    rows = []
    for result in results:
        row = [Cell(result.policy)]
        for from_s, to_s in spans:
            inside = (stretch for stretch in result.stretches if from_s <= stretch.from_s < to_s)
            share = next((stretch.gpu_utilisation for stretch in inside), None)
            row.append(Cell(_DASH if share is None else percent(share)))
        rows.append(tuple(row))
    return Table("GPU utilisation between events", tuple(columns), tuple(rows))


def _timelines(results: Sequence[RunResult]) -> Section:
    span = close_look(results)
    fails = " Shaded: an element is down." if any(result.events for result in results) else ""
    return Section(
        "What the jobs did",
        "The same few seconds under every policy. Upper lane: computation, with a seam where an iteration begins; its "
        f"gaps are GPUs that wait. Lower lane: communication, in the colour of the job's level.{fails}",
        figures=tuple(timeline(result, span) for result in results),
    )


def _loads(results: Sequence[RunResult]) -> Section:
    sampled = all(result.loads for result in results)
    links = busiest_links(results, LINKS_SHOWN) if sampled else ()
    if not links:
        return Section("Link load", "No load was recorded on any link between switches.")
    limit, span = load_limit(results, links), close_look(results)
    return Section(
        "Link load by level",
        "The busiest links between switches, in parts of the link's rate. The most urgent level lies at the bottom, "
        "because a switch serves it first.",
        figures=tuple(link_loads(result, links, span, limit) for result in results),
    )


def _topologies(results: Sequence[RunResult]) -> Section:
    scale = HeatScale.of(results)
    return Section(
        "The fabric",
        "A cable has the colour of the most intense job that it carries (GPU intensity: computation that a second on "
        "the job's bottleneck link feeds), and is as thick as its mean load. All cables of a host are one line.",
        figures=tuple(topology(result, scale) for result in results),
    )


def _footer(results: Sequence[RunResult]) -> str:
    first = results[0]
    rules = ", ".join(f"{result.policy} {count(result.num_rules)} rules" for result in results)
    return (
        f"Run on the {first.backend}, enforcement {first.enforcement}, seed {first.seed}, rates and sizes divided by "
        f"{first.scale:g}; measured from {first.window_from_s:.2f} to {first.window_to_s:.2f} s under {first.policy}. "
        f"Rules for single flows: {rules}."
    )
