"""Odd Snapshots: every policy returns a complete Plan of finite numbers, or names the job and field it refuses."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from policies.job import Job
from policies.policy import decide
from policies.registry import find_policy, policy_names
from policies.snapshot import Links, LinkState, Snapshot
from tests.policies.builders import GBPS, make_job, make_links
from topologies.fabric import Path

NAMES = pytest.mark.parametrize("name", policy_names())
ONE_LINK: tuple[Path, ...] = ((0,),)
LINKS: Links = make_links(GBPS, GBPS)
USUAL = make_job("usual", [(1e9, ONE_LINK), (2e9, ((0,), (1,)))], work=3.0)


def with_offsets(*offsets_s: float) -> Job:
    job = make_job("a", [(1e9, ONE_LINK)] * len(offsets_s))
    (group,) = job.flow_groups
    flows = tuple(replace(flow, offset_s=offset_s) for flow, offset_s in zip(group.flows, offsets_s, strict=True))
    return replace(job, flow_groups=(replace(group, flows=flows),))


def many(count: int, *, size_bytes: float = 1e9, compute_s: float = 1.0, work: float = 1.0) -> tuple[Job, ...]:
    return tuple(
        make_job(f"job-{number}", [(size_bytes, ONE_LINK)], compute_s=compute_s, work=work) for number in range(count)
    )


SOUND = {
    "no jobs": Snapshot(0.0, LINKS, ()),
    "no groups": Snapshot(0.0, LINKS, (replace(make_job("a", []), flow_groups=()), USUAL)),
    "no traffic": Snapshot(0.0, LINKS, (make_job("a", []), make_job("b", [(0.0, ONE_LINK)]))),
    "less than a bit": Snapshot(0.0, LINKS, (make_job("a", [(5e-324, ONE_LINK)], compute_s=0.0), USUAL)),
    "less than a bit elsewhere": Snapshot(0.0, LINKS, (make_job("a", [(1e9, ONE_LINK), (1e-300, ((1,),))]),)),
    "no computation": Snapshot(0.0, LINKS, (make_job("a", [(1e9, ONE_LINK)], compute_s=0.0, work=0.0), USUAL)),
    "nobody computes": Snapshot(0.0, LINKS, many(3, compute_s=0.0, work=0.0)),
    "next to no time": Snapshot(0.0, LINKS, (make_job("a", [(1.0, ONE_LINK)], compute_s=5e-324, work=5e-324), USUAL)),
    "the most work": Snapshot(0.0, LINKS, many(40, size_bytes=1.0, compute_s=0.0, work=1e100)),
    "one GPU": Snapshot(0.0, LINKS, (replace(USUAL, gpus=1),)),
    "more levels than jobs": Snapshot(0.0, LINKS, many(2), num_levels=1000),
    "one level": Snapshot(0.0, LINKS, many(40), num_levels=1),
    "offsets out of order": Snapshot(0.0, LINKS, (with_offsets(2.0, 0.0, -1.0), USUAL)),
    "offsets as far apart as can be": Snapshot(0.0, LINKS, (with_offsets(-1.7e308, 1.7e308), USUAL)),
    "a link twice": Snapshot(0.0, LINKS, (make_job("a", [(1e9, ((0, 0),))]), USUAL)),
    "a path twice": Snapshot(0.0, LINKS, (make_job("a", [(1e9, ((0,), (0,)))]), USUAL)),
}


@pytest.mark.slow
@NAMES
@pytest.mark.parametrize("snapshot", SOUND.values(), ids=SOUND)
def test_what_is_sound_however_odd_has_a_plan(name: str, snapshot: Snapshot) -> None:
    plan = decide(find_policy(name), snapshot)
    assert [job.rank for job in plan.jobs] == list(range(len(snapshot.jobs)))
    assert plan.flows.keys() == {flow.key for job in snapshot.jobs for flow in job.flows}
    assert all(0 <= flow.level < snapshot.num_levels for flow in plan.flows.values())
    figures = [(job.intensity, job.correction_factor, job.priority, job.time_shift_s) for job in plan.jobs]
    assert all(value is None or math.isfinite(value) for values in figures for value in values)


@NAMES
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Snapshot(0.0, make_links(GBPS, 0.0), (USUAL,)), r"links\[1\]: rate_bps"),
        (lambda: Snapshot(0.0, Links((LinkState(math.nan, LINKS[0].order_keeper),)), ()), r"links\[0\]: rate_bps"),
        (lambda: Snapshot(0.0, make_links(5e-324, GBPS), (USUAL,)), "job 'usual': size_bytes"),
        (lambda: Snapshot(0.0, LINKS, (make_job("a", [(1e308, ONE_LINK)] * 9),)), "job 'a': size_bytes"),
        (lambda: Snapshot(0.0, LINKS, (with_offsets(0.0, math.nan),)), "job 'a'.*flow 1: offset_s"),
        (lambda: Snapshot(0.0, LINKS, (make_job("a", [], work=1e101),)), "job 'a': work must lie between 0 and"),
        (lambda: Snapshot(0.0, LINKS, (USUAL,), num_levels=0), "num_levels must be at least 1"),
    ],
)
def test_what_cannot_be_is_refused_by_job_or_link_and_field(
    name: str, make: Callable[[], Snapshot], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        decide(find_policy(name), make())
