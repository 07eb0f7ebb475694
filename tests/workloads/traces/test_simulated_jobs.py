from pathlib import Path
from typing import Any

import pytest
import yaml

from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from workloads.expansion import expand
from workloads.isolated_run import run_isolated
from workloads.jobs import TrainingJob
from workloads.loading import ScenarioError
from workloads.models import MODELS, ModelName
from workloads.placement import Placement
from workloads.scenario import JobSpecification
from workloads.schedulers.admission import admit_in_order
from workloads.schedulers.baselines import place_by_affinity
from workloads.schedulers.cluster import Cluster
from workloads.traces.assumptions import SHIPPED_ASSUMPTIONS, Assumptions, load_assumptions
from workloads.traces.cleaning import LoggedJob
from workloads.traces.simulated_jobs import SimulatedJob, scheduled, simulated_jobs

DOCUMENT = yaml.safe_load(SHIPPED_ASSUMPTIONS.read_text())


@pytest.fixture(scope="module")
def small() -> Assumptions:
    """The shipped models on eight hosts."""
    shipped = load_assumptions()
    topology = shipped.topology.model_copy(update={"tors": 4, "aggs": 2, "uplink_gbps": 800.0})
    return shipped.model_copy(update={"topology": topology})


def logged(name: str, model: str, gpus: int, submitted_s: float = 0.0, run_time_s: float = 100.0) -> LoggedJob:
    return LoggedJob(name, model, submitted_s, submitted_s + 60, submitted_s + 60 + run_time_s, {"host": gpus})


def test_work_is_the_logged_run_time_over_the_ideal_iteration(small: Assumptions) -> None:
    (job,) = simulated_jobs([logged("a", "GPT-7b", 16, run_time_s=276.0)], small)
    assert (job.request.num_hosts, job.request.gpus_per_host, job.label) == (2, 8, "GPT-7b")
    # A ring of two sends as much as is reduced, 14 GB at 100 GB/s, inside the computation.
    assert (job.workload.bytes, job.request.stages_s) == (14e9, (1.38, pytest.approx(0.14)))
    assert job.ideal_iteration_s == 1.38
    assert job.iterations == pytest.approx(200.0)


def test_jobs_come_in_order_at_times_from_the_first_submission(small: Assumptions) -> None:
    jobs = simulated_jobs([logged("b", "gpt", 8, 1500.0), logged("a", "gpt", 8, 1000.0)], small)
    assert [(job.request.name, job.request.arrival_s) for job in jobs] == [("a", 0.0), ("b", 500.0)]
    done = scheduled(jobs, Cluster.of_fabric(small.fabric), admit_in_order(place_by_affinity))
    assert [(run.start_s, run.end_s) for run in done.runs] == [(0.0, 100.0), (500.0, 600.0)]
    assert simulated_jobs([], small) == ()


@pytest.mark.parametrize(
    ("model", "gpus"), [("llama", 1), ("llama", 32), ("llama", 12), ("unknown", 16), ("unknown", 6), ("unknown", 24)]
)
def test_the_ideal_iteration_is_that_of_the_job_alone(small: Assumptions, model: str, gpus: int) -> None:
    (job,) = simulated_jobs([logged("a", model, gpus)], small)
    (run,) = scheduled([job], Cluster.of_fabric(small.fabric), admit_in_order(place_by_affinity)).runs
    nics = {host: tuple(range(len(gpus))) for host, gpus in run.allocation.items()}
    placement = Placement(run.allocation, nics)
    specification = JobSpecification(
        name="a", gpus=gpus, gpus_per_host=job.request.gpus_per_host, iterations=1, workload=job.workload
    )
    training = TrainingJob(specification, placement, expand(job.workload, placement))
    routing = Routing(small.fabric, hash_multipliers(small.fabric.switches, 1))
    assert run_isolated(training, routing).iteration_time_s == pytest.approx(job.ideal_iteration_s)


def test_labels_and_sizes_choose_the_model(small: Assumptions) -> None:
    assert small.model("GPT", 8) == MODELS[ModelName.GPT]
    assert small.model("65b", 8).gradient_bytes == 130e9
    assert [small.model("unknown", gpus) for gpus in (8, 9, 16, 17)] == [
        MODELS[ModelName(name)] for name in ("resnet", "bert", "bert", "gpt")
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": {"x": "y"}}, "expected models of this file or of workloads/models.py, got 'y'"),
        ({"others": [{"model": "lama"}]}, "got 'lama'"),
        ({"others": [{"up_to_gpus": 8, "model": "gpt"}]}, "others: expected up_to_gpus to grow, and none in the last"),
        ({"others": [{"model": "gpt"}, {"model": "gpt"}]}, "others: expected up_to_gpus to grow"),
        (
            {"others": [{"up_to_gpus": 8, "model": "gpt"}] * 2 + [{"model": "gpt"}]},
            "others: expected up_to_gpus to grow",
        ),
        ({"models": {"m": {"compute_s": 0, "comm_start": 0.5, "gradient_bytes": 1}}}, "models.m.compute_s: expected"),
        ({"link": 3}, "link: unknown key; expected one of labels, models, others, topology"),
        ({"topology": {**DOCUMENT["topology"], "tors": 0}}, "topology.tors: expected"),
    ],
)
def test_assumptions_that_cannot_be_used_are_refused_with_their_place(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    path = tmp_path / "assumptions.yaml"
    path.write_text(yaml.safe_dump(DOCUMENT | change))
    with pytest.raises(ScenarioError) as refused:
        load_assumptions(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert message in str(refused.value)


def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "assumptions.yaml"
    path.write_text("- 1\n")
    with pytest.raises(ScenarioError, match="expected a mapping"):
        load_assumptions(path)


def test_the_jobs_asked_of_have_the_work_they_were_logged_with(small: Assumptions) -> None:
    jobs: tuple[SimulatedJob, ...] = simulated_jobs([logged("a", "unknown", 60, run_time_s=77.0)], small)
    assert jobs[0].iterations * jobs[0].ideal_iteration_s == pytest.approx(77.0)
    assert jobs[0].request.gpus == 60
