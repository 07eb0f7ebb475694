"""The flow groups of jobs by name, which small changes of a large job keep up to date cheaply."""

from dataclasses import dataclass, field

from controller.registry.jobs import RegisteredFlowGroup, RegisteredJob


@dataclass(slots=True)
class JobGroups:
    """The flow groups of one job by name, their flows, and the bytes that these send in an iteration."""

    groups: tuple[RegisteredFlowGroup, ...] = ()
    by_name: dict[str, RegisteredFlowGroup] = field(default_factory=dict)
    num_flows: int = 0
    sent_bytes: int = 0


class GroupIndex:
    """An index of the flow groups of every job, brought up to date when it is asked for."""

    def __init__(self) -> None:
        self._by_job: dict[str, JobGroups] = {}

    def of(self, job: RegisteredJob) -> JobGroups:
        """The groups of a job."""
        indexed, groups = self._by_job.get(job.request.name), job.flow_groups
        if indexed is not None and indexed.groups is groups:
            return indexed
        if indexed is None or groups[: len(indexed.groups)] != indexed.groups:
            indexed = self._by_job[job.request.name] = JobGroups()
        for group in groups[len(indexed.groups) :]:
            indexed.by_name[group.name] = group
            indexed.num_flows += len(group.flows)
            indexed.sent_bytes += sum(flow.size_bytes for flow in group.flows)
        indexed.groups = groups
        return indexed

    def drop(self, job: str) -> None:
        """Forget a job."""
        self._by_job.pop(job, None)
