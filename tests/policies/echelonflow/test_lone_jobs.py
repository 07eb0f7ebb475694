"""What is known of jobs alone: what slows them; and it is kept while they live, for one fabric."""

from dataclasses import replace

from policies.echelonflow import lone_jobs
from policies.echelonflow.lone_jobs import lone_job
from policies.flows import FlowKey
from policies.plan import FlowPlan
from policies.task_graph import Computation, TaskGraph, Transfer
from tests.policies.builders import GBPS, make_job, make_links, told


def test_what_is_known_goes_with_its_job_and_with_its_fabric() -> None:
    links, before = make_links(GBPS), len(lone_jobs._lone_jobs)
    job = told(make_job("a", [(1e9, ((0,),))]))
    known = lone_job(job, links)
    assert lone_job(job, links) is known
    assert lone_job(job, make_links(GBPS)) is not known
    del job
    assert len(lone_jobs._lone_jobs) == before


def test_a_job_is_slowed_where_what_it_waits_for_goes_second() -> None:
    """Its first flow takes half a second, and computation waits for it; the second one takes a second."""
    graph = TaskGraph((Computation(1.0), Transfer((0,), (0,)), Transfer((1,), (0,)), Computation(10.0, (1,))))
    job = replace(make_job("a", [(GBPS / 16, ((0,),)), (GBPS / 8, ((0,),))]), task_graph=graph)

    def is_slowed(*levels: int) -> bool:
        plans = {FlowKey("a", "all-reduce", flow): FlowPlan(None, level, 0) for flow, level in enumerate(levels)}
        return lone_job(job, links).is_slowed(job, plans)

    links = make_links(GBPS)
    assert not is_slowed(3, 3)
    assert not is_slowed(7, 6)
    assert is_slowed(6, 7)
