"""The emulator predicts what a policy gains on Open vSwitch for flows that collide where Open vSwitch lets them."""

import pytest

from benchmarks.openflow_cases.clos_gain import clos_gain_figures, predicting_seed, scenario_of
from benchmarks.openflow_cases.traced_paths import seed_with_paths, traced_paths
from experiments.scenarios.backend import RunError
from experiments.scenarios.connections import open_connections
from experiments.scenarios.real_hosts.real_flows import real_flows
from tests.openvswitch import skip_without_openvswitch
from topologies.addressing import FiveTuple
from topologies.ecmp import hash_multipliers
from topologies.fabric import Fabric
from topologies.routing import Routing
from workloads.jobs import TrainingJob, training_jobs

SCENARIO = scenario_of(seed=3, duration_s=1)


def _routing(fabric: Fabric, seed: int) -> Routing:
    return Routing(fabric, hash_multipliers(fabric.switches, seed))


def _emulated(jobs: tuple[TrainingJob, ...], fabric: Fabric) -> list[FiveTuple]:
    return [flow for groups in open_connections(jobs, fabric).values() for flows in groups.values() for flow in flows]


def test_flows_of_the_prediction_take_the_paths_of_open_vswitch() -> None:
    skip_without_openvswitch()
    fabric = SCENARIO.topology.build()
    jobs = training_jobs(SCENARIO, fabric)
    routing = _routing(fabric, SCENARIO.seed)
    real = [flow.five_tuple for flow in real_flows(jobs, routing)]
    traced = traced_paths(routing, real)
    for flow, path in zip(real, traced, strict=True):
        ends = (fabric.nic_by_address[address] for address in (flow.source_address, flow.destination_address))
        assert path in routing.candidate_paths(*ends)
    assert traced_paths(routing, real) == traced, "another Open vSwitch hashes otherwise"
    predicted = _routing(fabric, predicting_seed(SCENARIO))
    assert tuple(map(predicted.hashed_path, _emulated(jobs, fabric))) == traced


def test_paths_that_no_seed_gives_are_no_prediction() -> None:
    fabric = SCENARIO.topology.build()
    flows = _emulated(training_jobs(SCENARIO, fabric), fabric)
    routing = _routing(fabric, 1)
    paths = [routing.hashed_path(flow) for flow in flows]
    assert seed_with_paths([(1, routing)], flows, paths) == 1
    with pytest.raises(ValueError, match="no seed"):
        seed_with_paths([(1, routing)], flows, [paths[0][:-1], *paths[1:]])


def test_a_machine_without_namespaces_has_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RunError("namespaces are not permitted")

    monkeypatch.setattr("benchmarks.openflow_cases.clos_gain.predicting_seed", refuse)
    assert clos_gain_figures([1], duration_s=1) == {
        "clos_gain_error_points": "not measured: namespaces are not permitted"
    }
