"""The registration of flow groups, in steps between which other calls are answered."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from controller.registry.admission import check_flow, check_name, check_transfer
from controller.registry.errors import ConflictError, ExhaustedError, InvalidFieldError, UnknownJobError
from controller.registry.graph_admission import GraphAdmission
from controller.registry.jobs import RegisteredFlow, RegisteredFlowGroup, RegisteredJob
from controller.registry.requests import FlowGroupRequest, FlowRequest, TaskGraphRequest
from controller.registry.state import RegistryState
from policies.flows import FlowKey
from topologies.addressing import FiveTuple
from topologies.fabric import Fabric
from topologies.printable import quoted

MAX_FLOWS = 1_000_000
"""Bounds the memory; ten times what the controller is meant to serve."""
MAX_FLOWS_PER_JOB = 100_000


class GroupRegistration:
    """Registers flow groups of a job, all or none.

    Every step checks one flow and takes its 5-tuple, which others do not get from then on. ``admit_graph`` checks the
    task graph that comes with them; it may run in a thread. ``finish`` makes the groups and the graph part of the job,
    and ``cancel`` gives back what was taken. Two registrations of one job must not overlap.

    Example::

        registration = registry.registering("gpt", requests)
        try:
            for _ in registration.steps():
                ...
            registration.admit_graph()
            is_new, groups = registration.finish()
        except BaseException:
            registration.cancel()
            raise
    """

    def __init__(
        self,
        state: RegistryState,
        fabric: Fabric,
        name: str,
        requests: Sequence[FlowGroupRequest],
        task_graph: TaskGraphRequest | None = None,
    ) -> None:
        self._state = state
        self._fabric = fabric
        self._name = name
        self._requests = requests
        self._task_graph = task_graph
        self._begun_with = self._job()
        self._graph = GraphAdmission(self._begun_with, task_graph)
        self._chosen: set[FiveTuple] = set()
        self._reservation = state.source_ports.reserve(self._begun_with.tenant, self._chosen)
        self._new: list[RegisteredFlowGroup] = []
        before = state.groups.of(self._begun_with)
        self._num_flows = before.num_flows
        self._sent_bytes = before.sent_bytes

    def steps(self) -> Iterator[None]:
        """Check and assign, one flow at a time.

        Raises:
            InvalidFieldError: A field has a value that it cannot have.
            ConflictError: A group of the name differs, or another flow holds a 5-tuple.
            ExhaustedError: No source port, or no room, is left, or the tenant has as many source ports as it may.
        """
        yield from self._state.releasing()
        for request in self._requests:
            for flow in request.flows:
                if flow.five_tuple is not None:
                    self._chosen.add(flow.five_tuple)
                    yield
        known = self._state.groups.of(self._begun_with).by_name
        seen: set[str] = set()
        for position, request in enumerate(self._requests):
            field = f"flow_groups[{position}]"
            check_name(request.name, f"{field}.name")
            if not request.flows:
                raise InvalidFieldError(f"{field}.flows: must name at least one flow")
            if request.name in seen:
                raise InvalidFieldError(f"{field}.name: {request.name!r} is named twice")
            seen.add(request.name)
            if request.name not in known:
                yield from self._assign(request, field)
            else:
                yield from self._compare(request, known[request.name], f"{field}.name")
            yield

    def admit_graph(self) -> None:
        """Check the task graph, after all steps. Raises InvalidFieldError."""
        self._graph.admit(self._new)

    def finish(self) -> tuple[bool, tuple[RegisteredFlowGroup, ...]]:
        """Make the groups, and the graph, part of the job.

        Returns:
            Whether any is new, and all groups that were asked for with their 5-tuples.

        Raises:
            UnknownJobError: The job has left meanwhile.
            CommitError: Groups that the graph sends are not stored after all.
            ConflictError: Another flow has got one of the 5-tuples back, since its withdrawal could not be stored.
            ExhaustedError: The quotas of the tenant are used up.
        """
        job = self._job()
        graph = self._graph.graph_of(job, has_new_groups=bool(self._new))
        is_new = bool(self._new) or graph is not job.task_graph
        if is_new:
            self._reservation.check_is_kept()
            self._state.usage.check_flow_groups(job.tenant, self._new)
            self._state.usage.check_task_graph(job, graph)
            job = replace(job, flow_groups=(*job.flow_groups, *self._new), task_graph=graph)
            self._state.change(self._name, job)
        groups = self._state.groups.of(job).by_name
        return is_new, tuple(groups[request.name] for request in self._requests)

    def cancel(self) -> None:
        """Give back the 5-tuples."""
        self._reservation.cancel()

    def _job(self) -> RegisteredJob:
        job = self._state.jobs.get(self._name)
        if job is None:
            raise UnknownJobError(f"job: {quoted(self._name)} is not registered")
        if job.request.profile is None and (self._requests or self._task_graph is not None):
            raise ConflictError(f"flow_groups: job {self._name!r} reports no profile, so that its traffic is measured")
        return job

    def _assign(self, request: FlowGroupRequest, field: str) -> Iterator[None]:
        self._num_flows += len(request.flows)
        if self._num_flows > MAX_FLOWS_PER_JOB:
            raise ExhaustedError(f"{field}.flows: a job has room for {MAX_FLOWS_PER_JOB:,} flows")
        if len(self._state.source_ports) + len(request.flows) > MAX_FLOWS:
            raise ExhaustedError(f"{field}.flows: there is no room for more than {MAX_FLOWS:,} flows altogether")
        flows = []
        for number, flow in enumerate(request.flows):
            key = FlowKey(self._name, request.name, number)
            flows.append(self._assigned(flow, key, f"{field}.flows[{number}]"))
            yield
        self._new.append(RegisteredFlowGroup(request.name, tuple(flows)))

    def _assigned(self, flow: FlowRequest, key: FlowKey, where: str) -> RegisteredFlow:
        source, destination = check_flow(flow, self._begun_with.request, self._fabric, where)
        self._sent_bytes += flow.size_bytes
        check_transfer(self._sent_bytes, self._fabric, where)
        five_tuple = flow.five_tuple or self._reservation.assign(
            source, destination, flow.service, flow.held_source_port
        )
        if five_tuple is None:
            raise ExhaustedError(f"{where}.five_tuple: no source port is left between these NICs")
        if (owner := self._state.source_ports.owner(five_tuple)) is not None:
            raise ConflictError(f"{where}.five_tuple: {five_tuple} is that of {self._described(owner)}")
        tenant = self._begun_with.tenant
        self._state.usage.check_source_ports(tenant, self._state.source_ports.count(tenant, five_tuple) + 1)
        self._reservation.take(five_tuple, key)
        is_assigned = flow.five_tuple is None
        return RegisteredFlow(source, destination, flow.size_bytes, flow.offset_s, five_tuple, is_assigned)

    def _compare(self, request: FlowGroupRequest, group: RegisteredFlowGroup, field: str) -> Iterator[None]:
        """Check that a request describes exactly this group."""
        is_same = len(request.flows) == len(group.flows)
        for asked, flow in zip(request.flows, group.flows, strict=False):
            is_same = is_same and _is_request_for(asked, flow)
            yield
        if not is_same:
            raise ConflictError(f"{field}: job {self._name!r} has another flow group {group.name!r}")

    def _described(self, owner: FlowKey) -> str:
        """The flow that has a 5-tuple, in words; what another tenant calls it is nobody else's business."""
        job = self._state.jobs.get(owner.job)
        if job is None or job.tenant != self._begun_with.tenant:
            return "another tenant's job"
        return f"job {owner.job!r}, group {owner.group!r}, flow {owner.flow}"


def _is_request_for(asked: FlowRequest, flow: RegisteredFlow) -> bool:
    """Whether a request describes this flow; a 5-tuple left open agrees with the one that was assigned for it."""
    return (
        (asked.source.host, asked.source.index) == (flow.source.host, flow.source.index)
        and (asked.destination.host, asked.destination.index) == (flow.destination.host, flow.destination.index)
        and (asked.size_bytes, asked.offset_s) == (flow.size_bytes, flow.offset_s)
        and _is_five_tuple_for(asked, flow)
    )


def _is_five_tuple_for(asked: FlowRequest, flow: RegisteredFlow) -> bool:
    if asked.five_tuple is not None:
        return asked.five_tuple == flow.five_tuple
    is_open = asked.tcp_port is None and not flow.is_assigned
    return is_open or asked.service == flow.five_tuple.service
