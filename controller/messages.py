"""Between the messages of the wire format and the controller's own types."""

from controller.decision import Decision, FlowDirective, JobDirectives
from controller.policy.plan import JobPlan
from controller.policy.snapshot import Flow, Profile
from controller.registration import (
    FlowGroupRequest,
    FlowRequest,
    JobRequest,
    NicReference,
    RegisteredFlowGroup,
)
from hostlib.wire.trainyard.v1 import trainyard_pb2 as wire
from topologies.addressing import FiveTuple
from topologies.fabric import Fabric, Path


def job_request(message: wire.RegisterJobRequest) -> JobRequest:
    profile = Profile(message.profile.compute_s, message.profile.comm_start, message.profile.work)
    return JobRequest(message.name, tuple(message.hosts), message.gpus, profile)


def flow_group_request(message: wire.FlowGroup) -> FlowGroupRequest:
    return FlowGroupRequest(message.name, tuple(_flow_request(flow) for flow in message.flows))


def _flow_request(message: wire.Flow) -> FlowRequest:
    return FlowRequest(
        NicReference(message.source.host, message.source.nic),
        NicReference(message.destination.host, message.destination.nic),
        message.size_bytes,
        message.offset_s,
        _five_tuple_from_wire(message.five_tuple) if message.HasField("five_tuple") else None,
    )


def _five_tuple_from_wire(message: wire.FiveTuple) -> FiveTuple:
    return FiveTuple(
        message.source_address,
        message.destination_address,
        message.protocol,
        message.source_port,
        message.destination_port,
    )


def flow_group_assignment(group: RegisteredFlowGroup) -> wire.FlowGroupAssignment:
    five_tuples = [_five_tuple_to_wire(flow.five_tuple) for flow in group.flows]
    return wire.FlowGroupAssignment(name=group.name, five_tuples=five_tuples)


def directives_response(directives: JobDirectives, fabric: Fabric) -> wire.DirectivesResponse:
    return wire.DirectivesResponse(
        plan_number=directives.plan_number,
        time_shift_s=directives.time_shift_s,
        flows=[_flow_directive(flow, fabric) for flow in directives.flows],
    )


def _flow_directive(directive: FlowDirective, fabric: Fabric) -> wire.FlowDirective:
    return wire.FlowDirective(
        flow_group=directive.key.group,
        flow=directive.key.flow,
        path=_path_to_wire(directive.path, fabric),
        level=directive.level,
        order=directive.order,
    )


def plan_response(decision: Decision, fabric: Fabric) -> wire.GetPlanResponse:
    return wire.GetPlanResponse(
        plan_number=decision.number,
        policy=decision.plan.policy,
        num_rules=decision.num_rules,
        jobs=[_job_decision(job) for job in decision.plan.jobs],
        flows=[_flow_decision(flow, decision, fabric) for job in decision.snapshot.jobs for flow in job.flows],
    )


def _job_decision(plan: JobPlan) -> wire.JobDecision:
    return wire.JobDecision(
        name=plan.name,
        rank=plan.rank,
        level=plan.level,
        intensity=plan.intensity,
        correction_factor=plan.correction_factor,
        priority=plan.priority,
        time_shift_s=plan.time_shift_s,
        reason=plan.reason,
    )


def _flow_decision(flow: Flow, decision: Decision, fabric: Fabric) -> wire.FlowDecision:
    plan = decision.plan.flows[flow.key]
    return wire.FlowDecision(
        job=flow.key.job,
        flow_group=flow.key.group,
        flow=flow.key.flow,
        source=_nic_to_wire(flow.five_tuple.source_address, fabric),
        destination=_nic_to_wire(flow.five_tuple.destination_address, fabric),
        five_tuple=_five_tuple_to_wire(flow.five_tuple),
        path=_path_to_wire(plan.path or flow.hashed_path, fabric),
        steered=plan.path is not None,
        level=plan.level,
        order=plan.order,
    )


def _nic_to_wire(address: int, fabric: Fabric) -> wire.Nic:
    nic = fabric.nic_by_address[address]
    return wire.Nic(host=nic.host, nic=nic.index)


def _five_tuple_to_wire(five_tuple: FiveTuple) -> wire.FiveTuple:
    return wire.FiveTuple(
        source_address=five_tuple.source_address,
        destination_address=five_tuple.destination_address,
        protocol=five_tuple.protocol,
        source_port=five_tuple.source_port,
        destination_port=five_tuple.destination_port,
    )


def _path_to_wire(path: Path, fabric: Fabric) -> wire.Path:
    return wire.Path(nodes=fabric.nodes_of(path), links=[fabric.parallel_index(link) for link in path])
