"""Small clusters and requests for them."""

from hypothesis import strategies as st

from workloads.schedulers.cluster import Cluster, ClusterState, GpuRequest

PODS = ((("a0", "a1"), ("b0", "b1", "b2")), (("c0", "c1", "c2", "c3"),))
CLUSTER = Cluster(PODS, gpus_per_host=8)
"""Two pods: racks of two and three hosts, and one of four; eight GPUs each."""


def ask(num_hosts: int, gpus_per_host: int, name: str = "job", **times: object) -> GpuRequest:
    return GpuRequest(name, num_hosts, gpus_per_host, **times)  # type: ignore[arg-type]


def state_without(**taken: tuple[int, ...]) -> ClusterState:
    """Return the cluster with these GPUs allocated, by host."""
    return ClusterState.empty(CLUSTER).take(taken)


def rack_of(host: str) -> str:
    return host[0]


states = st.dictionaries(
    st.sampled_from(CLUSTER.hosts), st.sets(st.integers(0, 7), min_size=1).map(lambda gpus: tuple(sorted(gpus)))
).map(lambda taken: ClusterState.empty(CLUSTER).take(taken))
"""A cluster with any GPUs allocated."""

requests = st.builds(ask, st.integers(1, 10), st.integers(1, 8))
