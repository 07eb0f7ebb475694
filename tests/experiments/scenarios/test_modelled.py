"""Jobs that play their task graphs by the fluid model iterate as they do in a run on the simulator."""

from typing import Any

import pytest

from experiments.scenarios.modelled import ModelledScenario
from experiments.scenarios.simulated import run_on_simulator
from policies.policy import decide
from policies.registry import find_policy
from policies.task_graph import Computation, Transfer
from workloads.measures import Window
from workloads.scenario import ProfileError, Scenario

_WORKLOADS: dict[str, dict[str, Any]] = {
    "phases": {"type": "phases", "compute_s": 0.4, "comm_start": 0.3, "bytes": 4_000_000_000, "pattern": "all_to_all"},
    "data parallel": {"type": "dp", "model": "bert", "buckets": 4},
    "zero": {"type": "zero", "model": "resnet", "buckets": 2, "overlap": True},
    "fsdp": {"type": "fsdp", "model": "bert", "layer_groups": 4},
    "tensor parallel": {"type": "tp", "model": "bert", "layers": 2},
    "experts": {"type": "moe", "model": "bert", "layers": 2, "chunks": 2},
    "pipeline": {"type": "pp", "model": "bert", "micro_batches": 4, "schedule": "1f1b"},
    "parameter server": {"type": "ps", "model": "resnet"},
}
_WINDOW = Window(2.0, 8.0)


def scenario(*names: str) -> Scenario:
    """Jobs on four hosts of two NICs, each on two of them, over one 100 Gbit/s link between two ToRs."""
    pairs = [["h0", "h2"], ["h1", "h3"], ["h0", "h3"]]
    return Scenario.model_validate(
        {
            "name": "modelled",
            "topology": {
                **{"kind": "clos", "tors": 2, "aggs": 2, "hosts_per_tor": 2, "uplink_gbps": 100},
                **{"gpus_per_host": 8, "nics_per_host": 2, "host_link_gbps": 200},
            },
            "jobs": [
                {"name": f"j{number}", "hosts": pairs[number], "gpus_per_host": 4, "duration_s": 14.0}
                | {"workload": _WORKLOADS[name]}
                for number, name in enumerate(names)
            ],
            "reaction_delay_s": 0.0,
            "measure": {"from_s": _WINDOW.from_s, "to_s": _WINDOW.to_s},
        }
    )


@pytest.mark.parametrize("num_levels", [1, 8])
@pytest.mark.parametrize("policy", ["ecmp", "crux", "echelonflow", "trainyard"])
@pytest.mark.parametrize(
    "names",
    [("phases", "fsdp", "pipeline"), ("data parallel", "experts", "zero"), ("tensor parallel", "parameter server")],
)
def test_jobs_iterate_as_in_a_run(names: tuple[str, ...], policy: str, num_levels: int) -> None:
    """Nothing has departed by the end of the last iteration that the window cuts. With one level, hosts keep orders."""
    asked = scenario(*names).model_copy(update={"num_levels": num_levels})
    run = run_on_simulator(asked, policy, on_progress=lambda *_: None)
    modelled = ModelledScenario.of(asked)
    playing = modelled.playing(decide(find_policy(policy), modelled.snapshot))
    playing.run(13.0)
    iterations = playing.iterations_between(_WINDOW.from_s, _WINDOW.to_s)
    for job, number in zip(run.jobs, iterations.tolist(), strict=True):
        assert job.speed is not None
        assert number == pytest.approx(job.speed * _WINDOW.length_s / job.ideal_iteration_time_s, rel=1e-6), job.name


def test_utilisation_is_that_of_the_run() -> None:
    asked = scenario("phases", "pipeline")
    modelled = ModelledScenario.of(asked)
    plan = decide(find_policy("crux"), modelled.snapshot)
    run = run_on_simulator(asked, "crux", on_progress=lambda *_: None)
    # The iterations that the window cuts at its end are counted by those before.
    assert modelled.gpu_utilisation(plan, _WINDOW) == pytest.approx(run.gpu_utilisation, rel=0.02)


def test_a_graph_keeps_tasks_and_numbers_flows_group_after_group() -> None:
    (job, _) = ModelledScenario.of(scenario("pipeline", "phases")).jobs
    played = job.played_graph
    assert len(played.tasks) == len(job.graph.tasks)
    assert sum(task.duration_s for task in played.tasks if isinstance(task, Computation)) == pytest.approx(
        sum(getattr(task, "duration_s", 0.0) for task in job.graph.tasks)
    )
    sent = sorted(flow for task in played.tasks if isinstance(task, Transfer) for flow in task.flows)
    assert sent == list(range(sum(len(group.flows) for group in job.graph.flow_groups)))


def test_jobs_play_what_they_are_whatever_they_have_told() -> None:
    asked = scenario("data parallel", "phases")
    truth = ModelledScenario.of(asked)
    wrong = ModelledScenario.of(asked.model_copy(update={"profile_error": ProfileError(bytes=0.5)}))
    assert wrong.snapshot.jobs[0].flows[0].size_bytes != truth.snapshot.jobs[0].flows[0].size_bytes
    plan = decide(find_policy("ecmp"), truth.snapshot)
    assert wrong.iterations(plan, _WINDOW).tolist() == truth.iterations(plan, _WINDOW).tolist()
