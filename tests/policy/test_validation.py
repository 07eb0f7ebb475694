import math
from dataclasses import replace

import pytest
from hypothesis import given

from controller.policy.snapshot import Snapshot
from controller.policy.validation import check
from tests.policy.builders import GBPS, make_job, make_links, snapshots

ONE_LINK = ((0,),)
SOUND = Snapshot(0.0, make_links(GBPS), (make_job("a", [(1e9, ONE_LINK)]),))


@given(snapshots())
def test_sound_snapshots_pass(snapshot: Snapshot) -> None:
    check(snapshot)


@pytest.mark.parametrize("rate_bps", [0.0, -1.0, math.nan, math.inf])
def test_bad_rate_names_the_link(rate_bps: float) -> None:
    with pytest.raises(ValueError, match=r"links\[1\]: rate_bps"):
        check(replace(SOUND, links=make_links(GBPS, rate_bps)))


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
    job = make_job("a", [(1e9, ONE_LINK)], **{field: value})
    with pytest.raises(ValueError, match=f"job 'a': {field}"):
        check(replace(SOUND, jobs=(job,)))


@pytest.mark.parametrize("size_bytes", [math.nan, -1.0, math.inf])
def test_bad_size_names_the_flow(size_bytes: float) -> None:
    job = make_job("a", [(1e9, ONE_LINK), (size_bytes, ONE_LINK)])
    with pytest.raises(ValueError, match="job 'a', group 'all-reduce', flow 1: size_bytes"):
        check(replace(SOUND, jobs=(job,)))


@pytest.mark.parametrize(
    ("candidates", "message"),
    [((), "at least one path"), (((0,), ()), "without links"), (((0,), (0, 7)), r"unknown links \[7\]")],
)
def test_bad_candidates_name_the_flow(candidates: tuple[tuple[int, ...], ...], message: str) -> None:
    (flow,) = SOUND.jobs[0].flows
    group = replace(SOUND.jobs[0].flow_groups[0], flows=(replace(flow, candidates=candidates),))
    with pytest.raises(ValueError, match=f"job 'a', group 'all-reduce', flow 0: .*{message}"):
        check(replace(SOUND, jobs=(replace(SOUND.jobs[0], flow_groups=(group,)),)))


def test_names_that_repeat_are_refused() -> None:
    with pytest.raises(ValueError, match="job 'a': its name is taken"):
        check(replace(SOUND, jobs=SOUND.jobs * 2))
    twice = replace(SOUND.jobs[0], flow_groups=SOUND.jobs[0].flow_groups * 2)
    with pytest.raises(ValueError, match="names two flows"):
        check(replace(SOUND, jobs=(twice,)))


def test_levels_there_must_be() -> None:
    with pytest.raises(ValueError, match="num_levels must be at least 1"):
        check(replace(SOUND, num_levels=0))
