"""The registry: which jobs there are, what they send, and until when they may be believed."""

import hmac
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import replace

from controller.registry.admission import (
    check_age,
    check_flow,
    check_iteration,
    check_job,
    check_measurable,
    check_name,
    check_profile,
    check_transfer,
)
from controller.registry.journal import Journal
from controller.registry.registration import (
    ConflictError,
    ExhaustedError,
    FlowGroupInstance,
    FlowGroupRequest,
    FlowRequest,
    InstanceRequest,
    InvalidFieldError,
    JobRequest,
    NotOwnerError,
    RegisteredFlow,
    RegisteredFlowGroup,
    RegisteredJob,
    StoredJob,
    UnknownJobError,
)
from controller.registry.source_ports import Batch
from controller.registry.state import Register
from policies.flows import FlowKey
from policies.profile import Profile
from topologies.addressing import FiveTuple
from topologies.fabric import Fabric

MAX_FLOWS = 1_000_000
"""So that nobody fills the memory; ten times what is meant to be served."""


class Registry:
    """Jobs with their flow groups and leases.

    Every method that takes a registration raises a RegistrationError and changes nothing where it refuses. The caller
    passes the time; a lease ends ``lease_s`` seconds after it was last renewed. With a ``journal``, a change is one
    that others see only once ``stored`` has returned, and is undone where that raises; instances they see at once.
    """

    def __init__(self, fabric: Fabric, lease_s: float, journal: Journal | None = None) -> None:
        self.fabric = fabric
        self.lease_s = lease_s
        self._register = Register(lease_s, journal)

    @property
    def jobs(self) -> tuple[RegisteredJob, ...]:
        """Registered jobs that are stored, in order of their names."""
        return tuple(job for _, job in sorted(self._register.stored_jobs.items()))

    @property
    def silence_step_s(self) -> float:
        """How often silences are to be told."""
        return self._register.leases.step_s

    @property
    def next_lease_end_s(self) -> float | None:
        """When the earliest lease ends; None where there is none."""
        return self._register.leases.next_end_s

    def lease_end_s(self, name: str) -> float:
        """When the lease of a registered job ends; 0 where it is about to go."""
        return self._register.leases.end_s(name) or 0.0

    def arrival_s(self, name: str) -> float | None:
        """When a job arrived; None where it is not registered."""
        job = self._register.jobs.get(name)
        return None if job is None else job.arrival_s

    def __contains__(self, job: object) -> bool:
        return job in self._register.jobs

    def authorise(self, name: str, owner_token: str) -> None:
        """Raise NotOwnerError where a job is registered, and not by who knows this token."""
        known = self._register.jobs.get(name)
        if known is not None and not hmac.compare_digest(known.owner_token.encode(), owner_token.encode()):
            raise NotOwnerError(f"owner_token: job {name!r} belongs to another client")

    def register_job(self, request: JobRequest, now_s: float, owner_token: str = "", age_s: float = 0.0) -> bool:
        """Register a job and start its lease; False where exactly this job is registered, whose lease is then renewed.

        It arrived ``age_s`` ago. The same job with another profile has that from now on. Raises InvalidFieldError, and
        ConflictError where another job has the name. One without a profile is refused too where its traffic could not
        be told from another's (ConflictError), or switches have no room to count it (ExhaustedError).
        """
        check_job(request, self.fabric)
        check_age(age_s)
        known = self._register.jobs.get(request.name)
        if known is not None and replace(known.request, profile=request.profile) != request:
            raise ConflictError(f"name: another job is registered as {request.name!r}")
        if request.profile is None:
            if known is not None and known.flow_groups:
                raise ConflictError(
                    f"profile: job {request.name!r} has flow groups, so that it has to tell its profile"
                )
            others = (job.request for name, job in self._register.jobs.items() if name != request.name)
            measured = [other for other in others if other.profile is None]
            check_measurable(request, measured, self.fabric)
        if known is None:
            self._register.change(request.name, RegisteredJob(request, now_s - age_s, owner_token))
        elif known.request != request:
            self._register.change(request.name, replace(known, request=request))
        self.renew(request.name, now_s)
        return known is None or known.request != request

    def report_profile(self, name: str, profile: Profile) -> bool:
        """Replace the profile of a job; False where it is the same. Raises UnknownJobError and InvalidFieldError.

        What was measured of one that had told none counts no longer.
        """
        job = self._job(name)
        check_profile(profile)
        if profile == job.request.profile:
            return False
        self._register.change(name, replace(job, request=replace(job.request, profile=profile)))
        return True

    def register_flow_groups(
        self, name: str, requests: Sequence[FlowGroupRequest]
    ) -> tuple[bool, tuple[RegisteredFlowGroup, ...]]:
        """Register flow groups of a job, all or none; returns whether any is new, and all with their 5-tuples.

        Raises UnknownJobError, InvalidFieldError, ConflictError where a group's name or a flow's 5-tuple is taken by
        something else, and ExhaustedError.
        """
        job = self._job(name)
        if requests and job.request.profile is None:
            raise ConflictError(f"flow_groups: job {name!r} has told no profile, so that its traffic is measured")
        known = {group.name: group for group in job.flow_groups}
        chosen = {flow.five_tuple for request in requests for flow in request.flows if flow.five_tuple is not None}
        batch = self._register.source_ports.batch(chosen)
        registered: dict[str, RegisteredFlowGroup] = {}
        sent_bytes = sum(flow.size_bytes for group in job.flow_groups for flow in group.flows)
        for position, request in enumerate(requests):
            field = f"flow_groups[{position}]"
            check_name(request.name, f"{field}.name")
            if request.name in registered:
                raise InvalidFieldError(f"{field}.name: {request.name!r} is named twice")
            if request.name not in known:
                registered[request.name] = self._assign_group(job.request, request, batch, sent_bytes, field)
                sent_bytes += sum(flow.size_bytes for flow in request.flows)
            elif _is_template_of(request, known[request.name]):
                registered[request.name] = known[request.name]
            else:
                raise ConflictError(f"{field}.name: job {name!r} has another flow group {request.name!r}")
        new = tuple(group for group in registered.values() if group.name not in known)
        if new:
            self._register.change(name, replace(job, flow_groups=job.flow_groups + new))
            batch.commit()
        return bool(new), tuple(registered.values())

    def note_instances(self, name: str, told: Mapping[str, InstanceRequest], now_s: float) -> bool:
        """Instances of flow groups, by group, begin or have ended; renews the lease. Returns whether any did.

        One that is older than the newest known is late, and changes nothing. Raises UnknownJobError and
        InvalidFieldError.
        """
        groups = {group.name for group in self._job(name).flow_groups}
        for position, (group, instance) in enumerate(told.items()):
            if group not in groups:
                raise InvalidFieldError(f"instances[{position}].flow_group: job {name!r} has none named {group!r}")
            check_iteration(instance.iteration, f"instances[{position}].iteration")
        self.renew(name, now_s)
        newest = self.instances(name)
        is_news = False
        for group, instance in told.items():
            known = newest.get(group)
            if known is None or known.iteration < instance.iteration:
                begun = FlowGroupInstance(instance.iteration, now_s, instance.has_ended)
            elif known.iteration == instance.iteration and instance.has_ended:
                begun = replace(known, has_ended=True)
            else:
                continue
            if begun != known:
                self._register.note_instance(name, group, begun)
                is_news = True
        return is_news

    def instances(self, name: str) -> Mapping[str, FlowGroupInstance]:
        """The newest instance of every flow group of a job that has begun one."""
        return self._register.instances.get(name, {})

    def change_source_ports(self, five_tuples: Mapping[FlowKey, FiveTuple]) -> frozenset[FlowKey]:
        """Give flows these 5-tuples; returns those that could be given theirs.

        A flow that has left, or has not had its 5-tuple assigned, or whose new one is taken, stays as it is.
        """
        changed: set[FlowKey] = set()
        for name in {key.job for key in five_tuples} & self._register.jobs.keys():
            job = self._register.jobs[name]
            groups = tuple(self._moved(name, group, five_tuples, changed) for group in job.flow_groups)
            if any(moved is not group for moved, group in zip(groups, job.flow_groups, strict=True)):
                self._register.change(name, replace(job, flow_groups=groups))
        return frozenset(changed)

    def renew(self, name: str, now_s: float) -> bool:
        """Renew the lease of a job; whether that is to be stored, as silence was. Raises UnknownJobError."""
        self._job(name)
        return self._register.renew(name, now_s)

    def tell_silences(self, now_s: float) -> None:
        """Have the next controller know which jobs have not been heard of in time."""
        self._register.tell_silences(now_s)

    def deregister(self, name: str) -> bool:
        """Withdraw a job with its flow groups; False where it is not registered."""
        if name not in self._register.jobs:
            return False
        self._register.withdraw(name)
        return True

    def expire(self, now_s: float) -> tuple[str, ...]:
        """Withdraw the jobs whose leases have ended; returns their names."""
        ended = self._register.leases.ended(now_s)
        for name in ended:
            self.deregister(name)
        return ended

    def stored(self) -> Awaitable[None]:
        """Wait until all that was changed before this call outlives this process; not at all where nothing is to.

        Raises NotStoredError where it cannot, and all of it is as it was.
        """
        return self._register.stored()

    def restore(self, jobs: Iterable[StoredJob], now_s: float) -> None:
        """Take over what was stored before, into an empty registry; leases go on from where they were."""
        self._register.restore(jobs, now_s)

    def _job(self, name: str) -> RegisteredJob:
        if name not in self._register.jobs:
            raise UnknownJobError(f"job: {name!r} is not registered")
        return self._register.jobs[name]

    def _assign_group(
        self, job: JobRequest, request: FlowGroupRequest, batch: Batch, sent_bytes: float, field: str
    ) -> RegisteredFlowGroup:
        """Check a new group and give its flows 5-tuples, which ``batch`` then holds; others send so much already."""
        if len(self._register.source_ports) + len(batch) + len(request.flows) > MAX_FLOWS:
            raise ExhaustedError(f"{field}.flows: there is no room for more than {MAX_FLOWS:,} flows altogether")
        flows = []
        for number, flow in enumerate(request.flows):
            where = f"{field}.flows[{number}]"
            source, destination = check_flow(flow, job, self.fabric, where)
            sent_bytes += flow.size_bytes
            check_transfer(sent_bytes, self.fabric, where)
            five_tuple = flow.five_tuple or batch.assign(source, destination, flow.held_source_port)
            if five_tuple is None:
                raise ExhaustedError(f"{where}.five_tuple: no source port is left between these NICs")
            if (owner := batch.owner(five_tuple)) is not None:
                raise ConflictError(
                    f"{where}.five_tuple: {five_tuple} is that of job {owner.job!r}, group {owner.group!r},"
                    f" flow {owner.flow}"
                )
            batch.take(five_tuple, FlowKey(job.name, request.name, number))
            is_assigned = flow.five_tuple is None
            flows.append(RegisteredFlow(source, destination, flow.size_bytes, flow.offset_s, five_tuple, is_assigned))
        return RegisteredFlowGroup(request.name, tuple(flows))

    def _moved(
        self, job: str, group: RegisteredFlowGroup, five_tuples: Mapping[FlowKey, FiveTuple], changed: set[FlowKey]
    ) -> RegisteredFlowGroup:
        """The group with the new 5-tuples that its flows may have; ``changed`` then has their keys."""
        flows = []
        for number, flow in enumerate(group.flows):
            key = FlowKey(job, group.name, number)
            five_tuple = five_tuples.get(key)
            if five_tuple is not None and flow.is_assigned and five_tuple not in self._register.source_ports:
                self._register.source_ports.release(flow.five_tuple)
                self._register.source_ports.take(five_tuple, key)
                changed.add(key)
                flow = replace(flow, five_tuple=five_tuple)
            flows.append(flow)
        # One that is as it was stays the same: only what has changed is written.
        is_same = all(moved is flow for moved, flow in zip(flows, group.flows, strict=True))
        return group if is_same else replace(group, flows=tuple(flows))


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
