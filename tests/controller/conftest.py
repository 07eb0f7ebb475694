"""A small fabric with one job, and switches that only remember what was written."""

import pytest

from controller.registry.registry import Registry
from controller.registry.requests import FlowGroupRequest, FlowRequest, JobRequest, NicReference
from controller.southbound.recording import RecordingSouthbound
from policies.job import Profile
from topologies.ecmp import hash_multipliers
from topologies.fabric import Fabric
from topologies.routing import Routing
from topologies.specification import ClosSpecification

LEASE_S = 10.0


@pytest.fixture(scope="session")
def fabric() -> Fabric:
    """Two ToRs with two hosts each, two aggregation switches, two cables between every pair."""
    return ClosSpecification(
        kind="clos", tors=2, aggs=2, hosts_per_tor=2, host_link_gbps=100, uplink_gbps=100, uplinks_per_pair=2
    ).build()


@pytest.fixture(scope="session")
def routing(fabric: Fabric) -> Routing:
    return Routing(fabric, hash_multipliers(fabric.switches, seed=1))


@pytest.fixture
def registry(fabric: Fabric) -> Registry:
    return Registry(fabric, LEASE_S)


@pytest.fixture
def southbound() -> RecordingSouthbound:
    return RecordingSouthbound()


@pytest.fixture
def job() -> JobRequest:
    return JobRequest("gpt", ("h0", "h2"), 16, Profile(compute_s=1.0, comm_start=0.5, work=16.0))


@pytest.fixture
def ring() -> FlowGroupRequest:
    """Two flows, one each way between the hosts of the job."""
    h0, h2 = NicReference("h0", 0), NicReference("h2", 0)
    return FlowGroupRequest("ring", (FlowRequest(h0, h2, 1_000_000, 0.0), FlowRequest(h2, h0, 1_000_000, 0.0)))
