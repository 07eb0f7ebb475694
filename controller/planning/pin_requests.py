"""Checks of what operators want to pin: every refusal says what there is instead."""

from controller.errors import DaemonError
from controller.links.link_health import DeadCable
from controller.links.link_log import cable_name, listed
from controller.planning.path_names import path_name, path_of
from controller.planning.planner import Planner
from controller.profiling.measured import ProfilingResults
from controller.registry.errors import InvalidFieldError
from controller.registry.jobs import RegisteredFlow, RegisteredJob
from controller.registry.registry import Registry
from policies.flows import FlowKey
from topologies.fabric import Path
from topologies.printable import quoted

_MOST_LISTED = 8


class UnknownPinError(DaemonError, LookupError):
    """No job or flow has the name, or nothing is pinned for it; the message says what there is."""


class UnfitPinError(DaemonError):
    """It cannot be pinned now; the message says why."""


class PinChecker:
    """Checks pins against the jobs, the fabric and its links as they are now.

    Raises UnknownPinError for what there is not, UnfitPinError for what cannot be now, and InvalidFieldError for what
    can never be.
    """

    def __init__(self, planner: Planner, registry: Registry, profiling: ProfilingResults) -> None:
        self._planner = planner
        self._registry = registry
        self._profiling = profiling

    def check_level(self, name: str, level: int) -> None:
        """Check a level for a job."""
        if "/" in name:
            raise InvalidFieldError(f"level: is pinned for a job, not for a flow such as {quoted(name)}")
        job = self._job(name)
        if not 0 <= level < self._planner.num_levels:
            raise InvalidFieldError(f"level: must lie between 0 and {self._planner.num_levels - 1}, not {level}")
        if self.is_measured_now(job):
            raise UnfitPinError(
                f"job {quoted(name)} is being measured, for which it needs a level of its own; pin it once show jobs"
                " has its profile"
            )

    def check_path(self, name: str, words: str, now_s: float) -> str:
        """Check a path for a flow; returns its whole name."""
        if "/" not in name:
            raise InvalidFieldError(
                f"path: is pinned for a flow JOB/GROUP/NUMBER, not for a job such as {quoted(name)}"
            )
        key, flow = self._flow(name)
        fabric, whole = self._registry.fabric, self._planner.routing.whole
        candidates = whole.candidate_paths(flow.source, flow.destination)
        try:
            path = path_of(words, fabric)
        except ValueError as error:
            raise InvalidFieldError(f"path: {error}; {self._candidates(name, candidates)}") from error
        if path not in candidates:
            known = self._candidates(name, candidates)
            raise InvalidFieldError(f"path: {path_name(path, fabric)} is no path of this flow; {known}")
        if problem := self.path_problem(key, path, now_s):
            raise UnfitPinError(f"path {path_name(path, fabric)}: {problem}")
        return path_name(path, fabric)

    def is_measured_now(self, job: RegisteredJob) -> bool:
        """Whether a job is being measured, or is to be since nothing is known of it."""
        name = job.request.name
        return job.request.profile is None and (
            self._profiling.profiled == name or self._profiling.measured(name) is None
        )

    def path_problem(self, key: FlowKey, path: Path, now_s: float) -> str:
        """Why a flow cannot take a path now; empty where it can."""
        links, fabric = self._planner.links, self._registry.fabric
        drained = links.drained_links(now_s)
        dead = links.failed_links(now_s) | drained | self._planner.routing.dead
        if lost := [link for link in path if link in dead]:
            states = dict.fromkeys(drained, "drained")
            states |= {link: state for each in links.dead_cables(now_s) for link, state in _states(each)}
            cables = (f"{cable_name(fabric, link)} ({states.get(link, 'waits for a Plan')})" for link in lost)
            return f"is not used now: {listed(cables)}"
        decision = self._planner.decision
        for job in () if decision is None else decision.snapshot.jobs:
            for flow in job.flows if job.name == key.job else ():
                if flow.key == key and path not in tuple(flow.candidates):
                    return "probes are lost on it, or nothing leads the flow along it now"
        return ""

    def _flow(self, name: str) -> tuple[FlowKey, RegisteredFlow]:
        job = self._job(name.partition("/")[0])
        if job.request.profile is None:
            raise UnfitPinError(f"job {quoted(job.request.name)} has told no flows; only its level can be pinned")
        _, group, number = (*name.split("/"), "")[:3]
        for each in job.flow_groups:
            if each.name == group and number in map(str, range(len(each.flows))) and name.count("/") == 2:
                return FlowKey(job.request.name, group, int(number)), each.flows[int(number)]
        known = listed(
            f"{job.request.name}/{each.name}/0"
            + (f" to {job.request.name}/{each.name}/{len(each.flows) - 1}" if len(each.flows) > 1 else "")
            for each in job.flow_groups
            if each.flows
        )
        raise UnknownPinError(
            f"job {quoted(job.request.name)} has no flow {quoted(name)}; its flows: {known or 'none'}"
        )

    def _job(self, name: str) -> RegisteredJob:
        job = self._registry.job(name)
        if job is None:
            known = listed(each.request.name for each in self._registry.jobs)
            raise UnknownPinError(f"no job {quoted(name)} is registered; registered: {known or 'none'}")
        return job

    def _candidates(self, name: str, candidates: tuple[Path, ...]) -> str:
        paths = ", ".join(path_name(path, self._registry.fabric) for path in candidates[:_MOST_LISTED])
        more = f" and {len(candidates) - _MOST_LISTED} more" if len(candidates) > _MOST_LISTED else ""
        return f"{name} has {paths}{more}" if candidates else f"{name} has none"


def _states(cable: DeadCable) -> tuple[tuple[int, str], ...]:
    """The state of a cable for its two links."""
    return (cable.link, str(cable.state)), (cable.link ^ 1, str(cable.state))
