"""Which jobs links join."""

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from controller.trace_run.joining import joined_by_links
from controller.trace_run.network_job import NetworkJob, placed
from tests.trace_run.jobs import DUMBBELL, simulated


def going_by(links: list[int], number: int) -> NetworkJob:
    simple = simulated(str(number), 1.0, 1.0, 2.0, 1)
    training = placed(simple, {"h0": tuple(range(8)), "h2": tuple(range(8))}, DUMBBELL, 0.0)
    return NetworkJob(simple, training, 0, [tuple(links)], [()], np.zeros(10))


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=True), max_size=7))
def test_jobs_of_one_group_are_those_that_are_connected(links: list[list[int]]) -> None:
    jobs = [going_by(of_job, number) for number, of_job in enumerate(links)]
    graph = nx.Graph()
    graph.add_nodes_from(jobs)
    graph.add_edges_from((one, two) for one in jobs for two in jobs if set(one.flows.links) & set(two.flows.links))
    assert {frozenset(group) for group in joined_by_links(jobs)} == set(map(frozenset, nx.connected_components(graph)))
