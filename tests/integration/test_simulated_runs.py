"""Scenarios on the simulator, compared with results computed by hand to the last digit, and invariants of runs."""

import json
from typing import Any

import pytest

from experiments.scenarios.results import RunResult, run_object
from experiments.scenarios.simulated import run_on_simulator
from policies.enforcement import Enforcement
from policies.registry import policy_names
from topologies.steering import Steering
from workloads.loading import SHIPPED_SCENARIOS, load_scenario
from workloads.scenario import ProfileError, Scenario

EXACTLY = {"rel": 1e-11}
"""Times are whole picoseconds."""

DUMBBELL = {"kind": "dumbbell", "hosts_per_side": 2, "host_link_gbps": 400, "bottleneck_gbps": 100, "delay_us": 0}


def run(document: dict[str, Any], policy: str = "ecmp", enforcement: Enforcement = Enforcement.LEVELS) -> RunResult:
    return simulate(Scenario.model_validate({"name": "small", **document}), policy, enforcement)


def simulate(scenario: Scenario, policy: str, enforcement: Enforcement = Enforcement.LEVELS) -> RunResult:
    return run_on_simulator(scenario, policy, enforcement, on_progress=lambda _now_s, _end_s: None)


def shipped(name: str) -> Scenario:
    return load_scenario(SHIPPED_SCENARIOS / f"{name}.yaml")


def phases(name: str, source: str, destination: str, compute_s: float, send_s: float, **more: Any) -> dict[str, Any]:
    """Return a job that computes, and then needs the bottleneck of the dumbbell for so long when it is alone there."""
    flows = [{"source": source, "destination": destination, "bytes": send_s * 12.5e9}]
    workload = {"type": "phases", "compute_s": compute_s, "comm_start": 1.0, "flows": flows}
    return {"name": name, "hosts": [source, destination], "gpus_per_host": 8, "workload": workload, **more}


@pytest.mark.parametrize(
    ("name", "utilisation", "times_s"),
    [("crux-example-1", 10 / 24, [6.0, 2.0]), ("crux-example-1-reversed", 9 / 24, [4.0, 4.0])],
)
def test_crux_example_1(name: str, utilisation: float, times_s: list[float]) -> None:
    """One link, two jobs, two levels (Crux, section 3, figure 11)."""
    scenario = shipped(name)
    topology = scenario.topology.model_copy(update={"delay_us": 0.0})
    result = simulate(scenario.model_copy(update={"topology": topology, "reaction_delay_s": 0.0}), "crux")
    assert result.gpu_utilisation == pytest.approx(utilisation, **EXACTLY)
    assert [job.iteration_time_s for job in result.jobs] == pytest.approx(times_s, **EXACTLY)
    assert result.num_rules == 2


def test_gpipe_on_a_dumbbell() -> None:
    """Two stages and m micro-batches take (m + 1) (F + B) and one transfer in each direction that nothing hides."""
    workload = {"type": "pp", "model": "gpt", "micro_batches": 4, "schedule": "gpipe"}
    job = {"name": "gpt", "hosts": ["h0", "h2"], "gpus_per_host": 8, "iterations": 3, "workload": workload}
    result = run({"topology": DUMBBELL, "jobs": [job]})
    forward_s, backward_s, transfer_s = 0.51 / 4, 1.02 / 4, 6e9 / 4 * 8 / 100e9
    assert result.jobs[0].iteration_time_s == pytest.approx(5 * (forward_s + backward_s) + 2 * transfer_s, **EXACTLY)


def test_the_latency_of_a_path_is_added_to_every_transfer() -> None:
    topology = {**DUMBBELL, "delay_us": 50_000}
    result = run({"topology": topology, "jobs": [phases("a", "h0", "h2", 1.0, 1.0, iterations=2)]})
    assert result.jobs[0].iteration_time_s == pytest.approx(2.0 + 3 * 0.05, **EXACTLY)


def test_a_decision_comes_into_force_after_the_reaction_delay() -> None:
    """Both jobs share the link until second 1.5; then the job that Crux prefers has it."""
    jobs = [
        phases(name, source, f"h{host}", 1.0, 1.0, iterations=1)
        for name, source, host in (("a", "h0", 2), ("b", "h1", 3))
    ]
    result = run({"topology": DUMBBELL, "jobs": jobs, "reaction_delay_s": 1.5}, "crux")
    first, second = sorted(job.communicating[0].end_s for job in result.jobs)
    assert (first, second) == pytest.approx((2.25, 3.0), **EXACTLY)


def test_a_job_that_departs_leaves_its_link_to_others() -> None:
    jobs = [
        phases("a", "h0", "h2", 1.0, 1.0, iterations=1),
        phases("b", "h1", "h3", 1.0, 2.0, iterations=1, arrival_s=0.5),
    ]
    result = run({"topology": DUMBBELL, "jobs": jobs})
    # a alone from 1 to 1.5, both until a has sent its other half at 2.5, b alone for its 1.5 left.
    assert [job.jct_s for job in result.jobs] == pytest.approx([2.5, 3.5], **EXACTLY)


def test_shifted_jobs_take_turns_on_their_link() -> None:
    jobs = [phases(name, f"h{host}", f"h{host + 2}", 1.0, 1.0, iterations=12) for host, name in enumerate("ab")]
    shared, shifted = (
        run({"topology": DUMBBELL, "jobs": jobs, "warm_up_iterations": 3}, policy) for policy in ("ecmp", "cassini")
    )
    assert [job.iteration_time_s for job in shared.jobs] == pytest.approx([3.0, 3.0], **EXACTLY)
    assert [job.iteration_time_s for job in shifted.jobs] == pytest.approx([2.0, 2.0], rel=1e-3)


def test_jobs_that_do_not_fit_one_link_are_not_made_to_wait_for_beats() -> None:
    """Each needs the link for 1.5 s of an iteration of 2.5 s: out of step they would be late, and wait for a beat."""
    jobs = [phases(name, f"h{host}", f"h{host + 2}", 1.0, 1.5, iterations=12) for host, name in enumerate("ab")]
    shared, shifted = (run({"topology": DUMBBELL, "jobs": jobs}, policy) for policy in ("ecmp", "cassini"))
    assert [job.iteration_time_s for job in shifted.jobs] == [job.iteration_time_s for job in shared.jobs]


def test_hosts_keep_the_order_of_ranks_on_a_link_that_has_no_level() -> None:
    """Two NICs of different jobs share a PCIe link: the job of the higher rank is as fast as in isolation."""
    topology = {
        **{"kind": "star", "hosts": 2, "nics_per_host": 2, "host_link_gbps": 200, "delay_us": 0, "gpus_per_host": 2},
        "pcie": {"gbps": 100, "nics_per_switch": 2},
    }
    workload = {"type": "phases", "compute_s": 1.0, "comm_start": 0.0, "bytes": 12.5e9, "pattern": "pairs"}
    jobs = [
        {"name": name, "hosts": ["h0", "h1"], "gpus_per_host": 1, "iterations": 4, "workload": {**workload, **own}}
        for name, own in (("small", {"compute_s": 0.5, "bytes": 6.25e9}), ("large", {}))
    ]
    document = {"topology": topology, "jobs": jobs, "reaction_delay_s": 0.0}
    fair, ordered = run(document), run(document, "crux")
    assert [job.jct_s for job in ordered.jobs] == pytest.approx([6.0, 4.0], **EXACTLY), "large first, then small alone"
    assert max(job.jct_s or 0.0 for job in fair.jobs) == pytest.approx(6.0, **EXACTLY)
    assert fair.jobs[1].jct_s != pytest.approx(4.0)
    assert {job.level for job in ordered.jobs} == {7}


@pytest.mark.parametrize("enforcement", Enforcement)
@pytest.mark.parametrize("policy", policy_names())
def test_every_policy_runs_within_the_fluid_bound(policy: str, enforcement: Enforcement) -> None:
    result = simulate(shipped("fewer-uplinks"), policy, enforcement)
    assert result.enforcement is enforcement
    assert 0.2 < result.gpu_utilisation <= result.fluid_bound_gpu_utilisation * 1.01
    assert all(group.excess_tardiness_s > -1e-9 for group in result.flow_groups if group.excess_tardiness_s is not None)


def test_source_ports_and_rules_give_the_same_paths() -> None:
    by_rule, by_port = (
        simulate(shipped("fewer-uplinks").model_copy(update={"steering": steering}), "crux") for steering in Steering
    )
    assert by_port.gpu_utilisation == pytest.approx(by_rule.gpu_utilisation, rel=0.01)
    assert by_port.num_rules < by_rule.num_rules


def test_jitter_moves_every_computation_and_is_the_same_again() -> None:
    document = {"topology": DUMBBELL, "jobs": [phases("a", "h0", "h2", 1.0, 1.0, iterations=50)]}
    steady, shaken, again = (
        run(document),
        run({**document, "compute_jitter": 0.02}),
        run({**document, "compute_jitter": 0.02}),
    )
    times_s = [interval.end_s - interval.start_s for interval in shaken.jobs[0].computing]
    assert len({round(time_s, 9) for time_s in times_s}) == 50
    assert 0.94 <= min(times_s) < max(times_s) < 1.0601
    assert sum(times_s) / 50 == pytest.approx(1.0, abs=0.01)
    assert shaken.jobs == again.jobs
    assert run({**document, "compute_jitter": 0.02, "seed": 2}).jobs != shaken.jobs
    assert {round(interval.end_s - interval.start_s, 9) for interval in steady.jobs[0].computing} == {1.0}


def test_the_same_scenario_gives_the_same_bytes_with_the_keys_of_every_run() -> None:
    first, second = (json.dumps(run_object(simulate(shipped("fig20"), "crux"))) for _ in range(2))
    assert first == second
    assert json.loads(first)["backend"] == "simulator"
    assert json.loads(first)["enforcement"] == "levels"


def test_loads_are_those_of_the_flows() -> None:
    """One flow of 1 s in an iteration of 2 s keeps the bottleneck busy for half the time, at its level."""
    result = run({"topology": DUMBBELL, "jobs": [phases("a", "h0", "h2", 1.0, 1.0, iterations=10)]})
    bottleneck = next(link.index for link in result.fabric.links if (link.source, link.destination) == ("t0", "t1"))
    busy_s = sum((sample.to_s - sample.from_s) * sample.utilisation[bottleneck][0] for sample in result.loads)
    assert busy_s == pytest.approx(10.0, rel=0.01)


@pytest.mark.parametrize(
    ("policy", "enforcement", "forwards", "tardiness"),
    [
        ("ecmp", Enforcement.LEVELS, 8.5, 4.5),
        ("varys", Enforcement.IDEAL, 10.0, 6.0),
        ("echelonflow", Enforcement.IDEAL, 8.0, 4.0),
    ],
)
def test_the_pipeline_of_the_echelonflow_paper(
    policy: str, enforcement: Enforcement, forwards: float, tardiness: float
) -> None:
    """The example of docs/echelonflow.md with GPipe sends three micro-batches for 2 forward steps each.

    The backward pass takes 10 under all policies: each transfer is over when the next one begins.
    """
    step_s = 0.51 / 3
    topology = {**DUMBBELL, "bottleneck_gbps": 6e9 / 3 * 8 / (2 * step_s) / 1e9}
    workload = {"type": "pp", "model": "gpt", "micro_batches": 3, "schedule": "gpipe"}
    job = {"name": "gpt", "hosts": ["h0", "h2"], "gpus_per_host": 8, "iterations": 3, "workload": workload}
    result = run({"topology": topology, "jobs": [job]}, policy, enforcement)
    assert result.jobs[0].iteration_time_s == pytest.approx((forwards + 10) * step_s, **EXACTLY)
    assert result.flow_groups[0].tardiness_s == pytest.approx(tardiness * step_s, **EXACTLY)


def test_echelonflow_of_coflows_is_varys() -> None:
    """They agree to the last bit where every offset is 0."""
    varys, echelonflow = (
        simulate(shipped("fewer-uplinks"), policy, Enforcement.IDEAL) for policy in ("varys", "echelonflow")
    )
    assert [job.communicating for job in echelonflow.jobs] == [job.communicating for job in varys.jobs]


@pytest.mark.parametrize("policy", ["varys", "echelonflow"])
def test_a_groups_rank_includes_its_later_transfers(policy: str) -> None:
    """The pipeline has 0.12 s to send at first and 0.48 s in all; the other job has 0.27 s left then."""
    workload = {"type": "pp", "model": "gpt", "micro_batches": 4, "schedule": "gpipe"}
    jobs = [
        {"name": "gpt", "hosts": ["h0", "h2"], "gpus_per_host": 8, "iterations": 1, "workload": workload},
        phases("a", "h1", "h3", 0.1, 0.3, iterations=1),
    ]
    result = run({"topology": DUMBBELL, "jobs": jobs}, policy, Enforcement.IDEAL)
    assert result.jobs[1].communicating[0].end_s == pytest.approx(0.4, **EXACTLY)


def test_levels_are_as_many_as_the_scenario_says() -> None:
    """With one level no job goes first; two levels are enough for the paper's order."""
    scenario = shipped("crux-example-1")
    one, two, eight = (simulate(scenario.model_copy(update={"num_levels": levels}), "crux") for levels in (1, 2, 8))
    assert ([job.level for job in one.jobs], one.num_rules) == ([0, 0], 0)
    assert one.gpu_utilisation == simulate(scenario, "ecmp").gpu_utilisation
    assert {job.level for job in two.jobs} == {0, 1}
    assert {job.level for job in eight.jobs} == {6, 7}
    assert two.gpu_utilisation == eight.gpu_utilisation > one.gpu_utilisation


def test_an_undecided_job_shares_links_like_one_without_rules() -> None:
    """Two jobs on one link arrive one after the other: without scheduling it does not matter when decisions come."""
    jobs = [phases("a", "h0", "h2", 0.5, 1.0), phases("b", "h1", "h3", 0.25, 1.0, arrival_s=0.25)]
    document = {"topology": DUMBBELL, "jobs": [job | {"iterations": 4} for job in jobs]}
    late, at_once = (run({**document, "reaction_delay_s": delay_s}) for delay_s in (3.0, 0.0))
    assert [job.jct_s for job in late.jobs] == [job.jct_s for job in at_once.jobs]


def test_decisions_use_reported_profiles_and_runs_use_real_ones() -> None:
    """Under a policy that ignores profiles, a job that reports wrong numbers runs like one that reports right ones."""
    scenario = shipped("fig20")
    wrong = scenario.model_copy(update={"profile_error": ProfileError(work=0.5, bytes=0.2, overlap=0.9)})
    truth, told = (simulate(each, "ecmp") for each in (scenario, wrong))
    assert [job.iteration_time_s for job in told.jobs] == [job.iteration_time_s for job in truth.jobs]
    ratios = {told.intensity / truth.intensity for truth, told in zip(truth.jobs, told.jobs, strict=True)}
    possible = {work / size for work in (0.5, 1.5) for size in (0.8, 1.2)}
    assert all(min(abs(ratio - each) for each in possible) < 1e-6 for ratio in ratios)
    assert len(ratios) > 1


def test_a_pausing_group_survives_a_decision_about_another_job() -> None:
    """A decision about another job, while a pipeline computes its next micro-batch, keeps the pipeline's state."""
    pipeline = {"type": "pp", "model": "gpt", "micro_batches": 4, "schedule": "gpipe"}
    late = {"name": "late", "hosts": ["h1", "h3"], "gpus_per_host": 8, "arrival_s": 0.3, "workload": pipeline}
    jobs = [phases("early", "h0", "h2", 0.5, 0.1, iterations=4), {**late, "iterations": 2}]
    document = {"topology": {**DUMBBELL, "bottleneck_gbps": 800}, "jobs": jobs, "reaction_delay_s": 0.5}
    result = run(document, "echelonflow", Enforcement.IDEAL)
    assert {group.job for group in result.flow_groups} == {"early", "late"}
