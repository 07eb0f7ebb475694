import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from policies.job import Job
from policies.plan import Plan
from policies.policy import decide
from policies.registry import find_policy, policy_names
from policies.snapshot import Snapshot
from policies.validation import InvalidPlanError, check_plan, check_snapshot
from tests.policies.builders import GBPS, make_job, make_links, snapshots
from topologies.paths import Paths

ONE_LINK = ((0,),)
SOUND = Snapshot(0.0, make_links(GBPS), (make_job("a", [(1e9, ONE_LINK)]),))


@given(snapshots())
def test_sound_snapshots_pass(snapshot: Snapshot) -> None:
    check_snapshot(snapshot)


@pytest.mark.parametrize("rate_bps", [0.0, -1.0, math.nan, math.inf])
def test_bad_rate_names_the_link(rate_bps: float) -> None:
    with pytest.raises(ValueError, match=r"links\[1\]: rate_bps"):
        check_snapshot(replace(SOUND, links=make_links(GBPS, rate_bps)))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("arrival_s", math.nan),
        ("compute_s", math.nan),
        ("compute_s", -1.0),
        ("compute_s", math.inf),
        ("comm_start", math.nan),
        ("comm_start", 1.5),
        ("work", math.nan),
        ("work", -1.0),
    ],
)
def test_bad_value_names_job_and_field(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"job 'a': {field}"):
        make_job("a", [(1e9, ONE_LINK)], **{field: value})


@pytest.mark.parametrize("gpus", [0, math.nan])
def test_jobs_have_gpus(gpus: int) -> None:
    with pytest.raises(ValueError, match="job 'a': gpus"):
        replace(SOUND.jobs[0], gpus=gpus)


@pytest.mark.parametrize("size_bytes", [math.nan, -1.0, math.inf])
def test_bad_size_names_the_flow(size_bytes: float) -> None:
    with pytest.raises(ValueError, match="job 'a', group 'all-reduce', flow 1: size_bytes"):
        make_job("a", [(1e9, ONE_LINK), (size_bytes, ONE_LINK)])


def with_flow(**changes: Any) -> Job:
    job = SOUND.jobs[0]
    return replace(job, flow_groups=(replace(job.flow_groups[0], flows=(replace(job.flows[0], **changes),)),))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"candidates": Paths(())}, "candidates must name at least one path"),
        ({"candidates": Paths(((0,), ()))}, "candidates and hashed_path must not hold a path without links"),
        ({"hashed_path": ()}, "candidates and hashed_path must not hold a path without links"),
        ({"hashed_path": (-1,)}, "hashed_path and host_links must not name negative links"),
        ({"offset_s": math.nan}, "offset_s must be finite"),
        ({"offset_s": -math.inf}, "offset_s must be finite"),
    ],
)
def test_bad_fields_name_the_flow(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"job 'a', group 'all-reduce', flow 0: {message}"):
        with_flow(**changes)


@pytest.mark.parametrize(
    "changes", [{"candidates": Paths(((0,), (0, 7)))}, {"hashed_path": (7,)}, {"host_links": (7,)}]
)
def test_unknown_links_name_the_job(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="job 'a': candidates, hashed_path or host_links name link 7, there"):
        check_snapshot(replace(SOUND, jobs=(with_flow(**changes),)))


def test_names_that_repeat_are_refused() -> None:
    with pytest.raises(ValueError, match="job 'a': another job has the same name"):
        check_snapshot(replace(SOUND, jobs=SOUND.jobs * 2))
    with pytest.raises(ValueError, match="job 'a': two flows have the same key"):
        replace(SOUND.jobs[0], flow_groups=SOUND.jobs[0].flow_groups * 2)
    with pytest.raises(ValueError, match=r"job 'b': flow .*'a'.* belongs to another job"):
        replace(SOUND.jobs[0], name="b")


def test_levels_there_must_be() -> None:
    with pytest.raises(ValueError, match="num_levels must be at least 1"):
        check_snapshot(replace(SOUND, num_levels=0))


# ---- Plans -----------------------------------------------------------------------------------------------------------

TWO_PATHS = Snapshot(
    0.0, make_links(*(GBPS,) * 4), tuple(make_job(name, [(1e9, ((0, 1), (2, 3, 1)))]) for name in ("a", "b"))
)
KEY = TWO_PATHS.jobs[0].flows[0].key


@pytest.mark.parametrize("policy", policy_names())
@given(snapshots())
def test_plans_of_our_policies_are_valid(policy: str, snapshot: Snapshot) -> None:
    check_plan(decide(find_policy(policy), snapshot), snapshot)


def _with_job(plan: Plan, **changes: Any) -> Plan:
    return replace(plan, jobs=(replace(plan.jobs[0], **changes), *plan.jobs[1:]))


def _with_flow(plan: Plan, **changes: Any) -> Plan:
    return replace(plan, flows={**plan.flows, KEY: plan.flows[KEY]._replace(**changes)})


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (lambda _: None, "expected a Plan, got NoneType"),
        (lambda plan: replace(plan, jobs=plan.jobs[:1]), "job '[ab]': is missing"),
        (lambda plan: replace(plan, jobs=(plan.jobs[0], *plan.jobs)), "job '[ab]': appears twice"),
        (lambda plan: _with_job(plan, name="c"), "job 'c': appears twice, or is not in the Snapshot"),
        (lambda plan: _with_job(plan, rank=1), "rank must be 0"),
        (lambda plan: _with_job(plan, rank=math.nan), "rank must be 0"),
        (lambda plan: _with_job(plan, level=8), "level must lie between 0 and 7"),
        (lambda plan: _with_job(plan, level=-1), "level must lie between 0 and 7"),
        (lambda plan: _with_job(plan, level=1.5), "level must lie between 0 and 7"),
        (lambda plan: _with_job(plan, priority=math.nan), "priority must be a number"),
        (lambda plan: _with_job(plan, time_shift_s=math.nan), "time_shift_s must be finite"),
        (lambda plan: replace(plan, flows={}), "is missing"),
        (lambda plan: replace(plan, flows={**plan.flows, KEY._replace(flow=7): plan.flows[KEY]}), "not in the Snap"),
        (lambda plan: _with_flow(plan, level=8), "level must lie between 0 and 7"),
        (lambda plan: _with_flow(plan, level=math.nan), "level must lie between 0 and 7"),
        (lambda plan: _with_flow(plan, order=-1), "order be a whole number"),
        (lambda plan: _with_flow(plan, path=(0, 3)), r"path \(0, 3\) is not one of its candidates"),
        (lambda plan: _with_flow(plan, path=(0,)), "not one of its candidates"),
        (lambda plan: _with_flow(plan, path=(2, 3, 1, 0)), "not one of its candidates"),
        (lambda plan: _with_flow(plan, path=(0.5, 1)), "not one of its candidates"),
        (lambda plan: _with_flow(plan, path=()), "not one of its candidates"),
    ],
)
def test_invalid_plans_name_the_job_or_flow_and_the_field(spoil: Callable[[Plan], Plan], named: str) -> None:
    plan = decide(find_policy("crux"), TWO_PATHS)
    check_plan(plan, TWO_PATHS)
    with pytest.raises(InvalidPlanError, match=named):
        check_plan(spoil(plan), TWO_PATHS)
