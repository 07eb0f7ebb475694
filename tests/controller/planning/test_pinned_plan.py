"""Pins change what they name and nothing else, never make a Plan invalid, and never apply once they have expired."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.planning.decision_pipeline import DecisionPipeline
from controller.planning.pinned_plan import held_pins, with_pins
from policies.flows import FlowKey
from policies.pins import LevelPin, PathPin, Pin
from policies.registry import find_policy
from policies.snapshot import Snapshot
from policies.validation import check_plan
from tests.policies.builders import snapshots

CRUX, ECMP = find_policy("crux"), find_policy("ecmp")


@st.composite
def pinned_snapshots(draw: st.DrawFn) -> Snapshot:
    """Snapshots with pins of what they have and of what they do not, some of which have expired."""
    snapshot = draw(snapshots())
    flows = [flow for job in snapshot.jobs for flow in job.flows]
    jobs = [job.name for job in snapshot.jobs]
    until_s = st.sampled_from((snapshot.time_s - 1.0, snapshot.time_s, snapshot.time_s + 1.0))
    pins: list[Pin] = draw(
        st.lists(
            st.builds(LevelPin, st.sampled_from([*jobs, "nobody"]), st.integers(0, 7), until_s, st.just("alice")),
            max_size=4,
            unique_by=lambda pin: pin.job,
        )
    )
    for flow in draw(st.lists(st.sampled_from(flows), max_size=4, unique_by=lambda flow: flow.key)) if flows else ():
        others = [tuple(flow.candidates), *([each.candidates for each in flows])]
        path = draw(st.sampled_from([path for paths in others for path in paths]))
        pins.append(PathPin(flow.key, path, draw(until_s), "alice"))
    pins += draw(st.sampled_from(([], [PathPin(FlowKey("nobody", "g", 0), (0, 1), snapshot.time_s + 1.0)])))
    return replace(snapshot, pins=tuple(pins))


@settings(deadline=None)
@given(pinned_snapshots(), st.sampled_from((CRUX, ECMP)))
def test_pins_hold_and_change_nothing_else(snapshot: Snapshot, policy: object) -> None:
    decide = policy.decide  # type: ignore[attr-defined]
    before = DecisionPipeline(decide).decide(snapshot)
    after = with_pins(before, snapshot)
    check_plan(after, snapshot)
    held = held_pins(snapshot)
    levels = {pin.job: min(pin.level, snapshot.num_levels - 1) for pin in held if isinstance(pin, LevelPin)}
    paths = {pin.flow: pin.path for pin in held if isinstance(pin, PathPin)}
    assert [job.name for job in after.jobs] == [job.name for job in before.jobs]
    for then, now in zip(before.jobs, after.jobs, strict=True):
        assert now == replace(then, level=levels.get(then.name, then.level))
    for key, then in before.flows.items():
        expected = then._replace(path=paths.get(key, then.path), level=levels.get(key.job, then.level))
        assert after.flows[key] == expected


@settings(deadline=None)
@given(pinned_snapshots())
def test_a_pin_that_has_expired_never_applies(snapshot: Snapshot) -> None:
    expired = replace(snapshot, pins=tuple(replace(pin, until_s=snapshot.time_s) for pin in snapshot.pins))
    plan = CRUX.decide(snapshot)
    assert held_pins(expired) == ()
    assert with_pins(plan, expired) is plan


@settings(deadline=None)
@given(pinned_snapshots())
def test_a_path_that_is_gone_does_not_hold_and_holds_again(snapshot: Snapshot) -> None:
    paths = [pin for pin in held_pins(snapshot) if isinstance(pin, PathPin)]
    for pin in paths:
        jobs = []
        for job in snapshot.jobs:
            groups = [
                replace(
                    group,
                    flows=tuple(
                        replace(flow, is_cut_off=True) if flow.key == pin.flow else flow for flow in group.flows
                    ),
                )
                for group in job.flow_groups
            ]
            jobs.append(replace(job, flow_groups=tuple(groups)))
        cut_off = replace(snapshot, jobs=tuple(jobs))
        assert pin not in held_pins(cut_off)
        assert pin in held_pins(snapshot)
