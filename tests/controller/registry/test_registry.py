"""The registry: repeated requests and refusals change nothing, leases end, and 5-tuples are unique."""

from dataclasses import replace

import pytest

from controller.registry.admission import MAX_TRANSFER_S
from controller.registry.errors import ConflictError, ExhaustedError, InvalidFieldError, UnknownJobError
from controller.registry.registry import Registry
from controller.registry.requests import FlowGroupRequest, JobRequest, NicReference
from policies.flows import FlowKey
from policies.job import Profile
from topologies import addressing
from topologies.addressing import (
    FIRST_SOURCE_PORT,
    FLOW_DESTINATION_PORT,
    TCP_PROTOCOL,
    UDP_PROTOCOL,
    FiveTuple,
)


def test_registering_a_job_twice_changes_nothing(registry: Registry, job: JobRequest) -> None:
    assert registry.register_job(job, now_s=0.0)
    assert not registry.register_job(job, now_s=5.0)
    assert [(known.request, known.arrival_s) for known in registry.jobs] == [(job, 0.0)]


def test_the_first_report_of_a_jobs_age_counts(registry: Registry, job: JobRequest) -> None:
    registry.register_job(job, now_s=5.0, age_s=7.0)
    registry.register_job(job, now_s=6.0, age_s=1.0)
    assert [known.arrival_s for known in registry.jobs] == [-2.0]
    assert registry.lease_end_s(job.name) == 6.0 + registry.lease_s


@pytest.mark.parametrize("age_s", [-1.0, float("nan"), float("inf")])
def test_an_invalid_age_is_refused(registry: Registry, job: JobRequest, age_s: float) -> None:
    with pytest.raises(InvalidFieldError, match="age_s"):
        registry.register_job(job, now_s=5.0, age_s=age_s)
    assert registry.jobs == ()


def test_another_job_of_the_same_name_is_refused(registry: Registry, job: JobRequest) -> None:
    registry.register_job(job, now_s=0.0)
    with pytest.raises(ConflictError, match="name"):
        registry.register_job(replace(job, gpus=8), now_s=0.0)
    assert registry.jobs[0].request == job


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": ""}, "name"),
        ({"hosts": ()}, "hosts"),
        ({"hosts": ("h0", "h9")}, r"hosts\[1\]"),
        ({"hosts": ("h0", "h0")}, r"hosts\[1\]"),
        ({"gpus": 0}, "gpus"),
        ({"gpus": 17}, "gpus"),
        ({"profile": Profile(-1.0, 0.5, 1.0)}, "profile.compute_s"),
        ({"profile": Profile(float("nan"), 0.5, 1.0)}, "profile.compute_s"),
        ({"profile": Profile(1.0, 1.5, 1.0)}, "profile.comm_start"),
        ({"profile": Profile(1.0, 0.5, float("inf"))}, "profile.work"),
    ],
)
def test_an_invalid_job_is_refused(registry: Registry, job: JobRequest, change: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidFieldError, match=field):
        registry.register_job(replace(job, **change), now_s=0.0)  # type: ignore[arg-type]
    assert registry.jobs == ()
    assert registry.next_lease_end_s is None


def test_flows_get_the_lowest_free_source_port_of_their_addresses(
    registry: Registry, job: JobRequest, ring: FlowGroupRequest
) -> None:
    registry.register_job(job, now_s=0.0)
    there, back = ring.flows
    _, (first,) = registry.register_flow_groups("gpt", [FlowGroupRequest("first", (there, there, back))])
    _, (second,) = registry.register_flow_groups("gpt", [FlowGroupRequest("second", (there,))])
    ports = [flow.five_tuple.source_port - FIRST_SOURCE_PORT for flow in (*first.flows, *second.flows)]
    assert ports == [0, 1, 0, 2]
    assert {flow.five_tuple.protocol for flow in first.flows} == {UDP_PROTOCOL}
    assert {flow.five_tuple.destination_port for flow in first.flows} == {FLOW_DESTINATION_PORT}
    assert first.flows[0].five_tuple.source_address == registry.fabric.nics["h0"][0].address


def test_addresses_whose_flows_have_gone_leave_nothing_behind(
    registry: Registry, job: JobRequest, ring: FlowGroupRequest
) -> None:
    registry.register_job(job, now_s=0.0)
    there, back = ring.flows
    moving = tuple(replace(there, tcp_port=port) for port in (40_000, 40_001, 40_001))
    registry.register_flow_groups("gpt", [FlowGroupRequest("first", (there, there, back, *moving))])
    assert registry._state.source_ports._next_free
    registry.deregister("gpt")
    for _ in registry.releasing():
        pass
    assert not registry._state.source_ports._next_free


def test_ports_are_assigned_to_tcp_as_to_udp_but_apart_from_it_and_by_destination_port(
    registry: Registry, job: JobRequest, ring: FlowGroupRequest
) -> None:
    registry.register_job(job, now_s=0.0)
    there = ring.flows[0]
    asked = (there, *(replace(there, tcp_port=port) for port in (40_000, 40_000, 40_001)))
    _, (group,) = registry.register_flow_groups("gpt", [FlowGroupRequest("mixed", asked)])
    assert [(*flow.five_tuple.service, flow.five_tuple.source_port - FIRST_SOURCE_PORT) for flow in group.flows] == [
        (UDP_PROTOCOL, FLOW_DESTINATION_PORT, 0),
        (TCP_PROTOCOL, 40_000, 0),
        (TCP_PROTOCOL, 40_000, 1),
        (TCP_PROTOCOL, 40_001, 0),
    ]
    assert all(flow.is_assigned for flow in group.flows)


def test_a_tcp_flow_keeps_the_port_that_it_held_and_may_be_given_another(
    registry: Registry, job: JobRequest, ring: FlowGroupRequest
) -> None:
    registry.register_job(job, now_s=0.0)
    held = replace(ring.flows[0], tcp_port=40_000, held_source_port=FIRST_SOURCE_PORT + 7)
    _, (group,) = registry.register_flow_groups("gpt", [FlowGroupRequest("g", (held, held))])
    assert [flow.five_tuple.source_port - FIRST_SOURCE_PORT for flow in group.flows] == [7, 0]
    key, moved = FlowKey("gpt", "g", 1), replace(group.flows[1].five_tuple, source_port=FIRST_SOURCE_PORT + 9)
    assert registry.change_source_ports({key: moved}) == {key}
    (flow,) = registry.jobs[0].flow_groups[0].flows[1:]
    assert (flow.five_tuple, flow.is_assigned) == (moved, True)
    is_new, (again,) = registry.register_flow_groups("gpt", [FlowGroupRequest("g", (held, held))])
    assert (is_new, again.flows[1]) == (False, flow)


@pytest.mark.parametrize(("before", "after"), [(None, 40_000), (40_000, None), (40_000, 40_001)])
def test_a_known_flow_leads_to_where_it_did(
    registry: Registry, job: JobRequest, ring: FlowGroupRequest, before: int | None, after: int | None
) -> None:
    registry.register_job(job, now_s=0.0)
    first, second = (FlowGroupRequest("g", (replace(ring.flows[0], tcp_port=port),)) for port in (before, after))
    registry.register_flow_groups("gpt", [first])
    with pytest.raises(ConflictError, match=r"flow_groups\[0\].name"):
        registry.register_flow_groups("gpt", [second])
    is_new, _ = registry.register_flow_groups("gpt", [first])
    assert not is_new


def test_assigned_five_tuples_differ_from_those_that_hosts_choose(
    registry: Registry, job: JobRequest, ring: FlowGroupRequest
) -> None:
    registry.register_job(job, now_s=0.0)
    chosen = replace(ring.flows[0], five_tuple=_five_tuple(registry, FIRST_SOURCE_PORT))
    _, (group,) = registry.register_flow_groups("gpt", [FlowGroupRequest("mixed", (ring.flows[0], chosen))])
    assert [flow.five_tuple.source_port - FIRST_SOURCE_PORT for flow in group.flows] == [1, 0]


def test_registering_a_flow_group_twice_changes_nothing(
    registry: Registry, job: JobRequest, ring: FlowGroupRequest
) -> None:
    registry.register_job(job, now_s=0.0)
    is_new, groups = registry.register_flow_groups("gpt", [ring])
    again_is_new, again = registry.register_flow_groups("gpt", [ring])
    with_five_tuples = [
        replace(flow, five_tuple=known.five_tuple) for flow, known in zip(ring.flows, groups[0].flows, strict=True)
    ]
    spelt_out_is_new, spelt_out = registry.register_flow_groups(
        "gpt", [FlowGroupRequest("ring", tuple(with_five_tuples))]
    )
    assert (is_new, again_is_new, spelt_out_is_new) == (True, False, False)
    assert groups == again == spelt_out == registry.jobs[0].flow_groups


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"source": NicReference("h9", 0)}, "source.host"),
        ({"source": NicReference("h1", 0)}, r"source.host.*'h1' is not a host of job 'gpt'"),
        ({"destination": NicReference("h2", 1)}, "destination.nic"),
        ({"destination": NicReference("h0", 0)}, "destination.host"),
        ({"size_bytes": (1 << 63) + 1}, "size_bytes"),
        ({"offset_s": -0.1}, "offset_s"),
        ({"five_tuple": FiveTuple(1, 2, UDP_PROTOCOL, 3, 4)}, "five_tuple.source_address"),
        ({"tcp_port": 0}, "tcp_port"),
        ({"tcp_port": 65_536}, "tcp_port"),
        ({"tcp_port": 4, "five_tuple": FiveTuple(1, 2, TCP_PROTOCOL, 3, 4)}, "tcp_port"),
    ],
)
def test_an_invalid_flow_is_refused_and_changes_nothing(
    registry: Registry, job: JobRequest, ring: FlowGroupRequest, change: dict[str, object], field: str
) -> None:
    registry.register_job(job, now_s=0.0)
    bad = replace(ring.flows[0], **change)  # type: ignore[arg-type]
    with pytest.raises(InvalidFieldError, match=rf"flow_groups\[1\].flows\[0\].{field}"):
        registry.register_flow_groups("gpt", [ring, FlowGroupRequest("bad", (bad,))])
    assert registry.jobs[0].flow_groups == ()
    _, (group,) = registry.register_flow_groups("gpt", [ring])
    assert group.flows[0].five_tuple.source_port == FIRST_SOURCE_PORT


def test_the_flow_that_exceeds_the_iteration_limit_is_refused(
    registry: Registry, job: JobRequest, ring: FlowGroupRequest
) -> None:
    """So that no policy has to refuse it, and with it all other jobs."""
    registry.register_job(job, now_s=0.0)
    half_bytes = int(0.5 * MAX_TRANSFER_S * registry.fabric.slowest_bps / 8)
    half = FlowGroupRequest("half", (replace(ring.flows[0], size_bytes=half_bytes),))
    registry.register_flow_groups("gpt", [half])
    tiny = replace(ring.flows[0], size_bytes=1000)
    more = FlowGroupRequest("more", (tiny, replace(tiny, size_bytes=half_bytes)))
    with pytest.raises(InvalidFieldError, match=r"flow_groups\[1\].flows\[1\].size_bytes: .* more than 5e\+06 s"):
        registry.register_flow_groups("gpt", [half, more])
    assert [group.name for group in registry.jobs[0].flow_groups] == ["half"]


def test_five_tuple_of_another_flow_is_refused_until_that_job_leaves(
    registry: Registry, job: JobRequest, ring: FlowGroupRequest
) -> None:
    registry.register_job(job, now_s=0.0)
    registry.register_job(replace(job, name="bert"), now_s=0.0)
    _, (group,) = registry.register_flow_groups("gpt", [ring])
    taken = FlowGroupRequest("ring", (replace(ring.flows[0], five_tuple=group.flows[0].five_tuple),))
    with pytest.raises(ConflictError, match=r"five_tuple.*job 'gpt', group 'ring', flow 0"):
        registry.register_flow_groups("bert", [taken])
    registry.deregister("gpt")
    is_new, _ = registry.register_flow_groups("bert", [taken])
    assert is_new


def test_other_flows_under_a_known_name_are_refused(
    registry: Registry, job: JobRequest, ring: FlowGroupRequest
) -> None:
    registry.register_job(job, now_s=0.0)
    registry.register_flow_groups("gpt", [ring])
    with pytest.raises(ConflictError, match=r"flow_groups\[0\].name"):
        registry.register_flow_groups("gpt", [replace(ring, flows=ring.flows[:1])])


def test_no_source_port_left_is_refused(
    registry: Registry, job: JobRequest, ring: FlowGroupRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addressing, "LAST_SOURCE_PORT", addressing.FIRST_SOURCE_PORT)
    registry.register_job(job, now_s=0.0)
    with pytest.raises(ExhaustedError, match=r"flow_groups\[0\].flows\[1\].five_tuple"):
        registry.register_flow_groups("gpt", [FlowGroupRequest("two", (ring.flows[0], ring.flows[0]))])


def test_lease_ends_unless_renewed(registry: Registry, job: JobRequest, ring: FlowGroupRequest) -> None:
    registry.register_job(job, now_s=0.0)
    registry.register_flow_groups("gpt", [ring])
    registry.renew("gpt", now_s=6.0)
    assert registry.next_lease_end_s == 16.0
    assert registry.expire(now_s=15.9) == ()
    assert registry.expire(now_s=16.0) == ("gpt",)
    assert registry.jobs == ()
    assert registry.next_lease_end_s is None


@pytest.mark.parametrize("call", ["renew", "register_flow_groups"])
def test_unknown_job_is_refused(registry: Registry, call: str) -> None:
    with pytest.raises(UnknownJobError, match="'nobody' is not registered"):
        getattr(registry, call)("nobody", [])


def test_refusals_quote_the_beginning_of_long_names(registry: Registry, job: JobRequest) -> None:
    long = "h" * 100_000
    with pytest.raises(InvalidFieldError, match=r"hosts\[0\]: unknown host 'h{256}'… \(100,000 characters\)$"):
        registry.register_job(replace(job, hosts=(long,)), now_s=0.0)
    with pytest.raises(UnknownJobError, match=r"job: 'h{256}'… \(100,000 characters\) is not registered"):
        registry.renew(long, now_s=0.0)


def test_deregistering_twice_is_no_error(registry: Registry, job: JobRequest) -> None:
    registry.register_job(job, now_s=0.0)
    assert registry.deregister("gpt")
    assert not registry.deregister("gpt")


def _five_tuple(registry: Registry, source_port: int) -> FiveTuple:
    source, destination = registry.fabric.nics["h0"][0], registry.fabric.nics["h2"][0]
    return FiveTuple(source.address, destination.address, UDP_PROTOCOL, source_port, FLOW_DESTINATION_PORT)


def test_a_job_may_report_its_profile_later(registry: Registry, job: JobRequest, ring: FlowGroupRequest) -> None:
    quiet = replace(job, profile=None)
    assert registry.register_job(quiet, now_s=0.0)
    assert not registry.register_job(quiet, now_s=1.0)
    with pytest.raises(ConflictError, match="no profile"):
        registry.register_flow_groups(job.name, [ring])
    assert job.profile is not None
    assert registry.report_profile(job.name, job.profile)
    registry.register_flow_groups(job.name, [ring])
    with pytest.raises(ConflictError, match="profile"):
        registry.register_job(quiet, now_s=2.0)


def test_jobs_that_switches_have_no_room_to_count_are_refused(
    registry: Registry, job: JobRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.registry.admission.MAX_JOB_RULES", 3)
    registry.register_job(JobRequest("quiet", ("h0", "h1"), 8, None), now_s=0.0)
    assert registry.register_job(JobRequest("other", ("h0", "h2"), 8, None), now_s=0.0)
    with pytest.raises(ExhaustedError, match="switch 't0' would need 4 entries"):
        registry.register_job(JobRequest("third", ("h1", "h2"), 8, None), now_s=0.0)
    assert [known.request.name for known in registry.jobs] == ["other", "quiet"]
    assert registry.register_job(job, now_s=0.0)


def test_two_jobs_between_the_same_hosts_cannot_both_be_measured(registry: Registry, job: JobRequest) -> None:
    registry.register_job(replace(job, profile=None), now_s=0.0)
    with pytest.raises(ConflictError, match="'h2' and 'h0' are hosts of 'gpt'"):
        registry.register_job(JobRequest("other", ("h2", "h0", "h1"), 8, None), now_s=0.0)
    assert registry.register_job(JobRequest("other", ("h2", "h1"), 8, None), now_s=0.0)
    assert registry.register_job(replace(job, name="third"), now_s=0.0)
