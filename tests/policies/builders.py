"""Small Snapshots for tests, made by hand and at random."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from policies.flows import Flow, FlowGroup, FlowKey
from policies.job import Job, Profile
from policies.snapshot import Links, LinkState, OrderKeeper, Snapshot
from policies.task_graph import Computation, Task, TaskGraph, Transfer
from topologies.addressing import FLOW_DESTINATION_PORT, UDP_PROTOCOL, FiveTuple
from topologies.fabric import Path
from topologies.paths import Paths

GBPS = 1e9
_FIVE_TUPLE = FiveTuple(1, 2, UDP_PROTOCOL, 50_000, FLOW_DESTINATION_PORT)


def make_links(*rates_bps: float, order_keeper: OrderKeeper = OrderKeeper.SWITCH_QUEUE) -> Links:
    return Links(LinkState(rate_bps, order_keeper) for rate_bps in rates_bps)


def make_job(
    name: str,
    flows: Sequence[tuple[float, tuple[Path, ...]]],
    *,
    compute_s: float = 1.0,
    comm_start: float = 1.0,
    work: float = 1.0,
    arrival_s: float = 0.0,
) -> Job:
    """A job whose flows are given as (bytes, candidate paths); the hash gives every flow its last candidate."""
    made = tuple(
        Flow(FlowKey(name, "all-reduce", number), _FIVE_TUPLE, size_bytes, 0.0, Paths(candidates), candidates[-1])
        for number, (size_bytes, candidates) in enumerate(flows)
    )
    return Job(name, arrival_s, 1, Profile(compute_s, comm_start, work), (FlowGroup("all-reduce", made),))


def told(job: Job, step_s: float = 0.1) -> Job:
    """The same job with a task graph: it computes, sends and uses one ideal finish of a group after the other."""
    tasks: list[Task] = []
    number = 0
    for group in job.flow_groups:
        numbers = range(number, number := number + len(group.flows))
        made: tuple[int, ...] = ()
        used: tuple[int, ...] = ()
        for offset_s in sorted({flow.offset_s for flow in group.flows}):
            sent = tuple(at for at, flow in zip(numbers, group.flows, strict=True) if flow.offset_s == offset_s)
            tasks += [Computation(step_s, made), Transfer(sent, (len(tasks),))]
            made = (len(tasks) - 2,)
            tasks.append(Computation(step_s, (*used, len(tasks) - 1)))
            used = (len(tasks) - 1,)
    return replace(job, task_graph=TaskGraph(tuple(tasks)))


def scaled(snapshot: Snapshot, factor: float) -> Snapshot:
    """So many times the bytes at so many times the rates; the plan in force stays."""

    def scaled_job(job: Job) -> Job:
        groups = tuple(
            replace(group, flows=tuple(replace(flow, size_bytes=factor * flow.size_bytes) for flow in group.flows))
            for group in job.flow_groups
        )
        return replace(job, flow_groups=groups)

    links = Links(replace(link, rate_bps=factor * link.rate_bps) for link in snapshot.links)
    return replace(snapshot, links=links, jobs=tuple(map(scaled_job, snapshot.jobs)))


POWERS = st.sampled_from([-30, -1, 1, 30])
"""Of two, to scale by: no rounding, and as far as a flow still has a byte."""

_NUM_LINKS = 6
_PATHS = st.lists(st.integers(0, _NUM_LINKS - 1), min_size=1, max_size=3, unique=True).map(tuple)
_FLOWS = st.lists(
    st.tuples(
        st.integers(0, 4).map(lambda size: size * 1e9), st.lists(_PATHS, min_size=1, max_size=3, unique=True).map(tuple)
    ),
    max_size=3,
)


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """Up to five jobs on six links; sizes and times are coarse, so that ties are common."""
    link_states = st.builds(LinkState, st.sampled_from([GBPS, 2 * GBPS, 10 * GBPS]), st.sampled_from(OrderKeeper))
    jobs = tuple(
        make_job(
            f"job-{number}",
            draw(_FLOWS),
            compute_s=draw(st.integers(0, 4)),
            comm_start=draw(st.sampled_from([0.0, 0.5, 1.0])),
            work=draw(st.integers(0, 3)),
            arrival_s=draw(st.integers(0, 2)),
        )
        for number in range(draw(st.integers(0, 5)))
    )
    return Snapshot(
        time_s=0.0,
        links=Links(draw(st.lists(link_states, min_size=_NUM_LINKS, max_size=_NUM_LINKS))),
        jobs=jobs,
        num_levels=draw(st.integers(1, 8)),
        seed=draw(st.integers(0, 3)),
    )
