"""Flow groups are registered in steps, between which other calls change the registry; each is registered or not."""

from collections import deque
from itertools import islice

import pytest

from controller.registry import group_registration
from controller.registry import registry as registry_module
from controller.registry.errors import ConflictError, ExhaustedError, InvalidFieldError, UnknownJobError
from controller.registry.group_registration import GroupRegistration
from controller.registry.registry import Registry
from controller.registry.requests import FlowGroupRequest, FlowRequest, JobRequest, NicReference
from policies.job import Profile
from topologies.addressing import FIRST_SOURCE_PORT, FLOW_DESTINATION_PORT, UDP_PROTOCOL, FiveTuple
from topologies.fabric import Fabric

THERE, BACK = NicReference("h0", 0), NicReference("h2", 0)


def job(name: str) -> JobRequest:
    return JobRequest(name, ("h0", "h2"), 2, Profile(1.0, 0.5, 1.0))


def group(name: str, flows: int = 1) -> FlowGroupRequest:
    return FlowGroupRequest(name, tuple(FlowRequest(THERE, BACK, 1_000, 0.0) for _ in range(flows)))


def take(registration: GroupRegistration, steps: int | None = None) -> None:
    deque(islice(registration.steps(), steps), maxlen=0)


def ports(found: Registry, name: str) -> list[int]:
    registered = found.job(name)
    assert registered is not None
    return [flow.five_tuple.source_port for each in registered.flow_groups for flow in each.flows]


@pytest.fixture
def filled(registry: Registry) -> Registry:
    for name in ("a", "b"):
        registry.register_job(job(name), 0.0)
    return registry


def test_registrations_of_two_jobs_between_each_other_get_ports_of_their_own(filled: Registry) -> None:
    one, other = (filled.registering(name, [group("g", 4)]) for name in ("a", "b"))
    for _ in zip(one.steps(), other.steps(), strict=True):
        pass
    assert one.finish()[0]
    assert other.finish()[0]
    assert sorted(ports(filled, "a") + ports(filled, "b")) == list(range(FIRST_SOURCE_PORT, FIRST_SOURCE_PORT + 8))


def test_a_cancelled_registration_leaves_everything_free(filled: Registry, fabric: Fabric) -> None:
    chosen = FiveTuple(
        fabric.nics["h0"][0].address,
        fabric.nics["h2"][0].address,
        UDP_PROTOCOL,
        FIRST_SOURCE_PORT,
        FLOW_DESTINATION_PORT,
    )
    own = FlowRequest(THERE, BACK, 1_000, 0.0, five_tuple=chosen)
    registration = filled.registering("a", [group("g", 3), FlowGroupRequest("own", (own,))])
    take(registration, 2)
    registration.cancel()
    filled.register_flow_groups("b", [group("g", 3)])
    assert ports(filled, "b") == [FIRST_SOURCE_PORT, FIRST_SOURCE_PORT + 1, FIRST_SOURCE_PORT + 2]
    assert ports(filled, "a") == []


def test_a_job_that_leaves_meanwhile_is_not_registered(filled: Registry) -> None:
    registration = filled.registering("a", [group("g")])
    take(registration)
    filled.deregister("a")
    with pytest.raises(UnknownJobError, match="is not registered"):
        registration.finish()
    filled.register_job(job("a"), 5.0)
    with pytest.raises(UnknownJobError, match="has been registered anew"):
        registration.finish()
    registration.cancel()
    filled.register_flow_groups("b", [group("g")])
    assert ports(filled, "b") == [FIRST_SOURCE_PORT]


def test_a_port_that_goes_back_to_a_flow_whose_withdrawal_is_undone_is_not_given_twice(filled: Registry) -> None:
    filled.register_flow_groups("b", [group("g")])
    before = filled.job("b")
    filled.deregister("b")
    registration = filled.registering("a", [group("g")])
    take(registration)
    assert before is not None
    for key, five_tuple in before.five_tuples:  # as undoing the withdrawal does
        filled._state.source_ports.take(five_tuple, key, "")
    with pytest.raises(ConflictError, match="is another flow's again"):
        registration.finish()
    registration.cancel()
    assert [filled._state.source_ports.owner(five_tuple) for _, five_tuple in before.five_tuples] == [
        key for key, _ in before.five_tuples
    ]


def test_ports_of_a_job_that_has_left_are_given_back_one_at_a_time_by_whoever_takes_turns(filled: Registry) -> None:
    filled.register_flow_groups("a", [group("g", 7)])
    taken = filled._state.source_ports
    filled.deregister("a")
    one, other = filled.releasing(), filled.releasing()
    assert [len(taken), next(one), len(taken), next(other), len(taken), next(one), len(taken)] == [
        *(7, None, 6, None, 5, None, 4)
    ]
    one.close()  # as a registration that is refused, or whose client has gone
    filled.register_flow_groups("b", [group("g", 7)])
    assert ports(filled, "b") == [FIRST_SOURCE_PORT + number for number in range(7)]
    assert list(other) == []


def test_every_group_has_a_flow(filled: Registry) -> None:
    with pytest.raises(InvalidFieldError, match=r"flow_groups\[1\]\.flows: must name at least one flow"):
        filled.register_flow_groups("a", [group("g"), group("none", 0)])
    assert ports(filled, "a") == []


def test_a_job_has_room_for_so_many_flows(filled: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_registration, "MAX_FLOWS_PER_JOB", 5)
    filled.register_flow_groups("a", [group("g", 3)])
    with pytest.raises(ExhaustedError, match="a job has room for 5 flows"):
        filled.register_flow_groups("a", [group("h", 2), group("i")])
    filled.register_flow_groups("a", [group("h", 2)])
    filled.register_flow_groups("b", [group("g", 5)])


def test_the_controller_has_room_for_so_many_jobs(filled: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "MAX_JOBS", 2)
    with pytest.raises(ExhaustedError, match="no room for more than 2 jobs"):
        filled.register_job(job("c"), 0.0)
    assert not filled.register_job(job("b"), 1.0)
    filled.deregister("a")
    assert filled.register_job(job("c"), 0.0)
