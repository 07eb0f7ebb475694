"""Converts between the messages of the wire format and the controller's types."""

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import TypeVar

from controller.planning.decision import Decision
from controller.planning.directives import FlowDirective, JobDirectives
from controller.registry.errors import InvalidFieldError
from controller.registry.jobs import RegisteredFlowGroup
from controller.registry.requests import (
    FlowGroupRequest,
    FlowRequest,
    InstanceRequest,
    JobRequest,
    NicReference,
    Sent,
    TaskGraphRequest,
    TransferRequest,
)
from controller.telemetry.exchange import ProbeAnswer, ProbeExchange, ProbeReport, ProbeTarget
from hostlib.telemetry.probe_agent import MAX_REPORTS
from hostlib.wire import trainyard_pb2 as wire
from policies.flows import Flow
from policies.job import Profile
from policies.plan import JobPlan
from policies.task_graph import Computation
from topologies.addressing import Address, FiveTuple
from topologies.fabric import Fabric, Path

Item = TypeVar("Item")


_MAX_REASONS = 64
"""Reasons for which a host's agent may drop packets; further ones are not read."""

_REASON_LENGTH = 1_000
"""Characters of a job's own words that are kept."""

_FLOWS_PER_PAGE = 500
"""Encoding so many flows takes some milliseconds."""


def job_request(message: wire.RegisterJobRequest) -> JobRequest:
    """Decode a request to register a job."""
    reported = profile(message.profile) if message.HasField("profile") else None
    return JobRequest(message.name, tuple(message.hosts), message.gpus, reported)


def profile(message: wire.Profile) -> Profile:
    """Decode a profile."""
    return Profile(message.compute_s, message.comm_start, message.work)


def reading_flow_groups(messages: Iterable[wire.FlowGroup], requests: list[FlowGroupRequest]) -> Iterator[None]:
    """Decode requests to register flow groups into a list, one flow at a time."""
    for message in messages:
        flows = []
        for flow in message.flows:
            flows.append(_flow_request(flow))
            yield
        requests.append(FlowGroupRequest(message.name, tuple(flows)))
        yield


def instance_request(message: wire.FlowGroupInstance) -> InstanceRequest:
    """Decode a report of an instance; of a reason that is too long the begin."""
    sent = Sent(message.sent_bytes, message.reason[:_REASON_LENGTH]) if message.HasField("sent_bytes") else None
    return InstanceRequest(message.iteration, message.has_ended, sent)


def task_graph_request(message: wire.TaskGraph) -> TaskGraphRequest:
    """Decode a task graph. Raises InvalidFieldError for a task that is none."""
    return TaskGraphRequest(
        tuple(_task(task, f"task_graph.tasks[{number}]") for number, task in enumerate(message.tasks)),
        message.is_guessed,
    )


def _task(message: wire.Task, field: str) -> Computation | TransferRequest:
    match message.WhichOneof("task"):
        case "computation":
            return Computation(message.computation.duration_s, tuple(message.computation.after))
        case "transfer":
            transfer = message.transfer
            return TransferRequest(transfer.flow_group, tuple(transfer.flows), tuple(transfer.after))
    raise InvalidFieldError(f"{field}: is neither a computation nor a transfer")


def _flow_request(message: wire.Flow) -> FlowRequest:
    return FlowRequest(
        NicReference(message.source.host, message.source.nic),
        NicReference(message.destination.host, message.destination.nic),
        message.size_bytes,
        message.offset_s,
        _five_tuple_from_wire(message.five_tuple) if message.HasField("five_tuple") else None,
        message.held_source_port if message.HasField("held_source_port") else None,
        message.tcp_port if message.HasField("tcp_port") else None,
    )


def _five_tuple_from_wire(message: wire.FiveTuple) -> FiveTuple:
    return FiveTuple(
        Address(message.source_address),
        Address(message.destination_address),
        message.protocol,
        message.source_port,
        message.destination_port,
    )


def writing_assignments(
    groups: Iterable[RegisteredFlowGroup], answer: wire.RegisterFlowGroupsResponse
) -> Iterator[None]:
    """Encode the 5-tuples of registered flow groups into an answer, one flow at a time."""
    for group in groups:
        assignment = answer.flow_groups.add(name=group.name)
        for flow in group.flows:
            assignment.five_tuples.append(_five_tuple_to_wire(flow.five_tuple))
            yield


def probe_exchange(message: wire.ExchangeProbesRequest) -> ProbeExchange:
    """Return the probe reports of a request: of too many, just enough to tell."""
    is_too_many = len(message.reports) > MAX_REPORTS
    reports: Sequence[wire.ProbeReport] = message.reports[: MAX_REPORTS + 1] if is_too_many else message.reports
    return ProbeExchange(
        message.host,
        message.session,
        message.number,
        message.clock_ns,
        # Written out, as it runs for every probe.
        [
            ProbeReport(
                (flow.source_address, flow.destination_address, flow.protocol, flow.destination_port),
                flow.source_port,
                report.session,
                report.sequence,
                report.port_sequence,
                report.sent_ns,
                report.age_ns,
                report.stack,
            )
            for report in reports
            for flow in (report.five_tuple,)
        ],
        {one.reason: one.packets for one in message.dropped[:_MAX_REASONS]},
        message.targets_version,
    )


def probe_answer(answer: ProbeAnswer) -> wire.ExchangeProbesResponse:
    """Return the message of an answer to an exchange of probes."""
    return wire.ExchangeProbesResponse(
        interval_s=answer.interval_s,
        targets_version=answer.targets_version,
        targets=[_probe_target(target) for target in answer.targets],
    )


def _probe_target(target: ProbeTarget) -> wire.ProbeTarget:
    source_address, destination_address, protocol, destination_port = target.pair
    return wire.ProbeTarget(
        source_address=source_address,
        destination_address=destination_address,
        protocol=protocol,
        destination_port=destination_port,
        source_ports=target.source_ports,
        is_exploring=target.is_exploring,
    )


def directives_pages(directives: JobDirectives, fabric: Fabric) -> Iterator[wire.DirectivesResponse]:
    """Encode the directives of one Plan in messages, at least one."""
    pages = list(_pages(directives.flows)) or [()]
    for number, flows in enumerate(pages, start=1):
        yield wire.DirectivesResponse(
            plan_number=directives.plan_number,
            time_shift_s=directives.time_shift_s,
            flows=[_flow_directive(flow, fabric) for flow in flows],
            is_continued=number < len(pages),
            flow_groups=[
                wire.FlowGroupDirective(name=flow.key.group, slack_s=directives.slacks_s[flow.key.group])
                for flow in flows
                if flow.key.flow == 0 and flow.key.group in directives.slacks_s
            ],
        )


def _flow_directive(directive: FlowDirective, fabric: Fabric) -> wire.FlowDirective:
    return wire.FlowDirective(
        flow_group=directive.key.group,
        flow=directive.key.flow,
        path=path_message(directive.path, fabric),
        level=directive.level,
        order=directive.order,
        source_port=directive.source_port,
        rate_bps=directive.rate_bps,
    )


def plan_pages(
    decision: Decision, fabric: Fabric, visible: Container[str] | None = None
) -> Iterator[wire.GetPlanResponse]:
    """Encode a decision in messages, at least one: jobs in order of rank, then flows in order of their jobs' names.

    Jobs that are not ``visible`` are left out, and so are reasons, which may name them; None: all are visible.
    """

    def page(jobs: Sequence[JobPlan] = (), flows: Sequence[Flow] = ()) -> wire.GetPlanResponse:
        return wire.GetPlanResponse(
            plan_number=decision.number,
            policy=decision.plan.policy,
            num_rules=decision.num_rules,
            jobs=[_job_decision(job, has_reason=visible is None) for job in jobs],
            flows=[_flow_decision(flow, decision, fabric) for flow in flows],
        )

    yield page()
    for jobs in _pages([job for job in decision.plan.jobs if visible is None or job.name in visible]):
        yield page(jobs=jobs)
    shown = [job for job in decision.snapshot.jobs if visible is None or job.name in visible]
    for flows in _pages([flow for job in shown for flow in job.registered_flows]):
        yield page(flows=flows)


def nic_locations(addresses: Iterable[int], fabric: Fabric) -> wire.LocateNicsResponse:
    """Encode which NICs have these addresses, in their order."""
    nic_by_address = fabric.nic_by_address
    answer = wire.LocateNicsResponse()
    for address in addresses:
        location = answer.locations.add()
        if (nic := nic_by_address.get(address)) is not None:
            location.nic.host, location.nic.nic = nic.host, nic.index
    return answer


def _pages(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    for first in range(0, len(items), _FLOWS_PER_PAGE):
        yield items[first : first + _FLOWS_PER_PAGE]


def _job_decision(plan: JobPlan, *, has_reason: bool) -> wire.JobDecision:
    return wire.JobDecision(
        name=plan.name,
        rank=plan.rank,
        level=plan.level,
        intensity=plan.intensity,
        correction_factor=plan.correction_factor,
        priority=plan.priority,
        time_shift_s=plan.time_shift_s,
        reason=plan.reason if has_reason else "",
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
        path=path_message(plan.path or flow.hashed_path, fabric),
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


def path_message(path: Path, fabric: Fabric) -> wire.Path:
    """Encode a path by the names of its nodes."""
    return wire.Path(nodes=fabric.nodes_of(path), links=[fabric.parallel_index(link) for link in path])
