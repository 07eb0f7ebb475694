"""Conversion between the host library's types and the wire format's messages."""

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address
from typing import TypeVar

from google.protobuf.message import Message

from hostlib.task_graph import Computation, Task, TaskGraph
from hostlib.types import (
    Directives,
    FiveTuple,
    Flow,
    FlowDecision,
    FlowDirective,
    FlowGroup,
    GroupInstance,
    Job,
    JobDecision,
    Nic,
    NicPair,
    Path,
    PathLoad,
    PlanInForce,
    Profile,
)
from hostlib.wire import trainyard_pb2 as wire
from hostlib.wire.methods import PROTOCOL_VERSION

MAX_MESSAGE_BYTES = 4 << 20
"""gRPC's default limit, which both ends of the wire use."""

MAX_TASK_GRAPH_BYTES = 7 << 19
"""The rest of a message is for the names beside it."""

MAX_ADDRESSES_PER_CALL = 4096
"""Of a request to locate NICs."""

MAX_PAIRS_PER_CALL = 1024
"""Of a request for the loads of paths."""

_BATCH_BYTES = 1 << 20

MessageT = TypeVar("MessageT", bound=Message)


def job_to_wire(job: Job, owner_token: str, age_s: float) -> wire.RegisterJobRequest:
    """Convert a registration of a job that arrived ``age_s`` ago."""
    return wire.RegisterJobRequest(
        protocol_version=PROTOCOL_VERSION,
        name=job.name,
        hosts=job.hosts,
        gpus=job.gpus,
        profile=None if job.profile is None else profile_to_wire(job.profile),
        owner_token=owner_token,
        age_s=age_s,
    )


def instance_to_wire(flow_group: str, instance: GroupInstance) -> wire.FlowGroupInstance:
    """Convert a report of an instance."""
    message = wire.FlowGroupInstance(flow_group=flow_group, iteration=instance.iteration, has_ended=instance.has_ended)
    if instance.sent is not None:
        message.sent_bytes, message.reason = instance.sent.size_bytes, instance.sent.reason
    return message


def profile_to_wire(profile: Profile) -> wire.Profile:
    """Convert a profile."""
    return wire.Profile(compute_s=profile.compute_s, comm_start=profile.comm_start, work=profile.work)


def flow_groups_to_wire(
    flow_groups: Sequence[FlowGroup], task_graph: TaskGraph | None
) -> list[wire.RegisterFlowGroupsRequest]:
    """Convert a registration of flow groups; the task graph goes with the last of them, or behind them."""
    requests = [
        wire.RegisterFlowGroupsRequest(flow_groups=batch)
        for batch in _batches(list(map(flow_group_to_wire, flow_groups)))
    ]
    if task_graph is not None:
        graph = task_graph_to_wire(task_graph)
        if not requests or requests[-1].ByteSize() + graph.ByteSize() > MAX_TASK_GRAPH_BYTES:
            requests.append(wire.RegisterFlowGroupsRequest())
        requests[-1].task_graph.CopyFrom(graph)
    return requests


def flow_group_to_wire(group: FlowGroup) -> wire.FlowGroup:
    """Convert a flow group."""
    return wire.FlowGroup(name=group.name, flows=[_flow_to_wire(flow) for flow in group.flows])


def task_graph_to_wire(graph: TaskGraph) -> wire.TaskGraph:
    """Convert a task graph."""
    return wire.TaskGraph(tasks=map(_task_to_wire, graph.tasks), is_guessed=graph.is_guessed)


def _task_to_wire(task: Task) -> wire.Task:
    if isinstance(task, Computation):
        return wire.Task(computation=wire.Computation(duration_s=task.duration_s, after=task.after))
    return wire.Task(transfer=wire.Transfer(flow_group=task.flow_group, flows=task.flows, after=task.after))


def _flow_to_wire(flow: Flow) -> wire.Flow:
    return wire.Flow(
        source=_nic_to_wire(flow.source),
        destination=_nic_to_wire(flow.destination),
        size_bytes=flow.size_bytes,
        offset_s=flow.offset_s,
        five_tuple=None if flow.five_tuple is None else _five_tuple_to_wire(flow.five_tuple),
        held_source_port=flow.held_source_port,
        tcp_port=flow.tcp_port,
    )


def _five_tuple_to_wire(five_tuple: FiveTuple) -> wire.FiveTuple:
    return wire.FiveTuple(
        source_address=int.from_bytes(five_tuple.source_address.packed),
        destination_address=int.from_bytes(five_tuple.destination_address.packed),
        protocol=five_tuple.protocol,
        source_port=five_tuple.source_port,
        destination_port=five_tuple.destination_port,
    )


def five_tuple_from_wire(message: wire.FiveTuple) -> FiveTuple:
    """Convert a 5-tuple."""
    return FiveTuple(
        IPv4Address(message.source_address),
        IPv4Address(message.destination_address),
        message.protocol,
        message.source_port,
        message.destination_port,
    )


def directives_from_wire(pages: Sequence[wire.DirectivesResponse]) -> Directives:
    """Join the directives of all pages of one plan."""
    return Directives(
        pages[0].plan_number,
        pages[0].time_shift_s if pages[0].HasField("time_shift_s") else None,
        tuple(
            FlowDirective(
                flow.flow_group,
                flow.flow,
                _path_from_wire(flow.path),
                flow.level,
                flow.order,
                flow.source_port,
                flow.rate_bps if flow.HasField("rate_bps") else None,
            )
            for page in pages
            for flow in page.flows
        ),
        {group.name: group.slack_s for page in pages for group in page.flow_groups},
    )


def plan_from_wire(pages: Sequence[wire.GetPlanResponse]) -> PlanInForce:
    """Join the pages of a plan."""
    first = pages[0]
    return PlanInForce(
        first.plan_number,
        first.policy,
        first.num_rules,
        tuple(_job_decision_from_wire(job) for page in pages for job in page.jobs),
        tuple(_flow_decision_from_wire(flow) for page in pages for flow in page.flows),
    )


def locations_from_wire(message: wire.LocateNicsResponse, num_addresses: int) -> list[Nic | None]:
    """Convert the NICs that have so many addresses. Raises ValueError for an answer about more or fewer."""
    if len(message.locations) != num_addresses:
        raise ValueError(f"locations: the controller answered {len(message.locations)} for {num_addresses} addresses")
    return [_nic_from_wire(one.nic) if one.HasField("nic") else None for one in message.locations]


def path_loads_to_wire(pairs: Sequence[NicPair]) -> wire.GetPathLoadsRequest:
    """Convert a question about the paths between NICs."""
    return wire.GetPathLoadsRequest(
        pairs=[
            wire.NicPair(source=_nic_to_wire(pair.source), destination=_nic_to_wire(pair.destination)) for pair in pairs
        ]
    )


def path_loads_from_wire(message: wire.GetPathLoadsResponse, num_pairs: int) -> list[PathLoad]:
    """Convert the loads of the paths of so many pairs. Raises ValueError for an answer about more or fewer."""
    if len(message.loads) != num_pairs:
        raise ValueError(f"loads: the controller answered {len(message.loads)} for {num_pairs} pairs")
    return [PathLoad(one.load if one.HasField("load") else None, one.free_bps) for one in message.loads]


def _job_decision_from_wire(message: wire.JobDecision) -> JobDecision:
    return JobDecision(
        message.name,
        message.rank,
        message.level,
        message.intensity if message.HasField("intensity") else None,
        message.correction_factor if message.HasField("correction_factor") else None,
        message.priority if message.HasField("priority") else None,
        message.time_shift_s if message.HasField("time_shift_s") else None,
        message.reason,
    )


def _flow_decision_from_wire(message: wire.FlowDecision) -> FlowDecision:
    return FlowDecision(
        message.job,
        message.flow_group,
        message.flow,
        _nic_from_wire(message.source),
        _nic_from_wire(message.destination),
        five_tuple_from_wire(message.five_tuple),
        _path_from_wire(message.path),
        message.steered,
        message.level,
        message.order,
    )


def _nic_to_wire(nic: Nic) -> wire.Nic:
    return wire.Nic(host=nic.host, nic=nic.index)


def _nic_from_wire(message: wire.Nic) -> Nic:
    return Nic(message.host, message.nic)


def _path_from_wire(message: wire.Path) -> Path:
    return Path(tuple(message.nodes), tuple(message.links))


def _batches(messages: Sequence[MessageT]) -> Iterator[Sequence[MessageT]]:
    """Split messages into batches of about a mebibyte, each of at least one message."""
    first, size_bytes = 0, 0
    for position, message in enumerate(messages):
        size_bytes += message.ByteSize()
        if size_bytes > _BATCH_BYTES and position > first:
            yield messages[first:position]
            first, size_bytes = position, message.ByteSize()
    if first < len(messages):
        yield messages[first:]
