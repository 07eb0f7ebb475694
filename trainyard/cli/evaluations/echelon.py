"""``trainyard evaluate echelon``."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from policies.enforcement import Enforcement
from trainyard.cli.evaluations.shared import JsonOption, SeedsOption, prepare, require_known, show
from trainyard.cli.exits import fail, refuse
from trainyard.cli.inputs import ReportOption
from trainyard.cli.running import EnforcementOption
from trainyard.progress import progress

if TYPE_CHECKING:
    from experiments.papers.echelon_mixes import Kind
    from experiments.papers.echelon_runs import RunMeasured

KindOption = Annotated[list[str] | None, typer.Option("--kind", help="May be repeated. Without it: all of them.")]
LoadOption = Annotated[
    list[float] | None,
    typer.Option("--load", help="Offered load of the cable, in parts of one; may be repeated. Without it: .4 and .8."),
]


def echelon(
    kind: KindOption = None,
    load: LoadOption = None,
    seeds: SeedsOption = 20,
    enforcement: EnforcementOption = Enforcement.IDEAL,
    as_json: JsonOption = False,
    report: ReportOption = None,
) -> None:
    """EchelonFlow beside fair sharing and coflows: iteration time, tardiness and excess tardiness of jobs that share a
    cable, and small cases against the optimum."""
    from experiments.papers.echelon import (
        OPTIMUM,
        OPTIMUM_SEED,
        Measured,
        findings,
        gaps_measured,
        json_object,
        mixes_measured,
    )
    from experiments.papers.echelon_mixes import LEAST_LOAD, Kind
    from experiments.papers.open_loop_policies import CASES, tardiness_gaps

    kinds = (*Kind, OPTIMUM)
    require_known("--kind", kind, kinds)
    if wrong := [one for one in load or () if not LEAST_LOAD <= one < 1]:
        refuse(f"--load: expected at least {LEAST_LOAD:g} and less than 1, got {one:g}" for one in wrong)
    prepare(report)
    measured: list[Measured] = []

    def keep(case: Measured) -> None:
        measured.append(case)
        if as_json:
            print(json.dumps(json_object(case)), flush=True)

    try:
        for name in dict.fromkeys(kind or kinds):
            if name == OPTIMUM:
                gaps: list[Mapping[str, float]] = []
                try:
                    with progress(what := f"{CASES} small cases against the optimum"):
                        for gap in tardiness_gaps(OPTIMUM_SEED):
                            gaps.append(gap)
                except RuntimeError as error:
                    fail(f"{what}: {error}")
                finally:
                    if gaps:
                        keep(gaps_measured(gaps))
                continue
            for one in dict.fromkeys(load or (0.4, 0.8)):
                runs: list[tuple[int, Sequence[RunMeasured]]] = []
                try:
                    for seed in range(1, seeds + 1):
                        runs.append((seed, _contend(Kind(name), one, seed, seeds, enforcement)))
                finally:
                    if runs:
                        keep(mixes_measured(Kind(name), one, enforcement, runs))
    finally:
        if measured:
            show(findings(measured, enforcement), as_json=as_json, report=report)


def _contend(kind: "Kind", load: float, seed: int, seeds: int, enforcement: Enforcement) -> "list[RunMeasured]":
    """A mix under every contender; ends the command where a run fails."""
    from controller.registry.registration import RegistrationError
    from experiments.papers.echelon_mixes import drawn_mix
    from experiments.papers.echelon_runs import CONTENDERS, measure

    scenario = drawn_mix(kind, load, seed)
    found = []
    for contender in CONTENDERS:
        what = f"{scenario.name} under {contender.name}, seed {seed} of {seeds}"
        with progress(what) as on_progress:
            try:
                found.append(measure(scenario, contender, enforcement, on_progress))
            except (RegistrationError, RuntimeError, ValueError) as error:
                fail(f"{what}: the run failed: {error}")
    return found
