"""``trainyard evaluate crux-testbed``."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.scenarios.backend import Backend
from trainyard.cli.backend import run_all
from trainyard.cli.evaluations.shared import JsonOption, MixOption, SeedsOption, prepare, require_known, show
from trainyard.cli.inputs import ReportOption
from workloads.loading import SHIPPED_SCENARIOS, load_scenario

if TYPE_CHECKING:
    from experiments.scenarios.results import RunResult

BackendOption = Annotated[Backend, typer.Option("--on", help="What runs the mixes; the emulator takes minutes each.")]


def crux_testbed(
    mix: MixOption = None,
    seeds: SeedsOption = 10,
    on: BackendOption = Backend.SIMULATOR,
    as_json: JsonOption = False,
    report: ReportOption = None,
) -> None:
    """Crux's testbed (Figures 19 to 22): utilisation and iteration times under ecmp, crux and trainyard."""
    from experiments.papers.crux_testbed import POLICIES, PUBLISHED, findings, json_object, measured

    require_known("--mix", mix, PUBLISHED)
    prepare(report)
    measured_mixes = []
    pictures: list[Sequence[RunResult]] = []
    try:
        for name in dict.fromkeys(mix or PUBLISHED):
            scenario = load_scenario(SHIPPED_SCENARIOS / f"{name}.yaml")
            runs: list[Sequence[RunResult]] = []
            try:
                for seed in range(1, seeds + 1):
                    seeded = scenario.model_copy(update={"seed": seed})
                    runs.append(tuple(run_all(seeded, POLICIES, on, aside=f", seed {seed} of {seeds}")))
            finally:
                if runs:
                    pictures.append(runs[0])
                    measured_mixes.append(measured(name, runs))
                    if as_json:
                        print(json.dumps(json_object(measured_mixes[-1])), flush=True)
    finally:
        if measured_mixes:
            show(findings(measured_mixes), as_json=as_json, report=report, pictures=pictures)
