"""``trainyard run-trace``."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from trainyard.cli.exits import fail
from trainyard.cli.inputs import load_policies, require_positive
from trainyard.cli.interruption import interruptible
from trainyard.cli.traces import AssumptionsOption, FolderArgument, load_summary, require_jobs
from trainyard.progress import progress
from workloads.field_types import LONGEST_S
from workloads.schedulers.catalogue import Scheduler, admission_function

if TYPE_CHECKING:
    from experiments.traces.results import TraceResult
    from experiments.traces.run import TraceRun


PolicyOption = Annotated[
    list[str],
    typer.Option(
        "--policy",
        metavar="POLICY",
        help="A name (see trainyard policies), or module:attribute. May be repeated: a run for each.",
    ),
]
SchedulerOption = Annotated[Scheduler, typer.Option("--scheduler", help="What chooses GPUs for jobs.")]
DaysOption = Annotated[float | None, typer.Option("--days", help="Cut the run off after so many days.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Of the fabric's hash, policies and random placement.")]
DelayOption = Annotated[
    float,
    typer.Option(
        "--reaction-delay-s", min=0, max=LONGEST_S, help="From what happens to a job to the plan that knows it."
    ),
]
EveryOption = Annotated[
    bool, typer.Option("--every-iteration", help="Compute every iteration; repeat and extrapolate none.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="A JSON object for each policy, on a line when it is done.")]

_DAY_S = 86_400.0


def run_trace(
    folder: FolderArgument,
    policy: PolicyOption,
    scheduler: SchedulerOption = Scheduler.AFFINITY,
    days: DaysOption = None,
    seed: SeedOption = 1,
    reaction_delay_s: DelayOption = 0.01,
    every_iteration: EveryOption = False,
    assumptions: AssumptionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a trace of weeks on the simulator: utilisation, slowdowns, and what it took to find them."""
    from experiments.traces.results import trace_object
    from experiments.traces.run import TraceOptions, TraceRun
    from experiments.traces.steady_state import ACCURATE, SkipOptions

    if days is not None:
        require_positive("--days", days)
    assumed, summary = load_summary(folder, assumptions)
    require_jobs(summary, folder)
    options = TraceOptions(
        seed=seed,
        reaction_delay_s=reaction_delay_s,
        until_s=None if days is None else days * _DAY_S,
        skip=ACCURATE if every_iteration else SkipOptions(),
    )
    results, problem = [], None
    for decides in load_policies(policy):
        run = TraceRun(summary.jobs, assumed.fabric, decides, admission_function(scheduler, seed), options)
        problem = _to_the_end(run, f"{folder.name} under {decides.name}")
        results.append(run.result())
        if as_json:
            print(json.dumps(trace_object(results[-1]) | {"scheduler": scheduler}), flush=True)
        if problem is not None:
            break
    if not as_json:
        _show(folder.name, scheduler, results)
    if problem is not None:
        fail(f"{problem}; what there is ends at {results[-1].ended_s / _DAY_S:.2f} days")


def _to_the_end(run: "TraceRun", what: str) -> str | None:
    """Run until all is done or something prevents it; returns what."""
    try:
        with progress(what) as on_progress, interruptible() as is_interrupted:
            while run.step():
                on_progress(run.now_s, max(run.now_s, run.last_arrival_s))
                if is_interrupted():
                    return "interrupted"
    except ValueError as error:
        return str(error)
    return None


def _show(name: str, scheduler: Scheduler, results: Sequence["TraceResult"]) -> None:
    from experiments.report.numbers import count, percent
    from experiments.traces.results import Distribution
    from trainyard.cli.layout import number_table

    used = number_table(
        f"{name}, placed by {scheduler}: GPUs that compute", "Policy", "Of allocated", "Mean over time", "Of all",
        "Days", "Done", "Running", "Waiting", left=("Policy",),
    )  # fmt: skip
    slowed = number_table(
        f"{name}: time on GPUs over ideal", "Policy", "p50", "p99", "Worst", "Above 2x", "Above 10x", "Queueing, mean",
        left=("Policy",),
    )  # fmt: skip
    took = number_table(
        f"{name}: iterations of jobs that send", "Policy", "Decisions", "Components", "Computed", "Repeated",
        "Extrapolated", left=("Policy",),
    )  # fmt: skip
    for result in results:
        used.add_row(
            result.policy,
            percent(result.gpu_utilisation),
            percent(result.series.mean_utilisation),
            percent(result.cluster_utilisation),
            f"{result.ended_s / _DAY_S:.2f}",
            count(len(result.slowdowns)),
            count(len(result.jobs) - len(result.slowdowns)),
            count(result.num_waiting),
        )
        if (of := Distribution.of(result.run_slowdowns)) is not None:
            slowed.add_row(
                result.policy,
                *(f"{value:.3f}" for value in (of.p50, of.p99, of.worst)),
                percent(of.share_above_2),
                percent(of.share_above_10),
                f"{result.mean_queueing_s:.0f} s",
            )
        counts = result.counts
        took.add_row(
            result.policy,
            *map(count, (counts.decisions, counts.components, counts.iterations_computed)),
            *map(count, (counts.iterations_repeated, round(counts.iterations_extrapolated))),
        )
    Console().print(used, slowed, took, sep="\n")
