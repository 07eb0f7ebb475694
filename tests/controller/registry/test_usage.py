"""Quotas: what a tenant may hold, and the count of what it holds, which a recount from nothing confirms."""

import asyncio
import random
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

import pytest

from controller.access.options import UNLIMITED, Quotas
from controller.errors import StoreError
from controller.registry.errors import CommitError, ExhaustedError, RegistrationError
from controller.registry.journal import Change, Journal
from controller.registry.registry import Registry
from controller.registry.requests import FlowGroupRequest, FlowRequest, JobRequest, NicReference
from controller.registry.usage import Usage
from policies.flows import FlowKey
from policies.job import Profile
from topologies.specification import DumbbellSpecification

FABRIC = DumbbellSpecification(kind="dumbbell", hosts_per_side=2, host_link_gbps=100, bottleneck_gbps=100).build()
HOSTS = FABRIC.hosts
TENANTS = ("vision", "speech")
FEW = Quotas(jobs=2, flow_groups=3, flows=4, source_ports_per_pair=3, work=10.0)


def job(name: str, work: float = 1.0) -> JobRequest:
    return JobRequest(name, tuple(HOSTS), 4, Profile(1.0, 0.5, work))


def group(name: str, *pairs: tuple[int, int], tcp_port: int | None = None) -> FlowGroupRequest:
    flows = [
        FlowRequest(NicReference(HOSTS[source], 0), NicReference(HOSTS[destination], 0), 10**6, 0.0, tcp_port=tcp_port)
        for source, destination in pairs
    ]
    return FlowGroupRequest(name, tuple(flows))


def recount(registry: Registry, tenant: str) -> Usage:
    """What a tenant holds, counted plainly."""
    jobs = [each for each in registry._state.jobs.values() if each.tenant == tenant]
    return Usage(
        len(jobs),
        sum(len(each.flow_groups) for each in jobs),
        sum(len(of.flows) for each in jobs for of in each.flow_groups),
        sum(each.request.profile.work for each in jobs if each.request.profile),
    )


def recount_ports(registry: Registry) -> Counter[tuple[str, tuple[int, int]]]:
    """The source ports of every tenant between two NICs, counted plainly."""
    return Counter(
        (each.tenant, (flow.five_tuple.source_address, flow.five_tuple.destination_address))
        for each in registry._state.jobs.values()
        for of in each.flow_groups
        for flow in of.flows
    )


def test_every_quota_is_held_and_another_tenant_does_not_feel_it() -> None:
    registry = Registry(FABRIC, 30.0, quotas_of=lambda tenant: FEW if tenant == "vision" else UNLIMITED)
    registry.register_job(job("a"), 0.0, "t", tenant="vision")
    registry.register_job(job("b", 5.0), 0.0, "t", tenant="vision")
    registry.register_flow_groups("a", [group("g", (0, 1), (0, 1), (0, 1))])
    before = registry.jobs

    def refused(quota: str) -> "pytest.RaisesExc[ExhaustedError]":
        return pytest.raises(ExhaustedError, match=f"quota {quota}: tenant 'vision' may have")

    with refused("jobs"):
        registry.register_job(job("c"), 0.0, "t", tenant="vision")
    with refused("work"):
        registry.report_profile("a", Profile(1.0, 0.5, 5.5))
    with refused("flow_groups"):
        registry.register_flow_groups("b", [group(str(number), (1, number)) for number in (0, 2, 3)])
    with refused("flows"):
        registry.register_flow_groups("b", [group("g", (1, 0), (1, 0))])
    with refused("source_ports_per_pair"):
        registry.register_flow_groups("b", [group("g", (0, 1))])
    assert registry.jobs == before
    assert registry.report_profile("a", Profile(1.0, 0.5, 5.0))
    registry.register_job(job("d", 1e6), 0.0, "t", tenant="speech")
    registry.register_flow_groups("d", [group("g", *[(0, 1)] * 50)])
    registry.deregister("b")
    registry.register_job(job("c"), 0.0, "t", tenant="vision")


@pytest.mark.parametrize("seed", range(5))
def test_usage_is_what_a_recount_gives_whatever_is_changed_and_undone(seed: int) -> None:
    async def scenario() -> None:
        choose = random.Random(seed)
        is_broken = False

        async def write(_: Sequence[Change]) -> None:
            if is_broken:
                raise StoreError("the disk is full")

        registry = Registry(FABRIC, 30.0, Journal(write), lambda _: Quotas(jobs=4, flows=40))
        for number in range(300):
            is_broken = choose.random() < 0.3
            name, tenant = f"job-{choose.randrange(8)}", choose.choice(TENANTS)
            owner = next((each.tenant for each in registry.jobs if each.request.name == name), tenant)
            try:
                match choose.randrange(5):
                    case 0:
                        registry.register_job(job(name, choose.randrange(5)), 0.0, "t", tenant=owner)
                    case 1:
                        registry.deregister(name)
                    case 2:
                        registry.report_profile(name, Profile(1.0, 0.5, choose.randrange(5)))
                    case 3:
                        pairs = [choose.choice([(0, 1), (1, 2), (3, 0)]) for _ in range(choose.randrange(4))]
                        tcp_port = choose.choice([None, 40_000, 40_001])
                        registry.register_flow_groups(name, [group(f"{number}", *pairs, tcp_port=tcp_port)])
                    case _:
                        moved = {
                            FlowKey(name, of.name, 0): replace(of.flows[0].five_tuple, source_port=60_000 + number)
                            for each in registry.jobs
                            for of in each.flow_groups
                            if each.request.name == name and of.flows
                        }
                        registry.change_source_ports(moved)
                await registry.commit()
            except (RegistrationError, CommitError):
                pass
            for each in TENANTS:
                assert registry._state.usage.of(each) == recount(registry, each)
            deque(islice(registry.releasing(), choose.randrange(3)), maxlen=0)
            if choose.random() < 0.5:
                deque(registry.releasing(), maxlen=0)
                assert registry._state.source_ports._counts == recount_ports(registry)

    asyncio.run(scenario())
