from dataclasses import replace
from pathlib import Path

from experiments.report.perfetto import write_perfetto
from experiments.scenarios.results import AppliedPlan, RunResult
from policies.plan import JobPlan
from tests.experiments.report.builders import ENDED_S, links_between, make_fabric, make_job, make_loads, make_result
from tests.experiments.report.trace_events import TraceFile, nanoseconds
from workloads.events import ElementState, ScenarioEvent
from workloads.replay import CommunicationInterval, ComputeInterval, ProfiledInterval

FABRIC = make_fabric()
UP = links_between(FABRIC, "t0", "a0")[0]
UP_NAME = "t0 \N{RIGHTWARDS ARROW} a0 #0"
CABLE_DOWN = ScenarioEvent(at_s=3.0, link=("t0", "a0"), state=ElementState.DOWN)


def plan(since_s: float, *levels: int, groups: dict[tuple[str, str], int] | None = None) -> AppliedPlan:
    """Decisions for gpt and, where there is a second level, bert."""
    decisions = {
        name: JobPlan(name, rank, level, 10.0, None, None, None, f"It has rank {rank}.")
        for rank, (name, level) in enumerate(zip(("gpt", "bert"), levels, strict=False))
    }
    return AppliedPlan(since_s, 3, decisions, groups or {})


def written(tmp_path: Path, *results: RunResult) -> TraceFile:
    write_perfetto(results, tmp_path / "run.json")
    return TraceFile(tmp_path / "run.json")


def levels(found: TraceFile, job: str) -> list[tuple[int, int, str]]:
    return [span[:3] for span in found.slices[f"ecmp: job {job}"]["level"]]


def test_every_policy_has_processes_of_its_own(tmp_path: Path) -> None:
    found = written(tmp_path, make_result("ecmp"), make_result("crux"))
    parts = ("Plans", "job gpt", "link utilisation")
    assert found.processes == [f"{policy}: {part}" for policy in ("ecmp", "crux") for part in parts]
    assert found.about["scenario"] == "made-up"


def test_iterations_are_slices(tmp_path: Path) -> None:
    spans = written(tmp_path, make_result()).slices["ecmp: job gpt"]["iterations"]
    expected = [(nanoseconds(n), nanoseconds(n + 1), f"iteration {n}", {}) for n in range(int(ENDED_S))]
    assert spans == expected


def test_a_level_lasts_from_the_plan_that_changed_it_to_the_next_change(tmp_path: Path) -> None:
    plans = (plan(0.5, 7), plan(2.0, 7), plan(3.0, 7, 5), plan(4.0, 6, 5), plan(5.0, 6))
    jobs = (make_job("gpt"), make_job("bert"))
    found = written(tmp_path, make_result(jobs=jobs, plans=plans))
    second = 1_000_000_000
    assert levels(found, "gpt") == [(second // 2, 4 * second, "level 7"), (4 * second, 10 * second, "level 6")]
    assert levels(found, "bert") == [(3 * second, 5 * second, "level 5")]
    arguments = found.slices["ecmp: job bert"]["level"][0][3]
    assert arguments == {"level": 5, "rank": 1, "intensity": 10.0, "reason": "It has rank 1."}


def test_a_level_ends_with_its_job_though_the_plan_stays(tmp_path: Path) -> None:
    job = make_job("gpt")
    departed = replace(job, iterations=job.iterations[:4])
    plans = (plan(0.0, 7), plan(4.0, 6))
    assert levels(written(tmp_path, make_result(jobs=(departed,), plans=plans)), "gpt") == [(0, 4 * 10**9, "level 7")]
    running = replace(departed, jct_s=None)
    found = written(tmp_path, make_result(jobs=(running,), plans=plans))
    assert levels(found, "gpt")[-1] == (4 * 10**9, 10 * 10**9, "level 6")


def test_plans_are_marked_when_they_come_into_force(tmp_path: Path) -> None:
    found = written(tmp_path, make_result(plans=(plan(0.5, 7), plan(2.0, 7, 6))))
    assert found.instants["ecmp: Plans"]["Plans in force"] == [
        (nanoseconds(0.5), "Plan 1", {"jobs": 1, "rules": 3}),
        (nanoseconds(2.0), "Plan 2", {"jobs": 2, "rules": 3}),
    ]
    assert found.slices["ecmp: Plans"]["measurement window"][0][:2] == (10**9, 9 * 10**9)


def test_hosts_that_compute_together_share_a_track(tmp_path: Path) -> None:
    computing = (
        ComputeInterval("forward", ("h0", "h1"), 0, 0.0, 1.0),
        ComputeInterval("forward", ("h2",), 0, 0.0, 2.0),
        ComputeInterval("backward", ("h0", "h1", "h3"), 0, 1.0, 1.5),
    )
    found = written(tmp_path, make_result(jobs=(replace(make_job(), computing=computing),)))
    tracks = found.slices["ecmp: job gpt"]
    assert [span[2] for span in tracks["computation: h0, h1"]] == ["forward", "backward"]
    assert [span[2:] for span in tracks["computation: h2"]] == [("forward", {"iteration": 0})]
    assert [span[2] for span in tracks["computation: h3"]] == ["backward"]


def test_a_transfer_has_the_level_of_its_group_when_it_started(tmp_path: Path) -> None:
    communicating = tuple(CommunicationInterval("ring", n, n, n + 0.5, 1e6 * n) for n in range(4))
    plans = (plan(0.5, 7, groups={("gpt", "ring"): 5}), plan(2.0, 6), plan(2.5))
    job = replace(make_job(), communicating=communicating)
    spans = written(tmp_path, make_result(jobs=(job,), plans=plans)).slices["ecmp: job gpt"]["flow group: ring"]
    assert [arguments for *_, arguments in spans] == [
        {"iteration": 0, "bytes": 0.0},  # no Plan yet
        {"iteration": 1, "bytes": 1e6, "level": 5},
        {"iteration": 2, "bytes": 2e6, "level": 6},  # no group of the job has a level of its own
        {"iteration": 3, "bytes": 3e6},  # the Plan is not for this job
    ]


def test_ranges_of_the_profiler_have_a_track(tmp_path: Path) -> None:
    profiled = (ProfiledInterval("forward", 2, 2.0, 2.25), ProfiledInterval("all-reduce", 2, 2.125, 2.5))
    tracks = written(tmp_path, make_result(jobs=(replace(make_job(), profiled=profiled),))).slices["ecmp: job gpt"]
    assert tracks["PyTorch profiler"] == [(nanoseconds(2), nanoseconds(2.25), "forward", {"iteration": 2})]
    assert [span[2] for span in tracks["PyTorch profiler (2)"]] == ["all-reduce"]
    assert "PyTorch profiler" not in written(tmp_path, make_result()).slices["ecmp: job gpt"]


def test_events_are_marked_once_over_all_policies(tmp_path: Path) -> None:
    found = written(tmp_path, make_result("ecmp", events=(CABLE_DOWN,)), make_result("crux", events=(CABLE_DOWN,)))
    assert found.instants["scenario made-up"]["events"] == [(nanoseconds(3.0), "cable t0 to a0 down", {})]
    assert found.scopes["cable t0 to a0 down"] == "g"


def test_a_counter_has_the_levels_in_use_and_changes_alone(tmp_path: Path) -> None:
    loads = make_loads(FABRIC, {(UP, 7): 0.4, (UP, 0): 0.25, (UP, 6): 0.005})
    counters = written(tmp_path, make_result(loads=loads)).counters["ecmp: link utilisation"]
    values = {"level 7": 0.4, "level 0": 0.25}
    name = f"{UP_NAME} utilisation"
    assert list(counters) == [name]
    assert counters[name] == [(0, name, values), (nanoseconds(10.0), name, dict.fromkeys(values, 0.0))]


def test_queues_are_shown_where_the_back_end_has_them(tmp_path: Path) -> None:
    idle = tuple((0.0,) * 8 for _ in FABRIC.links)
    waits = tuple((0.0,) * 7 + (3000.0,) if link == UP else levels for link, levels in enumerate(idle))
    first, second, third, *_ = make_loads(FABRIC, {})
    queued = zip((first, second, third), (idle, waits, waits), strict=True)
    loads = tuple(replace(sample, queued_bytes=queued_bytes) for sample, queued_bytes in queued)
    found = written(tmp_path, make_result(loads=loads))
    name = f"{UP_NAME} queued bytes"
    assert found.counters["ecmp: queued bytes"] == {
        name: [(nanoseconds(0.1), name, {"level 7": 0.0}), (nanoseconds(0.2), name, {"level 7": 3000.0})]
    }
    assert "ecmp: queued bytes" not in written(tmp_path, make_result()).processes


def test_a_run_without_samples_has_no_counters(tmp_path: Path) -> None:
    assert written(tmp_path, make_result(loads=())).processes == ["ecmp: Plans", "ecmp: job gpt"]
