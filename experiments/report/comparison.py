"""What the runs of one scenario under several policies have in common and apart, in tables and pictures."""

from collections.abc import Iterable, Sequence

from experiments.report.axis import close_look
from experiments.report.charts import NUM_LEVELS, busiest_links, link_loads, utilisation_bars
from experiments.report.numbers import change, count, percent, points, quantity, seconds
from experiments.report.recovery import recovery
from experiments.report.svg import Markup, element, joined, line, rectangle
from experiments.report.timeline import timeline
from experiments.report.topology import HeatScale, topology
from experiments.scenarios.results import JobResult, RunResult

_LINKS_SHOWN = 4


def comparison(results: Sequence[RunResult], anchor: str) -> Markup:
    """One article about the results of one scenario, the policy to compare with first; links lead to its ``anchor``.

    Raises ValueError where there is no result, or results of different scenarios.
    """
    scenarios = {result.scenario for result in results}
    if len(scenarios) != 1:
        raise ValueError(f"a comparison needs results of one scenario, not of {sorted(scenarios) or 'none'}")
    return element(
        "article",
        _headline(results),
        _utilisation(results),
        _jobs(results),
        *_recovery(results),
        _timelines(results),
        _loads(results),
        _topologies(results),
        _footer(results),
        id=anchor,
    )


def _headline(results: Sequence[RunResult]) -> Markup:
    first, *others = results
    title = f"GPUs compute {percent(first.gpu_utilisation)} of the time under {first.policy}"
    title += "".join(f", {percent(other.gpu_utilisation)} under {other.policy}" for other in others)
    lead = (
        f"With the fabric to itself, every job at its best, they would compute {percent(first.ideal_gpu_utilisation)}."
    )
    gains = ", ".join(f"{other.policy} {points(other.gpu_utilisation - first.gpu_utilisation)}" for other in others)
    if gains:
        lead = f"Against {first.policy}: {gains}. {lead}"
    return element(
        "header",
        element("p", f"Scenario {first.scenario}", class_="scenario"),
        element("h1", f"{title}."),
        element("p", lead, class_="lead"),
    )


def _utilisation(results: Sequence[RunResult]) -> Markup:
    return _section(
        "GPU utilisation",
        "Computing GPU-seconds over allocated GPU-seconds in the measured window. Ideal: each job alone on the fabric. "
        "Fluid bound: no policy can exceed it while the jobs share the fabric.",
        _legend(((_line_swatch("ideal"), "ideal"), (_line_swatch("bound"), "fluid bound"))),
        _figure(utilisation_bars(results)),
    )


def _jobs(results: Sequence[RunResult]) -> Markup:
    first, *others = results
    titles = ["Job", "GPUs", "Ideal", first.policy]
    for other in others:
        titles += [other.policy, "change", "level"]
    by_policy = [{job.name: job for job in other.jobs} for other in others]
    rows = (
        element(
            "tr",
            element("td", job.name),
            element("td", count(job.gpus)),
            element("td", seconds(job.ideal_iteration_time_s)),
            element("td", seconds(job.iteration_time_s)),
            *(cell for jobs in by_policy for cell in _comparison(jobs[job.name], job)),
        )
        for job in first.jobs
    )
    return _section(
        "Iteration times",
        "Mean over the iterations inside the measured window. Level 7 is the most urgent.",
        _figure(
            element(
                "table",
                element("thead", element("tr", *(element("th", title) for title in titles))),
                element("tbody", *rows),
            )
        ),
    )


def _comparison(job: JobResult, reference: JobResult) -> Iterable[Markup]:
    faster = None
    if job.iteration_time_s is not None and reference.iteration_time_s is not None:
        ratio = round(job.iteration_time_s / reference.iteration_time_s, 3)
        faster = "good" if ratio < 1 else "bad" if ratio > 1 else None
    yield element("td", seconds(job.iteration_time_s))
    yield element("td", change(job.iteration_time_s, reference.iteration_time_s), class_=faster)
    yield element("td", count(job.level))


def _recovery(results: Sequence[RunResult]) -> Iterable[Markup]:
    if any(result.events for result in results):
        yield _section(
            "What failed",
            "GPU utilisation over the run, in steps about as long as the longest iteration; the top of a panel is "
            "100 %. Dashed: what fails, and comes back.",
            _figure(recovery(results)),
        )


def _timelines(results: Sequence[RunResult]) -> Markup:
    look = close_look(results)
    fail = " Dashed: what fails, and comes back." if any(result.events for result in results) else ""
    return _section(
        "What the jobs did",
        "The same few seconds under every policy. Upper lane: computation, with a seam where an iteration begins; its "
        "gaps are GPUs that wait. Lower lane: communication, in the colour of the job's level." + fail,
        _legend(((_area_swatch("compute"), "computation"), *_levels_legend())),
        *(joined((element("h3", result.policy), _figure(timeline(result, *look)))) for result in results),
    )


def _loads(results: Sequence[RunResult]) -> Markup:
    sampled = all(result.loads for result in results)
    links = busiest_links(results, _LINKS_SHOWN) if sampled else ()
    if not links:
        return _section("Link load", "No load was recorded on any link between switches.")
    return _section(
        "Link load by level",
        "The busiest links between switches; the top of a panel is the link's rate. The most urgent level lies at the "
        "bottom, because a switch serves it first.",
        _legend(_levels_legend()),
        _figure(link_loads(results, links, *close_look(results))),
    )


def _topologies(results: Sequence[RunResult]) -> Markup:
    scale = HeatScale.of(results)
    return _section(
        "The fabric",
        "A cable has the colour of the most intense job that it carries (GPU intensity: computation that a second on "
        "the job's bottleneck link feeds), and is as thick as its mean load. All cables of a host are one line.",
        *(
            joined((element("h3", result.policy), _heats_legend(result, scale), _figure(topology(result, scale))))
            for result in results
        ),
    )


def _footer(results: Sequence[RunResult]) -> Markup:
    first = results[0]
    hops = ", ".join(f"{result.policy} {count(result.num_rules)} rules" for result in results)
    return element(
        "footer",
        f"Run on the {first.backend}, enforcement {first.enforcement}, seed {first.seed}, rates and sizes divided by "
        f"{first.scale:g}; measured from {first.window_from_s:.2f} to {first.window_to_s:.2f} s under {first.policy}. "
        f"Rules for single flows: {hops}.",
    )


def _section(title: str, explanation: str, *content: Markup) -> Markup:
    return element("section", element("h2", title), element("p", explanation, class_="explanation"), *content)


def _figure(content: Markup) -> Markup:
    return element("figure", content)


def _legend(entries: Iterable[tuple[Markup, str]]) -> Markup:
    return element("ul", *(element("li", swatch, words) for swatch, words in entries), class_="legend")


def _levels_legend() -> Iterable[tuple[Markup, str]]:
    return [(_area_swatch(f"level-{level}"), f"level {level}") for level in reversed(range(NUM_LEVELS))]


def _heats_legend(result: RunResult, scale: HeatScale) -> Markup:
    """Jobs of one intensity share an entry."""
    names: dict[tuple[int, str], list[str]] = {}
    for job in sorted(result.jobs, key=lambda job: -(job.intensity or 0)):
        names.setdefault((scale.heat(job.intensity), quantity(job.intensity)), []).append(job.name)
    return _legend(
        (_line_swatch(f"heat-{heat}"), f"{_listed(jobs)}: {intensity}") for (heat, intensity), jobs in names.items()
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 4 else f"{names[0]}, {names[1]}, \N{HORIZONTAL ELLIPSIS} {names[-1]}"


def _area_swatch(class_: str) -> Markup:
    return _swatch(rectangle(0, 0, 16, 12, class_))


def _line_swatch(class_: str) -> Markup:
    return _swatch(line(0, 6, 16, 6, class_))


def _swatch(shape: Markup) -> Markup:
    return element("svg", shape, viewBox="0 0 16 12", aria_hidden="true")
