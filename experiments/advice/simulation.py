"""An iteration of a job, divided in some way, on the simulator's model, and where its time goes."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from experiments.advice.results import DIMENSIONS, LinkLoad, TimeShares
from experiments.scenarios.modelled import ModelledScenario
from policies.plan import Plan
from policies.policy import Policy, decide
from topologies.fabric import Fabric
from topologies.routing import Routing
from workloads.combined.expansion import expand_combined
from workloads.combined_workload import CombinedWorkload
from workloads.jobs import TrainingJob
from workloads.placement import Placement
from workloads.scenario import JobSpecification, Scenario
from workloads.task_graph import Computation, GroupTransfer, Task, TaskGraph

_NUM_LINKS = 5
_BUBBLE = "bubble"
_DIMENSION_OF = {
    "tensor": "tensor",
    "context": "context",
    "expert": "expert",
    "forward": "pipeline",
    "backward": "pipeline",
    "gradients": "data",
    "parameters": "data",
}
"""Dimensions by the first words of flow groups, and of transfers inside hosts."""


@dataclass(frozen=True, slots=True)
class SimulatedIteration:
    """An iteration of a job that has the fabric to itself: its time, and when its tasks ended."""

    iteration_s: float
    ends_s: Sequence[float]
    graph: TaskGraph
    modelled: ModelledScenario
    plan: Plan

    def shares(self, inside_s: Mapping[str, float]) -> TimeShares:
        """Return where the time goes; ``inside_s`` has the seconds of collectives inside hosts by dimension."""
        seconds = _seconds_of_gpus(self.graph, self.ends_s, self.iteration_s)
        inside = sum(inside_s.values())
        exposed_s = {each: seconds[each] + inside_s.get(each, 0.0) for each in DIMENSIONS}
        return TimeShares(seconds["compute"] - inside, seconds[_BUBBLE], exposed_s, self._links())

    def _links(self) -> tuple[LinkLoad, ...]:
        fabric, (job,) = self.modelled.routing.fabric, self.modelled.played
        busy_s: defaultdict[int, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
        for flow in job.flows:
            path = self.plan.flows[flow.key].path or flow.hashed_path
            dimension = _DIMENSION_OF[flow.key.group.split()[0]]
            for link in (*path, *flow.host_links):
                busy_s[link][dimension] += flow.size_bytes * 8 / fabric.rates_bps[link]
        by_load = sorted(busy_s, key=lambda link: (-sum(busy_s[link].values()), link))
        busiest: dict[str, LinkLoad] = {}
        for link in by_load:
            name = _name(fabric, link)
            if name not in busiest and len(busiest) < _NUM_LINKS:
                busiest[name] = LinkLoad(name, sum(busy_s[link].values()) / self.iteration_s, dict(busy_s[link]))
        return tuple(busiest.values())


def simulate(
    scenario: Scenario,
    job: JobSpecification,
    workload: CombinedWorkload,
    placement: Placement,
    routing: Routing,
    policy: Policy,
    expected_s: float,
) -> SimulatedIteration:
    """Simulate an iteration of a job alone under a policy; ``expected_s`` is about how long it takes.

    Raises:
        RegistrationError: The controller would refuse the job, because it sends too many flows.
        ValueError: The policy cannot decide.
    """
    graph = expand_combined(workload, placement)
    alone = TrainingJob(job.model_copy(update={"workload": workload, "arrival_s": 0.0}), placement, graph)
    modelled = ModelledScenario.of_jobs([alone], routing, scenario.seed, scenario.steering, scenario.num_levels)
    plan = decide(policy, modelled.snapshot)
    playing = modelled.playing(plan)
    until_s = expected_s
    while not playing.iterations[0]:
        until_s *= 1.5
        playing.run(until_s)
    iteration_s = float(playing.ends_s(0)[0])
    # The last task begins a new iteration as it ends, so time stops before that.
    playing = modelled.playing(plan)
    playing.run(iteration_s - 1e-12)
    ends_s = [end_s or iteration_s for end_s in playing.task_ends_s(0).tolist()]
    return SimulatedIteration(iteration_s, ends_s, graph, modelled, plan)


def _seconds_of_gpus(graph: TaskGraph, ends_s: Sequence[float], iteration_s: float) -> Mapping[str, float]:
    """Return what GPUs do, and what they wait for, the mean over all.

    Whoever waits, waits for the task that ended last of those before; before that task began, for what it waited for.
    """
    tasks = graph.tasks
    starts_s = [max((ends_s[earlier] for earlier in task.after), default=0.0) for task in tasks]
    of_gpus: defaultdict[tuple[tuple[str, ...], str], list[int]] = defaultdict(list)
    num_hosts: dict[tuple[tuple[str, ...], str], float] = {}
    for number, task in enumerate(tasks):
        if isinstance(task, Computation) and task.share:
            key = task.hosts, task.name.partition(" of stage ")[2]
            of_gpus[key].append(number)
            num_hosts[key] = len(task.hosts) * task.share
    in_all = sum(num_hosts.values())
    seconds: defaultdict[str, float] = defaultdict(float)
    last = max(range(len(tasks)), key=ends_s.__getitem__)
    for key, numbers in of_gpus.items():
        share = num_hosts[key] / in_all
        free_s = 0.0
        for number in sorted(numbers, key=starts_s.__getitem__):
            _wait(tasks, starts_s, ends_s, tasks[number].after, free_s, seconds, share)
            seconds["compute"] += share * (ends_s[number] - max(starts_s[number], free_s))
            free_s = max(free_s, ends_s[number])
        if free_s < iteration_s:
            _wait(tasks, starts_s, ends_s, (last,), free_s, seconds, share)
    return seconds


def _wait(
    tasks: Sequence[Task],
    starts_s: Sequence[float],
    ends_s: Sequence[float],
    after: Sequence[int],
    from_s: float,
    seconds: defaultdict[str, float],
    share: float,
) -> None:
    """Add to ``seconds`` what somebody waits for from some time until the last of the tasks ``after`` ends."""
    while after:
        number = max(after, key=ends_s.__getitem__)
        if ends_s[number] <= from_s:
            return
        task = tasks[number]
        if isinstance(task, GroupTransfer):
            kind = _DIMENSION_OF[task.group.split()[0]]
        else:
            kind = _BUBBLE if task.share else _DIMENSION_OF[task.name.split()[0]]
        seconds[kind] += share * (ends_s[number] - max(starts_s[number], from_s))
        after = task.after


def _name(fabric: Fabric, link: int) -> str:
    ends = fabric.link(link)
    return f"{ends.source} → {ends.destination}"
