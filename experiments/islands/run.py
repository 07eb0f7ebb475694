"""A run of the tenants of a cluster under a policy: how fast each is, and how much of its devices it uses.

Each tenant registers its template with the controller's own code, and the policy decides once for all of them. They
then play their runs by the fluid model (``policies.model``), all the time.
"""

from dataclasses import dataclass

from experiments.islands.tenants import LARGEST_START_S, Cluster, tenants
from experiments.scenarios.modelled import ModelledScenario
from policies.policy import decide
from policies.registry import find_policy
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from workloads.isolated_run import run_isolated
from workloads.measures import Window

WARM_UP, MEASURED = 2, 4
"""Runs of the slowest tenant, alone, before the window and in it."""


@dataclass(frozen=True, slots=True)
class TenantMeasured:
    """A tenant: its runs in the window over those that it could do alone, with its flows on the best paths.

    ``alone_s`` is how long such a run takes, ``compute_s`` how long one without communication time.
    """

    name: str
    kind: str
    flows: int
    compute_s: float
    alone_s: float
    share: float


@dataclass(frozen=True, slots=True)
class ClusterMeasured:
    """The tenants in order of their numbers, and the share of the window in which devices compute.

    ``ideal_utilisation`` is that share if each tenant were as fast as alone.
    """

    tenants: tuple[TenantMeasured, ...]
    utilisation: float
    ideal_utilisation: float


def measure(cluster: Cluster, policy: str, seed: int) -> ClusterMeasured:
    """Run the tenants of a cluster; the seed is that of their starts, of the fabric's hash and of the policy.

    Raises ValueError where the policy cannot decide.
    """
    found = tenants(cluster, seed)
    jobs = {tenant: tenant.job() for tenant in found}
    fabric = cluster.topology.build()
    routing = Routing(fabric, hash_multipliers(fabric.switches, seed))
    alone_s = {tenant: run_isolated(job, routing).iteration_time_s for tenant, job in jobs.items()}
    from_s = LARGEST_START_S + WARM_UP * max(alone_s.values())
    window = Window(from_s, from_s + MEASURED * max(alone_s.values()))
    modelled = ModelledScenario.of_jobs(tuple(jobs.values()), routing, seed)
    iterations = modelled.iterations(decide(find_policy(policy), modelled.snapshot), window)
    by_name = dict(zip((job.name for job in modelled.jobs), iterations.tolist(), strict=True))
    measured = tuple(
        TenantMeasured(
            *(tenant.name, tenant.kind, sum(len(group.flows) for group in tenant.template.groups)),
            *(tenant.template.profile.compute_s, alone_s[tenant]),
            by_name[job.name] * alone_s[tenant] / window.length_s,
        )
        for tenant, job in jobs.items()
    )
    allocated = sum(job.gpus for job in jobs.values())
    ideal = sum(job.computing_gpu_seconds / alone_s[tenant] for tenant, job in jobs.items()) / allocated
    return ClusterMeasured(measured, modelled.utilisation_of(iterations, window), ideal)
