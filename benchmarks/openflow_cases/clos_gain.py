"""What `crux` gains over `ecmp` for three jobs on a Clos of Open vSwitch, and what the emulator predicts.

Jobs are stand-ins that send real TCP between network namespaces. Open vSwitch hashes otherwise than our switches do, so
under `ecmp` its flows would collide elsewhere than the emulator's. Packets find their paths, and the prediction is made
with a seed by which our hash gives the same ones.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.openflow_cases.traced_paths import seed_with_paths, traced_paths
from experiments.scenarios.backend import Backend, RunError, real_hosts, run_on
from experiments.scenarios.connections import open_connections
from experiments.scenarios.real_hosts.real_flows import real_flows
from experiments.scenarios.results import RunResult
from experiments.scenarios.switch_kind import SwitchKind
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from workloads.jobs import training_jobs
from workloads.loading import SHIPPED_SCENARIOS, load_scenario
from workloads.scenario import Scenario

HASHED, PLANNED = "ecmp", "crux"
SCALE = 10_000
"""Links have 10 Mbit/s: queues outlast the time for which an Open vSwitch waits for a busy core."""
_SEARCHED_SEEDS = 10_000

Figures = dict[str, object]


@dataclass(frozen=True, slots=True)
class Gain:
    """The results of one seed by policy: found on Open vSwitch, and predicted by the emulator.

    ``idle_shares`` are what was left of the machine's processors while jobs ran on Open vSwitch.
    """

    seed: int
    found: Mapping[str, RunResult]
    predicted: Mapping[str, RunResult]
    idle_shares: Mapping[str, float]

    @property
    def found_points(self) -> float:
        """What the planned policy adds to GPU utilisation on Open vSwitch."""
        return _points(self.found)

    @property
    def predicted_points(self) -> float:
        """What it adds on the emulator."""
        return _points(self.predicted)

    def row(self) -> Figures:
        """Return all of it, for JSON."""
        row: Figures = {
            "seed": self.seed,
            "points": round(self.found_points, 2),
            "points_predicted": round(self.predicted_points, 2),
        }
        for policy, found in self.found.items():
            predicted = self.predicted[policy]
            row[policy] = {
                "gpu_utilisation": round(found.gpu_utilisation, 4),
                "gpu_utilisation_predicted": round(predicted.gpu_utilisation, 4),
                "iteration_times_s": _times_s(found),
                "iteration_times_s_predicted": _times_s(predicted),
                "seed_of_prediction": predicted.seed,
                "idle_share": round(self.idle_shares[policy], 3),
            }
        return row


def clos_gain_figures(seeds: Sequence[int], duration_s: float) -> Figures:
    """Run the jobs for so long under both policies for each seed of the fabric's hash.

    ``clos_gain_error_points`` is the median of the differences between what was found and what was predicted, whatever
    their signs. It is a text where the machine permits no network namespaces.

    Raises:
        NetworkError: Open vSwitch is not installed, or does not start.
    """
    try:
        gains = [_gain(scenario_of(seed, duration_s)) for seed in seeds]
    except RunError as error:
        return {"clos_gain_error_points": f"not measured: {error}"}
    errors = [abs(gain.found_points - gain.predicted_points) for gain in gains]
    return {
        "clos_gain_error_points": round(statistics.median(errors), 2),
        "clos_gain_error_points_worst": round(max(errors), 2),
        "clos_gain_points": round(statistics.median(gain.found_points for gain in gains), 2),
        "clos_gain_points_predicted": round(statistics.median(gain.predicted_points for gain in gains), 2),
        "clos_gain_runs": [gain.row() for gain in gains],
    }


def scenario_of(seed: int, duration_s: float) -> Scenario:
    """Return the three jobs with this seed, for so long."""
    shipped = load_scenario(SHIPPED_SCENARIOS / "three-jobs.yaml")
    jobs = tuple(job.model_copy(update={"duration_s": duration_s}) for job in shipped.jobs)
    return shipped.model_copy(update={"jobs": jobs, "seed": seed})


def predicting_seed(scenario: Scenario) -> int:
    """Return a seed with which the emulator's hash leads the flows of a scenario as Open vSwitch leads them."""
    fabric = scenario.topology.build()
    jobs = training_jobs(scenario, fabric)
    routing = Routing(fabric, hash_multipliers(fabric.switches, scenario.seed))
    real = [flow.five_tuple for flow in real_flows(jobs, routing)]
    emulated = [
        five_tuple
        for groups in open_connections(jobs, fabric).values()
        for group in groups.values()
        for five_tuple in group
    ]
    routings = ((seed, Routing(fabric, hash_multipliers(fabric.switches, seed))) for seed in range(_SEARCHED_SEEDS))
    return seed_with_paths(routings, emulated, traced_paths(routing, real))


def _gain(scenario: Scenario) -> Gain:
    hashed_alike = scenario.model_copy(update={"seed": predicting_seed(scenario)})
    predicted = {HASHED: _emulated(hashed_alike, HASHED), PLANNED: _emulated(scenario, PLANNED)}
    found, idle_shares = {}, {}
    scaled = scenario.model_copy(update={"scale": SCALE})
    with real_hosts(Backend.NAMESPACES, scaled, switch=SwitchKind.OVS, is_real_time=False) as run:
        for policy in (HASHED, PLANNED):
            processors = Processors()
            found[policy] = run(policy, on_progress=processors.look)
            idle_shares[policy] = processors.idle_share
    return Gain(scenario.seed, found, predicted, idle_shares)


def _emulated(scenario: Scenario, policy: str) -> RunResult:
    return run_on(Backend.EMULATOR, scenario, policy, on_progress=lambda _now_s, _end_s: None)


def _points(results: Mapping[str, RunResult]) -> float:
    return 100 * (results[PLANNED].gpu_utilisation - results[HASHED].gpu_utilisation)


def _times_s(result: RunResult) -> dict[str, float | None]:
    return {job.name: job.iteration_time_s and round(job.iteration_time_s, 3) for job in result.jobs}


@dataclass(slots=True)
class Processors:
    """How long the machine's processors have had nothing to do between the first look at them and the last."""

    _looks: list[tuple[int, int]] = field(default_factory=list)

    def look(self, _now_s: float = 0.0, _end_s: float = 0.0) -> None:
        """Read what the kernel counts."""
        user, nice, system, idle, waiting, *others = map(int, Path("/proc/stat").read_text().split()[1:9])
        self._looks[1:] = [(idle + waiting, user + nice + system + idle + waiting + sum(others))]

    @property
    def idle_share(self) -> float:
        """The share of all processors' time."""
        (idle_before, all_before), (idle, every) = self._looks[0], self._looks[-1]
        return (idle - idle_before) / max(1, every - all_before)
