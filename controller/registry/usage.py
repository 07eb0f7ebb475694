"""What every tenant holds, against its quotas."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from controller.access.options import Quotas
from controller.registry.errors import ExhaustedError
from controller.registry.jobs import RegisteredFlow, RegisteredFlowGroup, RegisteredJob

QuotasOf = Callable[[str], Quotas]
"""The quotas of a tenant."""

_Pair = tuple[int, int]


@dataclass(slots=True)
class Usage:
    """What one tenant holds; ``ports`` counts the 5-tuples between two NICs, by their addresses."""

    jobs: int = 0
    flow_groups: int = 0
    flows: int = 0
    work: float = 0.0
    ports: Counter[_Pair] = field(default_factory=Counter)


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
                usage.work += sign * _work_of(job)
                other = after if job is before else before
                for flow in _others(job.flow_groups, () if other is None else other.flow_groups):
                    usage.flows += sign
                    pair = _pair_of(flow)
                    usage.ports[pair] += sign
                    if not usage.ports[pair]:
                        del usage.ports[pair]
        if before is not None and self._by_tenant[before.tenant].jobs == 0:
            del self._by_tenant[before.tenant]  # with what is left of rounding and of pairs

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
        _check("flows", tenant, usage.flows + sum(len(group.flows) for group in groups), quotas.flows)
        if quotas.source_ports_per_pair is not None:
            new = Counter(_pair_of(flow) for group in groups for flow in group.flows)
            for pair, count in new.items():
                _check("source_ports_per_pair", tenant, usage.ports[pair] + count, quotas.source_ports_per_pair)


def _check(quota: str, tenant: str, wanted: float, most: float | None) -> None:
    if most is not None and wanted > most:
        of = f"tenant {tenant!r}" if tenant else "all jobs together"
        raise ExhaustedError(f"quota {quota}: {of} may have {most:,g}, this would be {wanted:,g}")


def _others(groups: Sequence[RegisteredFlowGroup], than: Sequence[RegisteredFlowGroup]) -> Iterable[RegisteredFlow]:
    """The flows of groups that are not the same at the same place of the others."""
    same = min(len(groups), len(than))
    if groups[:same] == than[:same]:  # the same objects, mostly: quick
        groups, than = groups[same:], ()
    for position, group in enumerate(groups):
        if position >= len(than) or than[position] is not group:
            yield from group.flows


def _pair_of(flow: RegisteredFlow) -> _Pair:
    return flow.five_tuple.source_address, flow.five_tuple.destination_address


def _work_of(job: RegisteredJob) -> float:
    return 0.0 if job.request.profile is None else job.request.profile.work
