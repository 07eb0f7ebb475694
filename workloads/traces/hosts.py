"""The hosts of a trace as a cluster for job schedulers."""

from collections import defaultdict
from collections.abc import Mapping

from workloads.schedulers.cluster import Cluster
from workloads.traces.lingjun import Rack


def cluster_of(racks: Mapping[str, Rack], gpus_per_host: int) -> Cluster:
    """Racks under one group of aggregation switches are a pod; all in the order of their first hosts."""
    pods: defaultdict[tuple[str, str], defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for host, rack in racks.items():
        pods[rack.core, rack.aggregation][rack.tor].append(host)
    return Cluster(tuple(tuple(map(tuple, pod.values())) for pod in pods.values()), gpus_per_host)
