"""Jobs are grouped by the links and GPUs that they share."""

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from experiments.traces.component import contention_components
from experiments.traces.network_job import NetworkJob
from tests.experiments.traces.jobs import DUMBBELL, simulated
from workloads.traces.simulated_jobs import placed_job


def going_by(links: list[int], number: int, shared: int) -> NetworkJob:
    simple = simulated(str(number), 1.0, 1.0, 2.0, 1)
    training = placed_job(simple, {"h0": tuple(range(8)), "h2": tuple(range(8))}, DUMBBELL, 0.0)
    return NetworkJob(simple, training, 0, [tuple(links)], [()], np.zeros(10), shared)


@given(
    st.lists(st.tuples(st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=True), st.integers(0, 2)), max_size=7)
)
def test_components_are_the_connected_jobs(given: list[tuple[list[int], int]]) -> None:
    jobs = [going_by(links, number, shared) for number, (links, shared) in enumerate(given)]
    graph = nx.Graph()
    graph.add_nodes_from(jobs)
    graph.add_edges_from((one, two) for one in jobs for two in jobs if set(one.flows.links) & set(two.flows.links))
    graph.add_edges_from((one, two) for one in jobs for two in jobs if one.shared == two.shared != 0)
    assert {frozenset(group) for group in contention_components(jobs)} == set(
        map(frozenset, nx.connected_components(graph))
    )
