"""What refusals tell of other tenants, and the index of a job's flow groups."""

from dataclasses import replace

import pytest

from controller.registry.errors import ConflictError
from controller.registry.group_index import GroupIndex
from controller.registry.jobs import RegisteredFlow, RegisteredFlowGroup, RegisteredJob
from controller.registry.registry import Registry
from controller.registry.requests import FlowGroupRequest
from tests.controller.registry.test_usage import FABRIC, group, job


def test_refusals_do_not_tell_of_another_tenants_jobs() -> None:
    registry = Registry(FABRIC, 30.0)
    for name, tenant in (("secret", "vision"), ("own", "speech"), ("own-2", "speech")):
        registry.register_job(job(name), 0.0, "t", tenant=tenant)
    (flow,) = group("hidden", (0, 1)).flows
    _, (held,) = registry.register_flow_groups("secret", [FlowGroupRequest("hidden", (flow,))])
    chosen = FlowGroupRequest("g", (replace(flow, five_tuple=held.flows[0].five_tuple),))
    with pytest.raises(ConflictError, match="is that of another tenant's job") as refused:
        registry.register_flow_groups("own", [chosen])
    own = FlowGroupRequest("g", (replace(flow, five_tuple=replace(held.flows[0].five_tuple, source_port=1)),))
    registry.register_flow_groups("own", [own])
    with pytest.raises(ConflictError, match="is that of job 'own', group 'g', flow 0"):
        registry.register_flow_groups("own-2", [own])
    registry.register_job(replace(job("measured"), profile=None), 0.0, "t", tenant="vision")
    with pytest.raises(ConflictError, match="hosts of another tenant's job too") as measured:
        registry.register_job(replace(job("mine"), profile=None), 0.0, "t", tenant="speech")
    for error in (refused, measured):
        assert not [name for name in ("secret", "hidden", "'measured'", "vision") if name in str(error.value)]


def test_the_index_of_groups_follows_every_change() -> None:
    def grown(known: RegisteredJob, number: int) -> RegisteredJob:
        flow = RegisteredFlow(FABRIC.nics["h0"][0], FABRIC.nics["h1"][0], number, 0.0, five_tuple, is_assigned=True)
        return replace(known, flow_groups=(*known.flow_groups, RegisteredFlowGroup(str(number), (flow,))))

    registry = Registry(FABRIC, 30.0)
    registry.register_job(job("a"), 0.0, "t")
    registry.register_flow_groups("a", [group("0", (0, 1))])
    (of,) = registry.jobs
    five_tuple = of.flow_groups[0].flows[0].five_tuple
    index, known = GroupIndex(), of
    states = [of, *(known := grown(known, number) for number in range(1, 5))]
    replaced = replace(states[4], flow_groups=(*states[4].flow_groups[:2], *grown(of, 9).flow_groups[1:]))
    # What has only grown is not counted anew: small calls about a large job stay cheap.
    assert len({id(index.of(state)) for state in states}) == 1
    for state in (*states, states[2], replaced, states[0]):
        groups = index.of(state)
        assert groups.by_name == {each.name: each for each in state.flow_groups}
        assert groups.num_flows == len(state.flow_groups)
        assert groups.sent_bytes == sum(flow.size_bytes for each in state.flow_groups for flow in each.flows)
