"""What every tenant holds, against its quotas."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from controller.access.options import Quotas
from controller.registry.errors import ExhaustedError
from controller.registry.jobs import RegisteredFlowGroup, RegisteredJob

QuotasOf = Callable[[str], Quotas]
"""The quotas of a tenant."""


@dataclass(slots=True)
class Usage:
    """What one tenant holds. Its source ports are counted where they are assigned: ``SourcePorts``."""

    jobs: int = 0
    flow_groups: int = 0
    flows: int = 0
    work: float = 0.0


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

    def check_source_ports(self, tenant: str, ports: int) -> None:
        """Raise ExhaustedError where a tenant may not have so many source ports between two NICs."""
        _check("source_ports_per_pair", tenant, ports, self._quotas_of(tenant).source_ports_per_pair)


def _check(quota: str, tenant: str, wanted: float, most: float | None) -> None:
    if most is not None and wanted > most:
        of = f"tenant {tenant!r}" if tenant else "all jobs together"
        raise ExhaustedError(f"quota {quota}: {of} may have {most:,g}, this would be {wanted:,g}")


def _num_flows(groups: Sequence[RegisteredFlowGroup]) -> int:
    return sum(len(group.flows) for group in groups)


def _work_of(job: RegisteredJob) -> float:
    return 0.0 if job.request.profile is None else job.request.profile.work
