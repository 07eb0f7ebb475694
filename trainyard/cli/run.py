"""``trainyard run`` and ``trainyard demo``: scenarios under one policy after the other, as tables and pages."""

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from experiments.report.numbers import change, count, percent, seconds, slowdown
from experiments.report.style import FigureFormat
from experiments.scenarios.backend import Backend, RunError, real_hosts, run_on, unsupported_control, unsupported_on
from experiments.scenarios.results import RunResult, run_object
from experiments.scenarios.switch_kind import SwitchKind
from experiments.sweeps.cases import versions
from policies.enforcement import Enforcement
from policies.registry import as_policy
from trainyard.cli.answers import Answer, OutputFormat, OutputOption, Writer
from trainyard.cli.exits import fail, refuse
from trainyard.cli.inputs import policies_for, read_hashed_scenario, read_scenario
from trainyard.cli.options import (
    AllowPolicyImportOption,
    EnforcementOption,
    FigureFormatOption,
    FiguresOption,
    PerfettoOption,
    PoliciesOption,
    ReportOption,
    ScenarioArgument,
)
from trainyard.cli.output import PrintableConsole, number_table
from trainyard.cli.report_files import ReportFiles
from trainyard.progress import progress
from workloads.loading import SHIPPED_SCENARIOS
from workloads.scenario import CongestionControlChoice, ProfileSource, Scenario

if TYPE_CHECKING:
    from experiments.scenarios.backend import RunPolicy
    from policies.policy import Policy

BackendOption = Annotated[
    Backend,
    typer.Option(
        "--on",
        help="Back end. emulator: executes the P4 program for every packet; simulator: moves flows, much faster; "
        "namespaces and mininet: real programs and connections, in wall-clock time.",
    ),
]
RealTimeOption = Annotated[
    bool,
    typer.Option("--real-time", help="With --on namespaces or mininet: real-time priority for what passes frames."),
]
SwitchOption = Annotated[
    SwitchKind,
    typer.Option(
        "--switch",
        help="With --on namespaces or mininet: what the switches are, the emulator or Open vSwitch (ovs), "
        "which is controlled by OpenFlow.",
    ),
]
ShowOutputOption = Annotated[
    bool,
    typer.Option("--show-output", help="With --on namespaces or mininet: print what the programs of jobs print."),
]
SeedOption = Annotated[int | None, typer.Option("--seed", help="Seed to use instead of the scenario's own.")]
CongestionControlOption = Annotated[
    str | None,
    typer.Option("--congestion-control", metavar="NAME", help="With --on emulator: congestion control of hosts."),
]
FailuresOption = Annotated[
    bool, typer.Option("--failures", help="Run a mix on a fabric in which a cable fails, then a switch.")
]
RealOption = Annotated[
    bool, typer.Option("--real", help="Train PyTorch jobs over gloo, in network namespaces; needs Linux and PyTorch.")
]
IslandsOption = Annotated[
    bool, typer.Option("--islands", help="Run two tenants' programs on islands over a fabric; needs Linux.")
]
OutOption = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", file_okay=False, help="Folder for a page with figures.")
]

DEMO_SCENARIOS = ("fig19-n4", "fig20", "pipeline", "fewer-uplinks")
DEMO_POLICIES = ("ecmp", "crux-pa", "crux")
FAILURE_SCENARIOS = ("failing-cable",)
FAILURE_POLICIES = ("ecmp", "crux")
REAL_SCENARIO = "three-torch-jobs"
REAL_POLICIES = ("ecmp", "crux", "trainyard")


def run(
    scenario: ScenarioArgument,
    policy: PoliciesOption = None,
    on: BackendOption = Backend.EMULATOR,
    enforcement: EnforcementOption = Enforcement.LEVELS,
    output: OutputOption = OutputFormat.TABLE,
    report: ReportOption = None,
    figures: FiguresOption = None,
    figure_format: FigureFormatOption = FigureFormat.SVG,
    perfetto: PerfettoOption = None,
    seed: SeedOption = None,
    switch: SwitchOption = SwitchKind.EMULATOR,
    real_time: RealTimeOption = False,
    show_output: ShowOutputOption = False,
    congestion_control: CongestionControlOption = None,
    allow_policy_import: AllowPolicyImportOption = False,
) -> None:
    """Run a scenario under each policy and compare GPU utilisation and iteration times."""
    is_ovs = switch is SwitchKind.OVS
    for option, is_given in (("--switch ovs", is_ovs), ("--real-time", real_time), ("--show-output", show_output)):
        if is_given and not on.has_real_hosts:
            refuse(f"{option}: expected --on namespaces or mininet, got --on {on.value}")
    if is_ovs and real_time:
        refuse("--real-time: only the emulator asks for it; expected --switch emulator")
    if show_output:
        _show_output()
    accepted, sha256 = read_hashed_scenario(scenario, allow_policy_import=allow_policy_import)
    if congestion_control is not None:
        if not congestion_control:
            refuse("--congestion-control: expected a name, got ''")
        choice = CongestionControlChoice(name=congestion_control)
        if (problem := unsupported_control(choice, on)) is not None:
            refuse(f"--congestion-control: {problem}")
        accepted = accepted.model_copy(update={"congestion_control": choice})
    if (problem := unsupported_on(accepted, on, enforcement, switch)) is not None:
        refuse(f"{scenario}: {problem}")
    if seed is not None:
        accepted = accepted.model_copy(update={"seed": seed})
    policies = policies_for(accepted, policy)
    files = ReportFiles(report, figures, figure_format, perfetto)
    files.prepare()
    results, writer = [], Writer(output)
    run_policy = partial(run_on, on, accepted, enforcement=enforcement, switch=switch, is_real_time=real_time)
    for result in _results(accepted, policies, run_policy):
        results.append(result)
        source = {"file": str(scenario), "sha256": sha256, "seed": result.seed, "versions": versions()}
        document = run_object(result) | source
        writer.write(Answer(document, _rows(document)))
    # The files first: a reader of the tables that goes away, as ``head`` does, ends the command.
    try:
        files.save_perfetto(results)
        files.save_runs([results])
    finally:
        if writer.is_for_people:
            _print_results(results)


def _rows(run: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a row for every job of a run."""
    whole = {key: value for key, value in run.items() if not isinstance(value, list)}
    for job in run["jobs"]:
        yield (
            {"scenario": run["scenario"], "policy": run["policy"], "job": job["name"]}
            | whole
            | {f"job_{key}": value for key, value in job.items() if key != "name"}
        )


def _show_output() -> None:
    """Have what the programs of jobs print on standard error."""
    from experiments.scenarios.real_hosts.programs import OUTPUT

    OUTPUT.addHandler(logging.StreamHandler())
    OUTPUT.setLevel(logging.INFO)
    OUTPUT.propagate = False


def demo(
    failures: FailuresOption = False,
    real: RealOption = False,
    islands: IslandsOption = False,
    out: OutOption = None,
    figures: FiguresOption = None,
    figure_format: FigureFormatOption = FigureFormat.SVG,
) -> None:
    """Compare no scheduling, priority levels, and levels with paths on mixes of the Crux paper."""
    if failures + real + islands > 1:
        refuse("--failures, --real and --islands: expected one of them")

    def files(name: str) -> ReportFiles:
        page = None if out is None else out / f"{name}.html"
        return ReportFiles(page, figures, figure_format, page.with_suffix(".perfetto.json") if page else None)

    if islands:
        from trainyard.cli.islands_demo import demonstrate_islands

        demonstrate_islands(files("islands"))
    elif real:
        _demonstrate_real(files("real"))
    elif failures:
        _demonstrate(FAILURE_SCENARIOS, FAILURE_POLICIES, replace(files("failures"), perfetto=None))
    else:
        _demonstrate(DEMO_SCENARIOS, DEMO_POLICIES, replace(files("demo"), perfetto=None))


def _demonstrate(names: Sequence[str], policies: Sequence[str], files: ReportFiles) -> None:
    scenarios = [read_scenario(SHIPPED_SCENARIOS / f"{name}.yaml") for name in names]
    files.prepare()
    comparisons = []
    for scenario in scenarios:
        comparisons.append(list(_results(scenario, policies, partial(run_on, Backend.EMULATOR, scenario))))
        _print_results(comparisons[-1])
    PrintableConsole().print(overview(comparisons))
    files.save_runs(comparisons)


def _demonstrate_real(files: ReportFiles) -> None:
    """Train the same jobs under one policy after the other: only the controller is another one."""
    scenario = read_scenario(SHIPPED_SCENARIOS / f"{REAL_SCENARIO}.yaml")
    if (problem := unsupported_on(scenario, Backend.NAMESPACES, Enforcement.LEVELS)) is not None:
        refuse(f"--real: {problem}")
    files.prepare()
    try:
        with real_hosts(Backend.NAMESPACES, scenario, is_real_time=False, keeps_ranks=True) as run_policy:
            results = list(_results(scenario, REAL_POLICIES, run_policy))
    except RunError as error:
        fail(f"{scenario.name}: {error}")
    _print_results(results)
    files.save_perfetto(results)
    files.save_runs([results])


def _results(scenario: Scenario, policies: Sequence["Policy | str"], run_policy: "RunPolicy") -> Iterator[RunResult]:
    """Yield the result of every policy when its run is over; ends the command where a run fails."""
    for policy in map(as_policy, policies):
        title = f"{scenario.name} under {policy.name}"
        with progress(title) as on_progress:
            try:
                result = run_policy(policy, on_progress=on_progress)
            except RunError as error:
                fail(f"{title}: the run failed: {error}")
        yield result


def _print_results(results: Sequence[RunResult]) -> None:
    """Print the results of a scenario, compared with the first of them."""
    tables = [utilisation(results), iteration_times(results)]
    if results[0].events:
        tables.append(between_events(results))
    PrintableConsole().print(*tables, sep="\n")


def utilisation(results: Sequence[RunResult]) -> Table:
    """Return the GPU utilisation of every policy, with the ideal and the fluid bound."""
    rates = ", ideal rates" if results[0].enforcement is Enforcement.IDEAL else ""
    columns = ("Policy", "Utilisation", "Ideal", "Fluid bound", "Worst slowdown", "Starved", "Rules")
    table = number_table(f"{results[0].scenario}: GPU utilisation{rates}", *columns)
    for result in results:
        table.add_row(
            result.policy,
            percent(result.gpu_utilisation),
            percent(result.ideal_gpu_utilisation),
            percent(result.fluid_bound_gpu_utilisation),
            slowdown(result.worst_speed),
            count(result.starved_jobs),
            count(result.num_rules),
        )
    return table


def iteration_times(results: Sequence[RunResult]) -> Table:
    """Return a row for every job under every policy: its iteration time, and the change from the first policy."""
    is_any_measured = any(job.profile is ProfileSource.MEASURED for job in results[0].jobs)
    columns = ("Job", "Policy", *(["Profile"] if is_any_measured else []), "GPUs", "Ideal", "Iteration", "Change")
    table = number_table(f"{results[0].scenario}: iteration times", *columns, left=("Policy", "Profile"))
    for of_policies in zip(*(result.jobs for result in results), strict=True):
        first = of_policies[0]
        for result, job in zip(results, of_policies, strict=True):
            table.add_row(
                Text(job.name),
                Text(result.policy),
                *([job.profile] if is_any_measured else []),
                count(job.gpus),
                seconds(job.ideal_iteration_time_s),
                seconds(job.iteration_time_s),
                count(None) if result is results[0] else change(job.iteration_time_s, first.iteration_time_s),
            )
    return table


def between_events(results: Sequence[RunResult]) -> Table:
    """Return the GPU utilisation before, between and after failures and repairs, each policy in its own window."""
    title = f"{results[0].scenario}: GPU utilisation between events"
    table = number_table(title, "From", *(result.policy for result in results), "Then", left=("Then",))
    begin_s = min(result.window_from_s for result in results)
    moments = sorted({event.at_s for result in results for event in result.events if event.at_s > begin_s})
    for from_s, to_s in pairwise((begin_s, *moments, math.inf)):
        shares = [
            next((stretch.gpu_utilisation for stretch in result.stretches if from_s <= stretch.from_s < to_s), None)
            for result in results
        ]
        events = [event.in_words for event in results[0].events if event.at_s == to_s]
        cells = ("\N{EN DASH}" if share is None else percent(share) for share in shares)
        table.add_row(f"{round(from_s, 3):g} s", *cells, Text(", ".join(events)))
    return table


def overview(comparisons: Sequence[Sequence[RunResult]]) -> Table:
    """Return the GPU utilisation of scenarios under the same policies, with the limits of the last policy's window."""
    columns = ("Scenario", *(result.policy for result in comparisons[0]), "Ideal", "Fluid bound")
    table = number_table("GPU utilisation", *columns)
    for results in comparisons:
        limits = (results[-1].ideal_gpu_utilisation, results[-1].fluid_bound_gpu_utilisation)
        utilisations = (*(result.gpu_utilisation for result in results), *limits)
        table.add_row(Text(results[0].scenario), *map(percent, utilisations))
    return table
