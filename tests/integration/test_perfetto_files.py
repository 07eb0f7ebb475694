"""What a file for Perfetto says of a run is what the run has recorded, on both back ends."""

import asyncio
from functools import partial

import pytest

from experiments.report.perfetto import write_perfetto
from experiments.scenarios.emulated import run_on_emulator
from experiments.scenarios.results import RunResult
from experiments.scenarios.simulated import run_on_simulator
from tests.experiments.report.trace_events import TraceFile, nanoseconds
from workloads.events import ElementState, ScenarioEvent
from workloads.loading import SHIPPED_SCENARIOS, load_scenario
from workloads.scenario import Scenario

RUN = {
    "emulator": lambda scenario, policy: asyncio.run(run_on_emulator(scenario, policy, on_progress=lambda *_: None)),
    "simulator": partial(run_on_simulator, on_progress=lambda *_: None),
}


def scenario() -> Scenario:
    """Two jobs of which the second comes later, so that the first one's level changes, and a cable that flaps."""
    shipped = load_scenario(SHIPPED_SCENARIOS / "crux-example-1.yaml")
    first, second = shipped.jobs
    cable = shipped.topology.build().links[-1]
    ends = cable.source, cable.destination
    return shipped.model_copy(
        update={
            "jobs": (
                first.model_copy(update={"iterations": 4, "duration_s": None}),
                second.model_copy(update={"iterations": 2, "duration_s": None, "arrival_s": 3.0}),
            ),
            "events": (
                ScenarioEvent(at_s=5.0, link=ends, state=ElementState.DOWN),
                ScenarioEvent(at_s=5.5, link=ends, state=ElementState.UP),
            ),
            "measure": None,
        }
    )


@pytest.fixture(scope="module", params=["simulator", pytest.param("emulator", marks=pytest.mark.slow)])
def ran(request: pytest.FixtureRequest) -> RunResult:
    result: RunResult = RUN[request.param](scenario(), "crux")
    return result


@pytest.fixture(scope="module")
def found(ran: RunResult, tmp_path_factory: pytest.TempPathFactory) -> TraceFile:
    path = tmp_path_factory.mktemp(ran.backend) / "run.json.gz"
    write_perfetto([ran], path)
    return TraceFile(path)


def test_all_times_are_inside_the_run(ran: RunResult, found: TraceFile) -> None:
    assert found.about["backend"] == ran.backend
    assert min(found.times) >= 0
    assert max(found.times) <= nanoseconds(ran.ended_s)


def test_levels_are_those_of_the_plans(ran: RunResult, found: TraceFile) -> None:
    assert len({job.level for plan in ran.plans for job in plan.jobs.values()}) > 1
    for job in ran.jobs:
        spans = found.slices[f"crux: job {job.name}"]["level"]
        for plan in ran.plans:
            since, decision = nanoseconds(plan.since_s), plan.jobs.get(job.name)
            shown = [arguments for start, end, _, arguments in spans if start <= since < end]
            if decision is None or since >= nanoseconds(job.iterations[-1].end_s):
                assert not shown
            else:
                (arguments,) = shown
                expected = (decision.level, decision.rank, decision.intensity, decision.reason)
                assert tuple(arguments[key] for key in ("level", "rank", "intensity", "reason")) == expected
        starts = {start for start, *_ in spans}
        assert starts <= {nanoseconds(plan.since_s) for plan in ran.plans}
    assert len(found.instants["crux: Plans"]["Plans in force"]) == len(ran.plans)


def test_jobs_do_what_the_run_has_recorded(ran: RunResult, found: TraceFile) -> None:
    for job in ran.jobs:
        tracks = found.slices[f"crux: job {job.name}"]
        spans = [(nanoseconds(one.start_s), nanoseconds(one.end_s)) for one in job.iterations]
        assert [(start, end) for start, end, *_ in tracks["iterations"]] == spans
        computed = sum(len(of) for track, of in tracks.items() if track.startswith("computation: "))
        assert computed >= len(job.computing)
        sent = [span for track, of in tracks.items() if track.startswith("flow group: ") for span in of]
        assert len(sent) == len(job.communicating)
        assert {arguments["bytes"] for *_, arguments in sent} == {one.size_bytes for one in job.communicating}
        assert all(one.size_bytes > 0 for one in job.communicating)


def test_events_are_marked(ran: RunResult, found: TraceFile) -> None:
    marks = found.instants[f"scenario {ran.scenario}"]["events"]
    assert [at for at, *_ in marks] == [nanoseconds(5.0), nanoseconds(5.5)]


def test_loads_are_the_samples_and_the_emulator_has_queues(ran: RunResult, found: TraceFile) -> None:
    busiest = max(max(levels) for sample in ran.loads for levels in sample.utilisation)
    assert highest(found, "crux: link utilisation") == pytest.approx(busiest, abs=0.001)
    if ran.backend == "simulator":
        assert "crux: queued bytes" not in found.processes
    else:
        most = max(max(levels) for sample in ran.loads for levels in sample.queued_bytes or ())
        assert most > 0
        assert highest(found, "crux: queued bytes") == round(most)


def highest(found: TraceFile, process: str) -> float:
    """The highest value of any counter of a process."""
    samples = [values for points in found.counters[process].values() for *_, values in points]
    return max(value for values in samples for value in values.values())
