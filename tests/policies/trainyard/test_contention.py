import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from policies.trainyard.contention import candidate_components
from tests.policies.builders import make_job


@given(st.lists(st.frozensets(st.integers(0, 12), max_size=3), max_size=9))
def test_components_are_those_of_the_graph_of_jobs_and_links(links_of: list[frozenset[int]]) -> None:
    """Jobs are connected by the links on all their candidate paths; a job that sends nothing is in no component."""
    jobs = [
        make_job(str(number), [(1.0, tuple((link,) for link in sorted(links)))] if links else [])
        for number, links in enumerate(links_of)
    ]
    graph = nx.Graph()
    for job in jobs:
        graph.add_edges_from((job.name, link) for link in job.reachable_links.tolist())
    expected = {
        frozenset(node for node in component if isinstance(node, str)) for component in nx.connected_components(graph)
    }
    found = candidate_components(jobs)
    assert {frozenset(job.name for job in component) for component in found} == expected
    names = [[job.name for job in component] for component in found]
    assert all(of_one == sorted(of_one) for of_one in names)
    assert names == sorted(names)
