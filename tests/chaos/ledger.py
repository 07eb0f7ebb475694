"""A ledger of acknowledged requests, written where responses arrive, and what a controller has lost of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from controller.registry.jobs import FlowGroupInstance
from controller.registry.registry import Registry
from hostlib.connection import Connection
from hostlib.credentials import Credentials
from hostlib.task_graph import TaskGraph
from hostlib.types import FiveTuple, FlowGroup, FlowGroupAssignments, GroupInstance, Job, Profile
from tests.chaos.jobs import on_the_wire
from topologies.addressing import FiveTuple as WireFiveTuple


@dataclass(frozen=True)
class Acknowledged:
    """An acknowledged job; its lease was renewed at ``renewed_s`` or later.

    ``asked`` are profiles that were reported since and not acknowledged: a controller may know one of them, as it may
    have been killed between storing and answering. ``instances`` are the newest of flow groups.
    """

    job: Job
    renewed_s: float
    groups: Mapping[str, tuple[FiveTuple, ...]]
    asked: tuple[Profile, ...] = ()
    instances: Mapping[str, GroupInstance] = field(default_factory=dict)


class Ledger:
    """Acknowledged jobs by name, until they ask to be withdrawn or their leases may have ended."""

    def __init__(self, lease_s: float, now_s: Callable[[], float]) -> None:
        self.now_s = now_s
        self._lease_s = lease_s
        self._jobs: dict[str, Acknowledged] = {}

    @property
    def jobs(self) -> Mapping[str, Acknowledged]:
        """The jobs that a controller must know now."""
        end_s = self.now_s() - self._lease_s
        self._jobs = {name: known for name, known in self._jobs.items() if known.renewed_s > end_s}
        return self._jobs

    def note_job(self, job: Job, said_s: float) -> None:
        """Record the acknowledgement of a registration requested at ``said_s``."""
        known = self.jobs.get(job.name)
        self._jobs[job.name] = (
            Acknowledged(job, said_s, {})
            if known is None
            else replace(known, job=job, renewed_s=said_s, asked=_after(job.profile, known.asked))
        )

    def note_groups(self, job: str, groups: FlowGroupAssignments) -> None:
        """Record the acknowledgement of flow groups with their 5-tuples."""
        if (known := self.jobs.get(job)) is not None:
            self._jobs[job] = replace(known, groups={**known.groups, **groups})

    def note_asked(self, job: str, profile: Profile | None) -> None:
        """Record that a profile is reported, with its job or by itself."""
        if profile is not None and (known := self.jobs.get(job)) is not None:
            self._jobs[job] = replace(known, asked=(*known.asked, profile))

    def note_profile(self, job: str, profile: Profile) -> None:
        """Record the acknowledgement of a profile, which replaces those reported before."""
        if (known := self.jobs.get(job)) is not None:
            job_now = replace(known.job, profile=profile)
            self._jobs[job] = replace(known, job=job_now, asked=_after(profile, known.asked))

    def note_instances(self, job: str, instances: Mapping[str, GroupInstance]) -> None:
        """Record the acknowledgement of instances; only the newest of each flow group counts."""
        if (known := self.jobs.get(job)) is not None:
            newer = {
                group: instance
                for group, instance in instances.items()
                if group not in known.instances or _age(instance) > _age(known.instances[group])
            }
            self._jobs[job] = replace(known, instances={**known.instances, **newer})

    def note_renewal(self, job: str, said_s: float) -> None:
        """Record that a lease is renewed."""
        if (known := self.jobs.get(job)) is not None:
            self._jobs[job] = replace(known, renewed_s=max(known.renewed_s, said_s))

    def forget(self, job: str) -> None:
        """Forget a job that asks to be withdrawn, or has another owner from now on."""
        self._jobs.pop(job, None)


def lost_registrations(acknowledged: Mapping[str, Acknowledged], registry: Registry) -> list[str]:
    """Jobs, profiles, flow groups and instances that were acknowledged, and are not what a controller knows."""
    wrong = []
    registered = {job.request.name: job for job in registry.jobs}
    for name, known in acknowledged.items():
        job = registered.get(name)
        if job is None:
            wrong.append(f"{name} was acknowledged and is not registered")
            continue
        ours, theirs = known.job, job.request
        if (ours.hosts, ours.gpus) != (theirs.hosts, theirs.gpus):
            wrong.append(f"{name} was acknowledged as {ours} and is registered as {theirs}")
        profile = Profile(theirs.profile.compute_s, theirs.profile.comm_start, theirs.profile.work)
        if profile not in (ours.profile, *known.asked):
            wrong.append(f"{name} was acknowledged {ours.profile}, and {profile} is known")
        groups = {group.name: [_ends(flow.five_tuple) for flow in group.flows] for group in job.flow_groups}
        for group, five_tuples in known.groups.items():
            if [_ends(on_the_wire(five_tuple)) for five_tuple in five_tuples] != groups.get(group):
                wrong.append(f"{name}/{group} was acknowledged with {five_tuples}, and has {groups.get(group)}")
        newest = registry.instances(name)
        wrong += [
            f"{name}/{group} was acknowledged {instance}, and has {newest.get(group)}"
            for group, instance in known.instances.items()
            if group not in newest or _age(newest[group]) < _age(instance)
        ]
    return wrong


def _age(instance: GroupInstance | FlowGroupInstance) -> tuple[int, bool]:
    """Return the key by which instances of a group are ordered."""
    return instance.iteration, instance.has_ended


def _after(profile: Profile | None, asked: tuple[Profile, ...]) -> tuple[Profile, ...]:
    """Return the profiles reported after one that is acknowledged now."""
    return asked[asked.index(profile) + 1 :] if profile is not None and profile in asked else asked


def _ends(five_tuple: WireFiveTuple) -> WireFiveTuple:
    """Return a 5-tuple without its source port, which the controller may change."""
    return replace(five_tuple, source_port=0)


class NotedConnection(Connection):
    """A connection of the host library that records acknowledgements in a ledger."""

    def __init__(
        self, ledger: Ledger, address: Sequence[str], owner_token: str | None, credentials: Credentials | None = None
    ) -> None:
        super().__init__(address, owner_token, credentials=credentials)
        self._ledger = ledger

    async def register_job(self, job: Job, age_s: float = 0.0) -> float:
        said_s = self._ledger.now_s()
        self._ledger.note_asked(job.name, job.profile)
        lease_s = await super().register_job(job, age_s)
        self._ledger.note_job(job, said_s)
        return lease_s

    async def register_flow_groups(
        self, job: str, flow_groups: Sequence[FlowGroup], task_graph: TaskGraph | None = None
    ) -> FlowGroupAssignments:
        groups = await super().register_flow_groups(job, flow_groups, task_graph)
        self._ledger.note_groups(job, groups)
        return groups

    async def report_profile(self, job: str, profile: Profile, task_graph: TaskGraph | None = None) -> None:
        self._ledger.note_asked(job, profile)
        await super().report_profile(job, profile, task_graph)
        self._ledger.note_profile(job, profile)

    async def start_flow_groups(self, job: str, instances: Mapping[str, GroupInstance]) -> None:
        said_s = self._ledger.now_s()
        await super().start_flow_groups(job, instances)
        self._ledger.note_renewal(job, said_s)
        self._ledger.note_instances(job, instances)

    async def heartbeat(self, job: str) -> None:
        said_s = self._ledger.now_s()
        await super().heartbeat(job)
        self._ledger.note_renewal(job, said_s)

    async def deregister(self, job: str) -> None:
        self._ledger.forget(job)
        await super().deregister(job)
