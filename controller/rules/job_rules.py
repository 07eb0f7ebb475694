"""Make rules for jobs without known flows: each has one level for all its traffic, which is counted."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from policies.job import Job
from policies.plan import Plan
from policies.snapshot import Snapshot
from topologies.addressing import Address, Prefix
from topologies.fabric import Fabric


@dataclass(frozen=True, slots=True, order=True)
class JobRule:
    """The rule of one switch for all that a NIC behind it sends to the NICs of a host that are in ``destination``.

    It marks ``level`` and counts. Flow rules take precedence. A job that ``is_measured`` has a level for itself.
    """

    switch: str
    source_address: Address
    destination_host: str
    destination: Prefix
    level: int
    is_measured: bool = False


def job_rules(plan: Plan, snapshot: Snapshot, fabric: Fabric) -> dict[str, tuple[JobRule, ...]]:
    """Return by switch the rules of the jobs that have described their hosts alone, at the switches of these hosts.

    The job that is being measured has the level above those of all policies. The others have that of the Plan, or 0
    until something is known of them.
    """
    levels = levels_in_force(plan, snapshot)
    rules: defaultdict[str, list[JobRule]] = defaultdict(list)
    for job in snapshot.jobs:
        for address, host in host_traffic(job, fabric):
            switch = fabric.links[fabric.nic_by_address[address].link].destination
            if switch in fabric.ordinary_switches:
                continue  # nobody marks there, nor counts
            rules[switch] += (
                JobRule(switch, address, host, prefix, levels[job.name], job.name == snapshot.profiled)
                for prefix in fabric.host_prefixes[host]
            )
    return {switch: tuple(of_switch) for switch, of_switch in rules.items()}


def levels_in_force(plan: Plan, snapshot: Snapshot) -> dict[str, int]:
    """Return the level of each job's traffic: the Plan's, the top one while measured, 0 while nothing is known."""
    planned = {job.name: job.level for job in plan.jobs}
    levels = {job.name: planned[job.name] if job.flows or not job.measured_hosts else 0 for job in snapshot.jobs}
    return levels if snapshot.profiled is None else levels | {snapshot.profiled: snapshot.num_levels}


def host_traffic(job: Job, fabric: Fabric) -> Iterator[tuple[Address, str]]:
    """Iterate over the pairs of NIC address and host between which all unregistered traffic belongs to a job."""
    for source in job.measured_hosts:
        for nic in fabric.nics[source]:
            for destination in job.measured_hosts:
                if destination != source:
                    yield nic.address, destination
