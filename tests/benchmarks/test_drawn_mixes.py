"""Predictions are compared with runs, and searches that are ended go on where they were."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import best_plans
from benchmarks.drawn_mixes import Measured, Mix, better_baseline, run_recording_plan, well_predicted
from benchmarks.mixes import figures
from policies.plan import ModelledWorth, Plan
from policies.policy import Policy
from policies.registry import find_policy
from policies.snapshot import Snapshot
from workloads.scenario import Scenario

CASE = Scenario.model_validate(
    {
        "name": "predicted",
        "topology": {"kind": "dumbbell", "hosts_per_side": 2, "bottleneck_gbps": 100, "host_link_gbps": 100},
        "jobs": [
            {
                **{"name": f"j{number}", "hosts": [f"h{number}", f"h{2 + number}"], "gpus_per_host": 8},
                **{"arrival_s": arrival_s, "duration_s": 8.0 - arrival_s},
                "workload": {
                    **{"type": "phases", "compute_s": 0.5, "comm_start": 0.0, "pattern": "pairs"},
                    "bytes": 1_000_000_000,
                },
            }
            for number, arrival_s in enumerate((0.0, 1.0))
        ],
        "measure": {"from_s": 2.0, "to_s": 8.0},
    }
)


def predicting(**iteration_s: float) -> Policy:
    """``ecmp``, with predictions."""
    ecmp = find_policy("ecmp")

    def predicted(snapshot: Snapshot) -> Plan:
        return replace(ecmp.decide(snapshot), worth=ModelledWorth(1.0, 1.0, iteration_s))

    return replace(ecmp, decide=predicted)


@pytest.mark.parametrize(
    ("predicted_s", "is_well"),
    [
        ({"j0": 0.5, "j1": 0.51}, [True, True]),
        ({"j0": 0.5, "j1": 0.6}, [True, False]),
        ({"j0": 0.4}, [False, False]),
        ({}, []),
    ],
)
def test_predictions_are_compared_with_the_run(predicted_s: dict[str, float], is_well: list[bool]) -> None:
    result, plan = run_recording_plan(CASE, predicting(**predicted_s))
    assert plan is not None
    assert len(plan.jobs) == 2
    assert well_predicted(result, plan) == is_well


def test_policies_without_a_model_predict_nothing() -> None:
    assert well_predicted(*run_recording_plan(CASE, find_policy("ecmp"))) == []
    result, plan = run_recording_plan(CASE, find_policy("ecmp"))
    assert plan is not None
    assert well_predicted(result, replace(plan, worth=ModelledWorth(1.0, 1.0))) == []
    assert well_predicted(result, None) == []


@pytest.mark.parametrize(("crux_starves", "ecmp_starves", "better"), [(0, 0, 0.6), (1, 0, 0.5), (1, 1, 0.6)])
def test_the_baseline_is_the_better_one_that_is_fair(crux_starves: int, ecmp_starves: int, better: float) -> None:
    by_policy = {
        "ecmp": Measured((0.5,), (ecmp_starves,), (0.5,), ()),
        "crux": Measured((0.6,), (crux_starves,), (0.0,), ()),
    }
    assert better_baseline(by_policy).utilisation == better


def test_the_share_is_taken_over_all_jobs_of_all_runs() -> None:
    base = Measured((0.5,) * 3, (0,) * 3, (0.5,) * 3, ())
    own = [replace(base, well_predicted=well) for well in ((True, True, False), (True,))]
    mixes = [Mix(seed, {"ecmp": base, "crux": base, "mine": each}, 0.0, "") for seed, each in enumerate(own)]
    assert figures(mixes, "mine")["predicted_within_5_percent"] == 0.75
    assert figures(mixes, "crux")["predicted_within_5_percent"] is None


_DRAWING = """
def mix(seed, run_seed=1):
    if seed == 1:
        raise ValueError("no such mix")
    return {
        "name": f"mix{seed}",
        "topology": {"kind": "dumbbell", "hosts_per_side": 1, "bottleneck_gbps": 100, "host_link_gbps": 100},
        "jobs": [
            {
                "name": "only", "hosts": ["h0", "h1"], "gpus_per_host": 8, "duration_s": 4,
                "workload": {"type": "phases", "compute_s": 0.5, "comm_start": 0.5, "bytes": 1e9, "pattern": "ring"},
            }
        ],
        "seed": run_seed,
        "measure": {"from_s": 1, "to_s": 4},
    }
"""


@pytest.mark.slow
def test_a_search_keeps_what_is_found_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawing, output = tmp_path / "draw.py", tmp_path / "best.json"
    drawing.write_text(_DRAWING)
    output.write_text(json.dumps({"0": {"1": 0.9}}))
    keys = ["--mixes", "3", "--plans", "2", "--workers", "1", "--drawing", str(drawing), "--output", str(output)]
    monkeypatch.setattr(sys, "argv", ["best_plans.py", *keys])
    # Mix 0 is known and left alone, mix 1 fails, and mix 2 is searched all the same.
    assert best_plans.main() == 1
    found = json.loads(output.read_text())
    assert found["0"] == {"1": 0.9}
    assert set(found) == {"0", "2"}
    assert found["2"]["1"] == pytest.approx(0.5 / (0.25 + 1e9 * 8 / 100e9 + 0.17), rel=0.05)
    assert [path.name for path in sorted(tmp_path.iterdir()) if path.is_file()] == ["best.json", "draw.py"]
