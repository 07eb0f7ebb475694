"""What every tenant holds, against its quotas."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from controller.access.options import Quotas
from controller.registry.errors import ExhaustedError
from controller.registry.jobs import RegisteredFlowGroup, RegisteredJob
from policies.task_graph import TaskGraph

MAX_TASKS_OF_ALL = 4_000_000
"""Of the task graphs of all jobs: bounds the memory."""

QuotasOf = Callable[[str], Quotas]
"""The quotas of a tenant."""


@dataclass(slots=True)
class Usage:
    """What one tenant holds. Its source ports are counted where they are assigned: ``SourcePorts``."""

    jobs: int = 0
    flow_groups: int = 0
    flows: int = 0
    work: float = 0.0
    tasks: int = 0


class TenantUsage:
    """What all tenants hold, kept up to date by ``replace``."""

    def __init__(self, quotas_of: QuotasOf) -> None:
        self._quotas_of = quotas_of
        self._by_tenant: dict[str, Usage] = {}

    def of(self, tenant: str) -> Usage:
        """What a tenant holds."""
        return self._by_tenant.get(tenant) or Usage()

    def replace(self, before: RegisteredJob | None, after: RegisteredJob | None) -> None:
        """Take note that a job is another now; None: it is not registered."""
        for job, sign in ((before, -1), (after, 1)):
            if job is not None:
                usage = self._by_tenant.setdefault(job.tenant, Usage())
                usage.jobs += sign
                usage.flow_groups += sign * len(job.flow_groups)
                usage.flows += sign * _num_flows(job.flow_groups)
                usage.tasks += sign * _num_tasks(job.task_graph)
                usage.work += sign * _work_of(job)
        if before is not None and self._by_tenant[before.tenant].jobs == 0:
            del self._by_tenant[before.tenant]  # with what is left of rounding

    def check_job(self, tenant: str, before: RegisteredJob | None, work: float) -> None:
        """Raise ExhaustedError where a tenant may not have one more job, or one that claims this work."""
        quotas, usage = self._quotas_of(tenant), self.of(tenant)
        if before is None:
            _check("jobs", tenant, usage.jobs + 1, quotas.jobs)
        _check("work", tenant, usage.work - (0.0 if before is None else _work_of(before)) + work, quotas.work)

    def check_flow_groups(self, tenant: str, groups: Sequence[RegisteredFlowGroup]) -> None:
        """Raise ExhaustedError where a tenant may not have these flow groups besides what it has."""
        quotas, usage = self._quotas_of(tenant), self.of(tenant)
        _check("flow_groups", tenant, usage.flow_groups + len(groups), quotas.flow_groups)
        _check("flows", tenant, usage.flows + _num_flows(groups), quotas.flows)

    def check_task_graph(self, job: RegisteredJob, graph: TaskGraph | None) -> None:
        """Raise ExhaustedError where a job's tenant may not have this task graph instead of what the job has."""
        more = _num_tasks(graph) - _num_tasks(job.task_graph)
        _check("tasks", job.tenant, self.of(job.tenant).tasks + more, self._quotas_of(job.tenant).tasks)
        if more > 0 and sum(usage.tasks for usage in self._by_tenant.values()) + more > MAX_TASKS_OF_ALL:
            raise ExhaustedError(f"task_graph.tasks: there is no room for more than {MAX_TASKS_OF_ALL:,} altogether")

    def check_source_ports(self, tenant: str, ports: int) -> None:
        """Raise ExhaustedError where a tenant may not have so many source ports between two NICs."""
        _check("source_ports_per_pair", tenant, ports, self._quotas_of(tenant).source_ports_per_pair)


def _check(quota: str, tenant: str, wanted: float, most: float | None) -> None:
    if most is not None and wanted > most:
        of = f"tenant {tenant!r}" if tenant else "all jobs together"
        raise ExhaustedError(f"quota {quota}: {of} may have {most:,g}, this would be {wanted:,g}")


def _num_flows(groups: Sequence[RegisteredFlowGroup]) -> int:
    return sum(len(group.flows) for group in groups)


def _num_tasks(graph: TaskGraph | None) -> int:
    return 0 if graph is None else len(graph.tasks)


def _work_of(job: RegisteredJob) -> float:
    return 0.0 if job.request.profile is None else job.request.profile.work
