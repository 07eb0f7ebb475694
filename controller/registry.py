"""The registry: which jobs there are, what they send, and until when they may be believed."""

from collections.abc import Container, Sequence, Set
from dataclasses import replace

from controller.admission import check_flow, check_job
from controller.policy.snapshot import FlowKey
from controller.registration import (
    ConflictError,
    ExhaustedError,
    FlowGroupRequest,
    FlowRequest,
    InvalidFieldError,
    JobRequest,
    RegisteredFlow,
    RegisteredFlowGroup,
    RegisteredJob,
    UnknownJobError,
)
from topologies.addressing import (
    FIRST_SOURCE_PORT,
    FLOW_DESTINATION_PORT,
    LAST_SOURCE_PORT,
    UDP_PROTOCOL,
    FiveTuple,
)
from topologies.fabric import Fabric, Nic


class Registry:
    """Jobs with their flow groups and leases, in memory.

    Every method that takes a registration raises a RegistrationError and changes nothing where it refuses. The caller
    passes the time; a lease ends ``lease_s`` seconds after it was last renewed.
    """

    def __init__(self, fabric: Fabric, lease_s: float) -> None:
        self.fabric = fabric
        self.lease_s = lease_s
        self._jobs: dict[str, RegisteredJob] = {}
        self._lease_ends_s: dict[str, float] = {}
        self._owners: dict[FiveTuple, FlowKey] = {}

    @property
    def jobs(self) -> tuple[RegisteredJob, ...]:
        """Registered jobs, in order of their names."""
        return tuple(self._jobs[name] for name in sorted(self._jobs))

    @property
    def next_lease_end_s(self) -> float | None:
        """When the earliest lease ends; None where there is none."""
        return min(self._lease_ends_s.values(), default=None)

    def lease_end_s(self, name: str) -> float:
        """When the lease of a registered job ends."""
        return self._lease_ends_s[name]

    def __contains__(self, job: object) -> bool:
        return job in self._jobs

    def register_job(self, request: JobRequest, now_s: float) -> bool:
        """Register a job and start its lease; False where exactly this job is registered, whose lease is then renewed.

        Raises InvalidFieldError, and ConflictError where another job has the name.
        """
        check_job(request, self.fabric)
        known = self._jobs.get(request.name)
        if known is not None and known.request != request:
            raise ConflictError(f"name: another job is registered as {request.name!r}")
        if known is None:
            self._jobs[request.name] = RegisteredJob(request, arrival_s=now_s)
        self._lease_ends_s[request.name] = now_s + self.lease_s
        return known is None

    def register_flow_groups(
        self, name: str, requests: Sequence[FlowGroupRequest]
    ) -> tuple[bool, tuple[RegisteredFlowGroup, ...]]:
        """Register flow groups of a job, all or none; returns whether any is new, and all with their 5-tuples.

        Raises UnknownJobError, InvalidFieldError, ConflictError where a group's name or a flow's 5-tuple is taken by
        something else, and ExhaustedError.
        """
        job = self._job(name)
        known = {group.name: group for group in job.flow_groups}
        chosen = {flow.five_tuple for request in requests for flow in request.flows if flow.five_tuple is not None}
        assigned: dict[FiveTuple, FlowKey] = {}
        registered: dict[str, RegisteredFlowGroup] = {}
        for position, request in enumerate(requests):
            field = f"flow_groups[{position}]"
            if not request.name:
                raise InvalidFieldError(f"{field}.name: must not be empty")
            if request.name in registered:
                raise InvalidFieldError(f"{field}.name: {request.name!r} is named twice")
            if request.name not in known:
                registered[request.name] = self._assign_group(job.request, request, chosen, assigned, field)
            elif _is_template_of(request, known[request.name]):
                registered[request.name] = known[request.name]
            else:
                raise ConflictError(f"{field}.name: job {name!r} has another flow group {request.name!r}")
        new = tuple(group for group in registered.values() if group.name not in known)
        if new:
            self._jobs[name] = replace(job, flow_groups=job.flow_groups + new)
            self._owners |= assigned
        return bool(new), tuple(registered.values())

    def renew(self, name: str, now_s: float) -> None:
        """Renew the lease of a job; raises UnknownJobError."""
        self._job(name)
        self._lease_ends_s[name] = now_s + self.lease_s

    def deregister(self, name: str) -> bool:
        """Withdraw a job with its flow groups; False where it is not registered."""
        job = self._jobs.pop(name, None)
        if job is None:
            return False
        del self._lease_ends_s[name]
        for group in job.flow_groups:
            for flow in group.flows:
                del self._owners[flow.five_tuple]
        return True

    def expire(self, now_s: float) -> tuple[str, ...]:
        """Withdraw the jobs whose leases have ended; returns their names."""
        ended = tuple(sorted(name for name, end_s in self._lease_ends_s.items() if end_s <= now_s))
        for name in ended:
            self.deregister(name)
        return ended

    def _job(self, name: str) -> RegisteredJob:
        if name not in self._jobs:
            raise UnknownJobError(f"job: {name!r} is not registered")
        return self._jobs[name]

    def _assign_group(
        self,
        job: JobRequest,
        request: FlowGroupRequest,
        chosen: Set[FiveTuple],
        assigned: dict[FiveTuple, FlowKey],
        field: str,
    ) -> RegisteredFlowGroup:
        """Check a new group and give its flows 5-tuples that nobody has ``chosen``, adding them to ``assigned``."""
        flows = []
        for number, flow in enumerate(request.flows):
            where = f"{field}.flows[{number}]"
            source, destination = check_flow(flow, job, self.fabric, where)
            five_tuple = flow.five_tuple or _free_five_tuple(
                source, destination, (self._owners, chosen, assigned), where
            )
            owner = self._owners.get(five_tuple) or assigned.get(five_tuple)
            if owner is not None:
                raise ConflictError(
                    f"{where}.five_tuple: {five_tuple} is that of job {owner.job!r}, group {owner.group!r},"
                    f" flow {owner.flow}"
                )
            assigned[five_tuple] = FlowKey(job.name, request.name, number)
            flows.append(RegisteredFlow(source, destination, flow.size_bytes, flow.offset_s, five_tuple))
        return RegisteredFlowGroup(request.name, tuple(flows))


def _free_five_tuple(source: Nic, destination: Nic, taken: Sequence[Container[FiveTuple]], field: str) -> FiveTuple:
    for source_port in range(FIRST_SOURCE_PORT, LAST_SOURCE_PORT + 1):
        five_tuple = FiveTuple(source.address, destination.address, UDP_PROTOCOL, source_port, FLOW_DESTINATION_PORT)
        if not any(five_tuple in some for some in taken):
            return five_tuple
    raise ExhaustedError(f"{field}.five_tuple: no source port is left between these NICs")


def _is_template_of(request: FlowGroupRequest, group: RegisteredFlowGroup) -> bool:
    """Whether a request asks for exactly what this group is; a 5-tuple left open agrees with the assigned one."""
    return len(request.flows) == len(group.flows) and all(
        _is_request_for(asked, flow) for asked, flow in zip(request.flows, group.flows, strict=True)
    )


def _is_request_for(asked: FlowRequest, flow: RegisteredFlow) -> bool:
    return (
        (asked.source.host, asked.source.index) == (flow.source.host, flow.source.index)
        and (asked.destination.host, asked.destination.index) == (flow.destination.host, flow.destination.index)
        and (asked.size_bytes, asked.offset_s) == (flow.size_bytes, flow.offset_s)
        and asked.five_tuple in (None, flow.five_tuple)
    )
