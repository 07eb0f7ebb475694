"""Real connections take the paths that flows have on other back ends."""

import pytest

from experiments.scenarios.connections import open_connections
from experiments.scenarios.real_hosts.real_flows import connections_of, real_flows
from tests.experiments.scenarios.real_hosts.jobs import CLOS, PHASES, jobs_of
from topologies.addressing import FLOW_DESTINATION_PORT, TCP_PROTOCOL


@pytest.mark.parametrize("flows_per_pair", [1, 7, 40])
def test_every_connection_takes_the_path_of_its_flow_elsewhere(flows_per_pair: int) -> None:
    workload = PHASES | {"flows_per_pair": flows_per_pair}
    routing, jobs = jobs_of({"workload": workload}, {"hosts": ["h1", "h3"], "workload": workload})
    elsewhere = open_connections(jobs, routing.fabric)
    flows = real_flows(jobs, routing)
    assert len(flows) == 2 * 2 * flows_per_pair
    for flow in flows:
        model = elsewhere[flow.key[0]][flow.key[1]][flow.index]
        assert routing.hashed_path(flow.five_tuple) == routing.hashed_path(model)
        assert flow.five_tuple.protocol == TCP_PROTOCOL
    assert len({flow.five_tuple for flow in flows}) == len(flows)
    assert [flow.number for flow in flows] == list(range(len(flows)))


def test_jobs_that_share_a_host_listen_at_different_ports() -> None:
    routing, jobs = jobs_of({"gpus_per_host": 4}, {"gpus_per_host": 4})
    ports = {flow.key[0]: flow.five_tuple.destination_port for flow in real_flows(jobs, routing)}
    assert ports == {"job-0": FLOW_DESTINATION_PORT, "job-1": FLOW_DESTINATION_PORT + 1}


def test_connections_stand_in_the_order_of_the_groups_flows() -> None:
    routing, jobs = jobs_of({"workload": {"type": "pp", "model": "bert", "micro_batches": 3}})
    flows = real_flows(jobs, routing)
    connections = connections_of(flows)
    for group in jobs[0].graph.flow_groups:
        ends = [(flow.source_host, flow.destination_host) for flow in group.flows]
        found = [flow for flow in flows if flow.key == (jobs[0].name, group.name)]
        assert [(flow.source, flow.destination) for flow in found] == ends
        assert connections[jobs[0].name][group.name] == tuple(flow.five_tuple for flow in found)


def test_a_pair_with_too_many_flows_is_named() -> None:
    workload = PHASES | {"flows_per_pair": 16384}
    routing, jobs = jobs_of({"workload": workload}, topology=CLOS | {"nics_per_host": 1})
    with pytest.raises(ValueError, match=r"no source port is left for tcp 10\.0\.0\.1"):
        real_flows(jobs, routing)
