"""Advice against exhaustive search and against runs on the simulator."""

from typing import Any

import pytest

from experiments.advice.search import advise_job
from experiments.advice.simulation import simulate
from experiments.scenarios.simulated import run_on_simulator
from policies.registry import as_policy
from tests.workloads.combined.builders import MEASURED
from tests.workloads.combined.test_timeline import Case, scenario
from trainyard.advice import advise
from workloads.combined_workload import CombinedWorkload, Recomputation


@pytest.mark.parametrize(("uplink_gbps", "policy"), [(100.0, "ecmp"), (12.5, "ecmp"), (12.5, "crux")])
def test_the_first_choice_is_that_of_exhaustive_search(uplink_gbps: float, policy: str) -> None:
    of = scenario(uplink_gbps, gpus=8, batch=8)
    case = Case(of)
    every = [way.workload for layout in case.ways.layouts() for way in case.ways.of_layout(layout)]
    assert len(every) > 20
    fastest_s = min(case.simulated_s(workload, policy) for workload in every)
    advice = advise_job(of, "job", as_policy(policy))
    assert advice.best.simulated_s is not None
    assert advice.best.simulated_s <= fastest_s * 1.01
    assert advice.num_ways <= len(every)


def test_times_are_those_of_a_run() -> None:
    of = scenario(tensor=4, pipeline=2)
    advice = advise(of, simulate=1)
    result = run_on_simulator(of, "crux", on_progress=lambda _now_s, _end_s: None)
    assert advice.given is not None
    assert advice.given.simulated_s == pytest.approx(result.jobs[0].iteration_time_s, rel=1e-3)


@pytest.mark.parametrize(
    "keys",
    [
        {"tensor": 4, "pipeline": 2},
        {"tensor": 8, "batch": 4},
        {"context": 8, "zero": 1},
        {"zero": 3},
        {"tensor": 2, "pipeline": 4, "schedule": "zero_bubble_v", "zero": 2, "buckets": 2},
        {"tensor": 2, "pipeline": 2, "order": "tp-cp-pp-dp"},
        {"pipeline": 4, "order": "tp-cp-pp-dp", "zero": 1},
    ],
)
def test_parts_of_the_time_add_up_to_it(keys: dict[str, Any]) -> None:
    advice = advise(scenario(25.0, **keys), simulate=1)
    shares = advice.given_shares
    assert shares is not None
    assert advice.given is not None
    assert shares.iteration_s == pytest.approx(advice.given.iteration_s, rel=1e-9)
    assert shares.compute_s > 0
    assert min(shares.bubble_s, *shares.exposed_s.values()) >= 0
    assert all(0 < link.utilisation <= 1 + 1e-9 for link in shares.links)
    # 24 s of computation for a sample, on as many GPUs; nothing computes the scores again here.
    batch = keys.get("batch", 16)
    assert shares.compute_s == pytest.approx(24.0 * batch / 16, rel=1e-6)


def test_what_waits_for_whom() -> None:
    advice = advise(scenario(tensor=4, pipeline=4), simulate=1)
    shares = advice.given_shares
    assert shares is not None
    # 1F1B with 16 micro-batches on 4 places: a bubble of (p - 1) / m of what is computed, with tensor's time in it.
    busy_s = shares.compute_s + shares.exposed_s["tensor"]
    assert shares.bubble_s == pytest.approx(busy_s * 3 / 16, rel=0.02)
    assert shares.exposed_s["data"] == 0
    assert shares.exposed_s["context"] == 0


def test_stages_on_one_host_wait_for_each_other() -> None:
    of = scenario(tensor=1, pipeline=4, order="tp-cp-pp-dp", nvlink_gbps=1e-3)
    shares = advise(of, simulate=1).given_shares
    assert shares is not None
    # 1F1B with four micro-batches on four places: the bubble, and ten transfers of 4 KiB at 125 kB/s.
    send_s = 4096 / 125e3
    assert shares.bubble_s + shares.exposed_s["pipeline"] == pytest.approx(
        shares.compute_s * 3 / 4 + 10 * send_s, rel=1e-3
    )
    assert 6 * send_s < shares.exposed_s["pipeline"] < 10 * send_s


def test_other_jobs_take_their_gpus_alone() -> None:
    of = scenario(gpus=8, batch=8, tensor=4)
    both = of.model_copy(update={"jobs": (of.jobs[0], of.jobs[0].model_copy(update={"name": "other"}))})
    assert advise(both, "job", simulate=1).best == advise(of, simulate=1).best
    assert advise(both, "other", simulate=1).best.iteration_s == pytest.approx(advise(of, simulate=1).best.iteration_s)


def test_without_simulations_times_are_predictions() -> None:
    advice = advise(scenario(), simulate=0)
    assert advice.best.simulated_s is None
    assert advice.best_shares is None
    assert advice.given is not None
    assert advice.given.simulated_s is None
    times_s = [each.predicted_s for each in advice.alternatives]
    assert times_s == sorted(times_s)


def test_what_does_not_fit_into_memory_is_excluded() -> None:
    ways = Case(scenario()).ways
    frugal = {"zero": 3, "recompute": Recomputation.FULL, "micro_batch": 1}
    least_bytes = min(ways.way(layout.model_copy(update=frugal)).memory.total_bytes for layout in ways.layouts())
    small = {"flops_per_s": 1e12, "efficiency": 0.5, "memory_gb": 1.1 * least_bytes / 1e9}
    advice = advise(scenario(device=small), simulate=1)
    assert advice.given is not None
    assert not advice.given.fits
    most = small["memory_gb"] * 1e9
    assert all(each.memory.total_bytes <= most and each.fits for each in advice.alternatives)
    assert advice.too_large
    assert all(each.memory.total_bytes > most and not each.fits for each in advice.too_large)
    with pytest.raises(ValueError, match=r"jobs\[0\] job: every parallelism needs more memory than a GPU's 0 GB"):
        advise(scenario(device=small | {"memory_gb": 1e-5}))


def test_what_cannot_be_advised_is_named() -> None:
    of = scenario()
    with pytest.raises(ValueError, match=r"job: expected one with a workload of type combined \(job\), got 'none'"):
        advise(of, "none")
    with pytest.raises(ValueError, match=r"keep: expected some of tensor, context, .* got 'batch'"):
        advise(of, keep=("batch",))
    of = scenario(gpus=8, batch=8)
    two = of.model_copy(update={"jobs": (of.jobs[0], of.jobs[0].model_copy(update={"name": "other"}))})
    with pytest.raises(ValueError, match=r"because 2 jobs have a workload of type combined \(job, other\)"):
        advise(two)


def test_measured_model_is_advised_without_a_device() -> None:
    assert MEASURED["name"] == advise(scenario(), simulate=1).model
    case = Case(scenario())
    assert isinstance(case.template, CombinedWorkload)
    assert simulate(*(case.scenario, case.job, case.template, case.placement, case.routing, as_policy("ecmp")), 1.0)
