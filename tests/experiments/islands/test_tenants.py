"""Tenants of islands as jobs of the simulator."""

from dataclasses import replace

import pytest

from experiments.islands.programs import BUCKETS, MICRO_BATCHES, PROGRAMS, STAGE_TOKENS, STAGE_WIDTH
from experiments.islands.tenants import Cluster, Tenant, tenants
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from workloads.arrangement import arranged
from workloads.isolated_run import run_isolated

CLUSTER = Cluster(islands=8, devices=8, islands_per_tenant=4, hosts_per_island=2)


def tenant(kind: str, devices: int = CLUSTER.devices) -> Tenant:
    return Tenant(replace(CLUSTER, devices=devices), 1, kind, 0.0)


def sent_bytes(of: Tenant) -> int:
    return sum(flow.size_bytes for group in of.template.groups for flow in group.flows)


@pytest.mark.parametrize(
    ("kind", "compute_s"),
    [
        ("pipeline", (MICRO_BATCHES + 3) * 3 * 0.164 + 0.01),
        ("data parallel", 3 * 0.655 + 0.16 + 0.01),
        ("experts", 8 * 3 * 0.025 + 0.01),
    ],
)
def test_a_run_without_communication_takes_as_long_as_its_calls(kind: str, compute_s: float) -> None:
    assert tenant(kind).template.profile.compute_s == pytest.approx(compute_s)


@pytest.mark.parametrize("kind", list(PROGRAMS))
def test_the_job_has_the_profile_and_the_arrangement_of_the_template(kind: str) -> None:
    of = tenant(kind)
    job = of.job()
    assert job.profile.compute_s == pytest.approx(of.template.profile.compute_s)
    assert job.profile.comm_start == pytest.approx(of.template.profile.comm_start)
    assert job.profile.work == pytest.approx(of.template.profile.work)
    assert job.gpus == of.template.devices
    for group, expected in zip(of.template.groups, arranged(job.graph).flow_groups, strict=True):
        offsets_s = [flow.offset_s for flow in group.flows]
        assert offsets_s == pytest.approx([flow.offset_s for flow in expected.flows])


def test_what_kinds_send() -> None:
    devices, islands = CLUSTER.devices, CLUSTER.islands_per_tenant
    activation_bytes = 2 * devices * STAGE_TOKENS * STAGE_WIDTH
    # Forward once, for both passes of a stage, and back.
    assert sent_bytes(tenant("pipeline")) == MICRO_BATCHES * activation_bytes * 2 * (islands - 1)
    bucket_bytes = 2 * devices * (31_250_000 // BUCKETS)
    assert sent_bytes(tenant("data parallel")) == BUCKETS * 2 * (islands - 1) * bucket_bytes
    tokens_bytes = 2 * devices * 256 * 4_096
    assert sent_bytes(tenant("experts")) == 8 * 2 * 2 * tokens_bytes * (islands - 1)


@pytest.mark.parametrize("kind", list(PROGRAMS))
def test_a_run_on_larger_islands_takes_as_long(kind: str) -> None:
    times_s = []
    for devices in (8, 16):
        of = tenant(kind, devices)
        fabric = of.cluster.topology.build()
        routing = Routing(fabric, hash_multipliers(fabric.switches, 1))
        times_s.append(run_isolated(of.job(), routing).iteration_time_s)
    # The latency of the fabric stays as it is.
    assert times_s[0] == pytest.approx(times_s[1], rel=1e-4)
    assert times_s[0] > tenant(kind).template.profile.compute_s


def test_a_tor_serves_islands_of_several_tenants() -> None:
    cluster = Cluster(islands=64, devices=512, islands_per_tenant=8)
    islands = [{of.slices[number].island for number in range(8)} for of in tenants(cluster, 1)]
    assert len(islands) == 8
    assert set.union(*islands) == {f"island-{number}" for number in range(64)}
    first_tor = {f"island-{number}" for number in range(4)}
    assert [len(of & first_tor) for of in islands] == [1, 1, 1, 1, 0, 0, 0, 0]


def test_sizes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="islands: expected a multiple of 8, got 12"):
        Cluster(islands=12, devices=512, islands_per_tenant=8)
    with pytest.raises(ValueError, match="devices: expected a multiple of 4, got 6"):
        Cluster(islands=8, devices=6, islands_per_tenant=8)
