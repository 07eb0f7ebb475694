"""The search for the fastest way to divide a job: quick bounds first, predictions next, simulations last.

No way is predicted to be faster than its bound, so that whatever has too large a bound need not be predicted.
"""

import heapq
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count

from controller.registry.errors import RegistrationError
from controller.registry.group_registration import MAX_FLOWS_PER_JOB
from experiments.advice.results import Advice, Alternative, TimeShares
from experiments.advice.simulation import SimulatedIteration, simulate
from policies.policy import Policy
from topologies.ecmp import hash_multipliers
from topologies.fabric import Fabric
from topologies.routing import Routing
from workloads.combined.alternatives import Way, Ways
from workloads.combined.bounds import QuickBounds
from workloads.combined.expansion import degrees_on
from workloads.combined.timeline import EdgeSwitches, predicted
from workloads.combined_workload import CombinedWorkload
from workloads.placement import Placement, place
from workloads.scenario import JobSpecification, Scenario

SIMULATIONS = 8
"""The most alternatives that are simulated by default."""
_LEAST_SIMULATIONS = 3
_TOLERANCE = 0.01
"""A way that could be faster by less than this share is not looked at."""
_SHOWN = 10
"""The fewest alternatives that are shown, where there are so many."""
_MOST_PREDICTIONS = 600
"""So many predictions take a few seconds to some 20."""
_MOST_FLOWS = 100_000
"""The most flows of all simulations together, behind the first; so many take some ten seconds, too."""
_TOO_LARGE = 3


def advise_job(
    scenario: Scenario,
    name: str,
    policy: Policy,
    *,
    simulations: int = SIMULATIONS,
    kept: Collection[str] = (),
    is_given: bool = True,
) -> Advice:
    """Compare the ways to divide a job of a scenario that has the fabric to itself.

    Args:
        scenario: The scenario; its other jobs only take their GPUs.
        name: The name of a job with combined parallelism.
        policy: The policy that the simulated job runs under.
        simulations: How many of the best are simulated.
        kept: Keys of the workload that all alternatives have the job's own values of.
        is_given: Whether the job's own parallelism is asked about, too.

    Raises:
        ValueError: The job has another workload, or nothing fits; the message says what.
    """
    fabric = scenario.topology.build()
    number, job = next((number, job) for number, job in enumerate(scenario.jobs) if job.name == name)
    template = job.workload
    if not isinstance(template, CombinedWorkload):
        raise ValueError(f"jobs[{number}] {name}, workload.type: expected combined, got {template.type}")
    placement = place(scenario, fabric)[number]
    ways = Ways(template, len(placement.gpus), job.gpus_per_host, kept)
    simulator = _Simulator(scenario, job, placement, policy, fabric)
    search = _Search(ways, template, placement, simulator)
    search.run(simulations)
    if not search.ranked:
        raise ValueError(f"jobs[{number}] {name}: {search.why_nothing()}")
    given = search.alternative(ways.way(template)) if is_given else None
    if given is not None and simulations:
        given = simulator.simulated(given)
    best = search.ranked[0]
    return Advice(
        job=name,
        model=template.description.name,
        policy=policy.name,
        gpus=ways.num_gpus,
        memory_bytes=ways.memory_bytes,
        given=given,
        given_shares=None if given is None else simulator.shares(given, search.inside_s(given)),
        alternatives=search.ranked,
        best_shares=simulator.shares(best, search.inside_s(best)),
        too_large=tuple(search.too_large()),
        num_ways=search.num_ways,
        num_predicted=search.num_predicted,
        is_complete=search.is_complete,
    )


_Family = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class _Bounded:
    """A way with the closer of its bounds."""

    way: Way


class _Search:
    """Goes through the ways to divide a job in the order of what is known of their times.

    A heap has degrees with a bound for all their ways, ways with bounds of their own, those with closer bounds, and
    predicted ways. Where a simulation takes longer than predicted, the same is expected of all ways with these degrees
    and this stage of ZeRO.
    """

    def __init__(self, ways: Ways, template: CombinedWorkload, placement: Placement, simulator: "_Simulator") -> None:
        self.num_ways = self.num_predicted = 0
        self._left_s = math.inf
        self._ways, self._template, self._placement, self._simulator = ways, template, placement, simulator
        self._switches = EdgeSwitches.of(simulator.fabric, placement)
        self._bounds = QuickBounds(template, placement, self._switches)
        self._large: list[tuple[float, int, Way]] = []
        self._numbers = count()
        self._num_flows = 0
        self._simulated: list[Alternative] = []
        self._predicted: list[Alternative] = []
        self._slower: dict[_Family, float] = {}

    def run(self, simulations: int) -> None:
        """Simulate the best, so many at most, and fewer where no other can be faster; predict some more."""
        heap: list[tuple[float, int, CombinedWorkload | Way | _Bounded | Alternative]] = [
            (self._bounds.of_layout(layout), next(self._numbers), layout) for layout in self._ways.layouts()
        ]
        heapq.heapify(heap)
        while heap:
            expected_s, _, node = heapq.heappop(heap)
            if isinstance(node, Alternative):
                corrected_s = node.predicted_s * self._slower.get(_family(node.workload), 1.0)
                if corrected_s > expected_s:
                    heapq.heappush(heap, (corrected_s, next(self._numbers), node))
                elif self._is_over(node, expected_s, simulations):
                    return
            elif isinstance(node, Way):
                closer_s = self._bounds.of_prediction(node.workload)
                heapq.heappush(heap, (max(closer_s, expected_s), next(self._numbers), _Bounded(node)))
            elif self.num_predicted == _MOST_PREDICTIONS:
                self._left_s = min(self._left_s, expected_s)
            elif isinstance(node, _Bounded):
                alternative = self.alternative(node.way)
                self.num_predicted += 1
                heapq.heappush(heap, (alternative.predicted_s, next(self._numbers), alternative))
            else:
                for way in self._ways.of_layout(node):
                    self.num_ways += 1
                    bounded = (self._bounds.of_way(way.workload), next(self._numbers), way)
                    if way.fits:
                        heapq.heappush(heap, bounded)
                    else:
                        self._large.append(bounded)

    def _is_over(self, node: Alternative, expected_s: float, simulations: int) -> bool:
        """Simulate the most promising alternative, or return whether enough is known."""
        fastest_s = min((each.iteration_s for each in self._simulated), default=math.inf)
        is_beaten = expected_s >= fastest_s * (1 - _TOLERANCE)
        is_enough = len(self._simulated) >= min(_LEAST_SIMULATIONS, simulations) and is_beaten
        has_room = not self._simulated or self._num_flows + node.num_flows <= _MOST_FLOWS
        if node.reason is None and not is_enough and has_room and len(self._simulated) < simulations:
            node = self._simulator.simulated(node)
            if node.simulated_s is not None:
                self._num_flows += node.num_flows
                self._simulated.append(node)
                family = _family(node.workload)
                self._slower[family] = max(self._slower.get(family, 1.0), node.simulated_s / node.predicted_s)
                return False
        self._predicted.append(node)
        self._left_s = min(self._left_s, expected_s)
        is_enough = not simulations or bool(self._simulated)
        return is_enough and len(self._simulated) + len(self._predicted) >= _SHOWN

    @property
    def is_complete(self) -> bool:
        """Whether nothing that was not simulated is expected to be faster than what was."""
        fastest_s = self.ranked[0].iteration_s
        return self._left_s >= fastest_s * (1 - _TOLERANCE)

    @property
    def ranked(self) -> tuple[Alternative, ...]:
        """Those that were simulated, and then others that were predicted, each in order of their times."""
        return (
            *sorted(self._simulated, key=lambda each: each.iteration_s),
            *sorted(self._predicted, key=lambda each: each.iteration_s),
        )

    def alternative(self, way: Way) -> Alternative:
        """Return a way with its prediction."""
        prediction = predicted(way.workload, self._placement, self._switches)
        reason = None
        if prediction.num_flows > MAX_FLOWS_PER_JOB:
            reason = f"it sends {prediction.num_flows:,} flows, and a job has room for {MAX_FLOWS_PER_JOB:,}"
        data = degrees_on(way.workload, self._ways.num_gpus).data
        predicted_s, num_flows = prediction.iteration_s, prediction.num_flows
        return Alternative(way.workload, data, way.memory, way.fits, predicted_s, num_flows, reason=reason)

    def inside_s(self, alternative: Alternative) -> Mapping[str, float]:
        """Return the seconds of collectives inside hosts, by dimension."""
        return predicted(alternative.workload, self._placement, self._switches).inside_s

    def too_large(self) -> Iterator[Alternative]:
        """Yield those that might be fastest of the ways that do not fit, one for each set of degrees."""
        seen: set[tuple[int, ...]] = set()
        for _, _, way in sorted(self._large, key=lambda each: each[:2]):
            degrees = _family(way.workload)[:-1]
            if degrees not in seen and len(seen) < _TOO_LARGE:
                seen.add(degrees)
                yield self.alternative(way)

    def why_nothing(self) -> str:
        """Return why no way was found."""
        num_gpus = self._ways.num_gpus
        if not self._large:
            what = f"{self._template.description.name} and a batch of {self._template.batch}"
            return f"no parallelism divides {what} on {num_gpus} GPUs"
        least = min((way for _, _, way in self._large), key=lambda way: way.memory.total_bytes)
        has, needs = self._ways.memory_bytes or 0.0, least.memory.total_bytes
        return f"every parallelism needs more memory than a GPU's {has / 1e9:.0f} GB, the least {needs / 1e9:.0f} GB"


def _family(workload: CombinedWorkload) -> _Family:
    return workload.tensor, workload.context, workload.expert, workload.pipeline, workload.zero


@dataclass
class _Simulator:
    """Simulates alternatives, and keeps what it has simulated."""

    scenario: Scenario
    job: JobSpecification
    placement: Placement
    policy: Policy
    fabric: Fabric

    def __post_init__(self) -> None:
        self._routing = Routing(self.fabric, hash_multipliers(self.fabric.switches, self.scenario.seed))
        self._known: dict[str, SimulatedIteration] = {}

    def simulated(self, alternative: Alternative) -> Alternative:
        """Return an alternative with its simulated time, or with the reason why it cannot be simulated."""
        if alternative.reason is not None:
            return alternative
        key = alternative.workload.model_dump_json(exclude={"model"})
        try:
            if key not in self._known:
                self._known[key] = simulate(
                    *(self.scenario, self.job, alternative.workload, self.placement, self._routing, self.policy),
                    alternative.predicted_s,
                )
        except RegistrationError as error:
            return replace(alternative, reason=str(error))
        return replace(alternative, simulated_s=self._known[key].iteration_s)

    def shares(self, alternative: Alternative, inside_s: Mapping[str, float]) -> TimeShares | None:
        """Return where the time of an alternative goes; None where it was not simulated."""
        known = self._known.get(alternative.workload.model_dump_json(exclude={"model"}))
        return None if known is None else known.shares(inside_s)
