"""Runs of the evaluation: a pipeline reckoned by hand, and what the two readings of a coflow have in common."""

import pytest

from experiments.papers.echelon_mixes import Kind, drawn_mix
from experiments.papers.echelon_runs import (
    BY_GROUP,
    BY_STAGE,
    CONTENDERS,
    ECHELONFLOW,
    FAIR,
    Contender,
    Reading,
    RunMeasured,
    measure,
)
from policies.enforcement import Enforcement
from workloads.models import MODELS, ModelName
from workloads.scenario import Scenario

MICRO_BATCHES = 3
FORWARD_S = MODELS[ModelName.BERT].forward_s / MICRO_BATCHES
VARYS, SINCRONIA = BY_GROUP
VARYS_BY_STAGE, SINCRONIA_BY_STAGE = BY_STAGE


def run(scenario: Scenario, contender: Contender, enforcement: Enforcement = Enforcement.IDEAL) -> RunMeasured:
    return measure(scenario, contender, enforcement)


def gpipe() -> Scenario:
    """Two stages: a micro-batch takes 1 forward, 2 backward, and 2 on the cable either way, in units of FORWARD_S."""
    gbps = MODELS[ModelName.BERT].activation_bytes / MICRO_BATCHES * 8 / (2 * FORWARD_S) / 1e9
    iteration_s = 17 * FORWARD_S
    return Scenario.model_validate(
        {
            "name": "gpipe",
            "topology": {
                "kind": "dumbbell",
                "hosts_per_side": 1,
                "gpus_per_host": 1,
                "host_link_gbps": gbps,
                "bottleneck_gbps": gbps,
                "delay_us": 0,
            },
            "jobs": [
                {
                    "name": "a",
                    "hosts": ["h0", "h1"],
                    "gpus_per_host": 1,
                    "duration_s": 6 * iteration_s,
                    "workload": {"type": "pp", "model": "bert", "schedule": "gpipe", "micro_batches": MICRO_BATCHES},
                }
            ],
            "measure": {"from_s": iteration_s, "to_s": 5 * iteration_s},
        }
    )


@pytest.mark.parametrize(
    ("contender", "forward"),
    [
        (FAIR, 4.5),
        (VARYS, 6.0),
        (SINCRONIA, 4.0),
        (VARYS_BY_STAGE, 4.0),
        (SINCRONIA_BY_STAGE, 4.0),
        (ECHELONFLOW, 4.0),
    ],
)
def test_a_pipeline_has_the_tardiness_of_the_papers_figure(contender: Contender, forward: float) -> None:
    """Released 1, 2 and 3 forward steps in: they end at 4.5, 6.5, 7, or all at 7, or one after the other.

    Backward each gradient ends 2 after it was released, 2 after the one before. Alone the forward group is 4 late.
    """
    found = run(gpipe(), contender)
    assert found.tardiness_s == pytest.approx((forward + 2) * FORWARD_S, rel=1e-6)
    assert found.excess_tardiness_s == pytest.approx((forward - 4) * FORWARD_S, abs=1e-6)
    assert found.starved == 0


@pytest.mark.parametrize("kind", [Kind.GPIPE, Kind.FSDP])
def test_fair_sharing_ignores_the_grouping_of_flows(kind: Kind) -> None:
    """So that tardiness by stages is measured as that of the groups."""
    mix = drawn_mix(kind, 0.8, 2)
    by_stage = run(mix, Contender("fair, stages", "ecmp", Reading.STAGE))
    by_group = run(mix, FAIR)
    assert by_stage.tardiness_s == pytest.approx(by_group.tardiness_s, rel=1e-9)
    assert by_stage.excess_tardiness_s == pytest.approx(by_group.excess_tardiness_s, rel=1e-9)
    assert by_stage.iteration_time_s == by_group.iteration_time_s


def test_on_coflows_both_readings_and_echelonflow_agree_with_varys() -> None:
    mix = drawn_mix(Kind.DATA_PARALLEL, 0.8, 2)
    by_group = run(mix, VARYS)
    assert run(mix, VARYS_BY_STAGE).tardiness_s == pytest.approx(by_group.tardiness_s, rel=1e-9)
    assert run(mix, ECHELONFLOW) == by_group


def test_a_run_is_repeatable() -> None:
    mix = drawn_mix(Kind.TENSOR_PARALLEL, 0.4, 1)
    assert run(mix, ECHELONFLOW) == run(mix, ECHELONFLOW)


def test_unfinished_jobs_count_with_the_window() -> None:
    """A window shorter than an iteration."""
    mix = gpipe()
    assert mix.measure is not None
    short = mix.measure.model_copy(update={"to_s": mix.measure.from_s + FORWARD_S})
    found = run(mix.model_copy(update={"measure": short}), FAIR)
    assert found.starved >= 1
    assert found.iteration_time_s == pytest.approx(FORWARD_S)


def test_contenders_have_unique_names() -> None:
    assert len({contender.name for contender in CONTENDERS}) == len(CONTENDERS)
