"""Placement by affinity: the same host, then the same switch, as the cluster that Crux measured (section 6.1)."""

from collections.abc import Sequence

from workloads.schedulers.cluster import Allocation, ClusterState, GpuRequest


def affine_hosts(by_switch: Sequence[Sequence[str]], count: int) -> tuple[str, ...]:
    """So many of these hosts: all of one switch where that can be, the one with the fewest that suffices.

    Else of as few switches as can be, those with most hosts first; fewer than asked for where there are no more.
    """
    enough = [hosts for hosts in by_switch if len(hosts) >= count]
    order = [min(enough, key=len)] if enough else sorted(by_switch, key=len, reverse=True)
    return tuple(host for hosts in order for host in hosts)[:count]


def place_by_affinity(state: ClusterState, request: GpuRequest) -> Allocation | None:
    """Hosts of as few racks as can be; of those in question, hosts with the fewest GPUs free that suffice.

    For one host the rack does not matter: it is the fullest that suffices, of equally full ones one in a fuller rack.
    """
    candidates = [
        sorted(state.having(rack, request.gpus_per_host), key=lambda host: len(state.free[host]))
        for rack in state.cluster.racks
    ]
    if request.num_hosts == 1:
        fullest = min(
            (rack for rack in candidates if rack), key=lambda rack: (len(state.free[rack[0]]), len(rack)), default=[]
        )
        hosts = tuple(fullest[:1])
    else:
        hosts = affine_hosts(candidates, request.num_hosts)
    if len(hosts) < request.num_hosts:
        return None
    return {host: state.free[host][: request.gpus_per_host] for host in hosts}
