"""Requests that succeed, by method: mutations of them reach further than what is drawn from nothing."""

from collections.abc import Callable, Mapping
from functools import cache
from random import Random

from finsy.proto import gnmi, p4i, p4r
from google.protobuf import text_format
from google.protobuf.message import Message

from hostlib.wire import trainyard_pb2 as wire
from p4src import P4INFO, PROGRAM
from topologies.addressing import regular_interface

JOBS = tuple(f"j{number}" for number in range(6))
TOKENS = ("token-a", "token-b")
HOSTS = ("h0", "h1", "h2", "h3")
GROUPS = ("g0", "g1")
ELECTION = p4r.Uint128(high=0, low=1000)
_PROFILE = wire.Profile(compute_s=1.0, comm_start=0.5, work=16.0)


def template(path: str, draws: Random) -> Message | None:
    """Return a request for the method with this path; None where an empty one is as good."""
    make = _TEMPLATES.get(path.rpartition("/")[2])
    return None if make is None else make(draws)


def arbitration() -> p4r.StreamMessageRequest:
    """Return the request by which a client becomes the primary of the first switch."""
    update = p4r.MasterArbitrationUpdate(device_id=1, election_id=ELECTION)
    return p4r.StreamMessageRequest(arbitration=update)


def _job(draws: Random) -> str:
    return draws.choice(JOBS)


def _token(job: str) -> str:
    """Return the token under which the fuzzer's templates register a job."""
    return TOKENS[JOBS.index(job) % len(TOKENS)]


def _hosts(job: str) -> tuple[str, str]:
    return HOSTS[JOBS.index(job) % 2], HOSTS[2 + JOBS.index(job) % 2]


def _register_job(draws: Random) -> Message:
    job = _job(draws)
    profile = _PROFILE if JOBS.index(job) < len(JOBS) - 1 else None
    return wire.RegisterJobRequest(
        protocol_version="trainyard.v1", name=job, hosts=_hosts(job), gpus=8, profile=profile, owner_token=_token(job)
    )


def _register_flow_groups(draws: Random) -> Message:
    job = _job(draws)
    source, destination = (wire.Nic(host=host, nic=0) for host in _hosts(job))
    flow = wire.Flow(source=source, destination=destination, size_bytes=1_000_000)
    group = wire.FlowGroup(name=draws.choice(GROUPS), flows=[flow] * draws.choice((1, 2, 5)))
    graph = draws.choice((None, _task_graph(group.name)))
    return wire.RegisterFlowGroupsRequest(job=job, owner_token=_token(job), flow_groups=[group], task_graph=graph)


def _task_graph(group: str) -> wire.TaskGraph:
    tasks = (
        wire.Task(computation=wire.Computation(duration_s=0.5)),
        wire.Task(transfer=wire.Transfer(flow_group=group, after=[0])),
        wire.Task(computation=wire.Computation(duration_s=0.5, after=[0])),
    )
    return wire.TaskGraph(tasks=tasks)


def _start_flow_groups(draws: Random) -> Message:
    job = _job(draws)
    instance = wire.FlowGroupInstance(flow_group=draws.choice(GROUPS), iteration=draws.randrange(10))
    return wire.StartFlowGroupsRequest(job=job, owner_token=_token(job), instances=[instance])


def _of_job(request: Callable[..., Message]) -> Callable[[Random], Message]:
    def make(draws: Random) -> Message:
        job = _job(draws)
        return request(job=job, owner_token=_token(job))

    return make


def _report_profile(draws: Random) -> Message:
    job = _job(draws)
    graph = draws.choice((None, _task_graph(draws.choice(GROUPS))))
    return wire.ReportProfileRequest(job=job, owner_token=_token(job), profile=_PROFILE, task_graph=graph)


def _exchange_probes(draws: Random) -> Message:
    return wire.ExchangeProbesRequest(
        protocol_version="trainyard.v1",
        host=draws.choice(HOSTS),
        owner_token="agent",
        session=1,
        number=draws.randrange(1, 1 << 40),
        clock_ns=draws.randrange(1 << 40),
        reports=[wire.ProbeReport(session=1, sequence=draws.randrange(1000), sent_ns=1, stack=draws.randbytes(60))],
    )


def _locate_nics(draws: Random) -> Message:
    addresses = [
        regular_interface(draws.randrange(2 * len(HOSTS)), nic_index=0).address
        for _ in range(draws.choice((1, 4, 4096)))
    ]
    return wire.LocateNicsRequest(addresses=addresses)


def _get_path_loads(draws: Random) -> Message:
    nics = [wire.Nic(host=host, nic=nic) for host in HOSTS for nic in range(2)]
    pairs = [
        wire.NicPair(source=draws.choice(nics), destination=draws.choice(nics))
        for _ in range(draws.choice((1, 4, 1024)))
    ]
    return wire.GetPathLoadsRequest(pairs=pairs)


@cache
def _pipeline() -> p4r.ForwardingPipelineConfig:
    config = p4r.ForwardingPipelineConfig(p4_device_config=PROGRAM.read_bytes())
    text_format.Parse(P4INFO.read_text(), config.p4info)
    return config


def _write(draws: Random) -> Message:
    table = draws.choice(_pipeline().p4info.tables)
    chosen = draws.choice(table.action_refs).id
    action = next(action for action in _pipeline().p4info.actions if action.preamble.id == chosen)
    parameters = [p4r.Action.Param(param_id=each.id, value=_value(each.bitwidth, draws)) for each in action.params]
    matches = [_match(field, draws) for field in table.match_fields]
    entry = p4r.TableEntry(
        table_id=table.preamble.id,
        match=matches,
        action=p4r.TableAction(action=p4r.Action(action_id=chosen, params=parameters)),
        priority=1 if any(match.HasField("ternary") for match in matches) else 0,
    )
    entity = p4r.Entity(table_entry=entry)
    update = p4r.Update(type=draws.choice((1, 2, 3)), entity=entity)
    return p4r.WriteRequest(device_id=1, election_id=ELECTION, updates=[update])


def _match(field: p4i.MatchField, draws: Random) -> p4r.FieldMatch:
    value = _value(field.bitwidth, draws)
    match field.match_type:
        case p4i.MatchField.LPM:
            return p4r.FieldMatch(field_id=field.id, lpm=p4r.FieldMatch.LPM(value=value, prefix_len=field.bitwidth))
        case p4i.MatchField.TERNARY:
            mask = ((1 << field.bitwidth) - 1).to_bytes((field.bitwidth + 7) // 8, "big")
            return p4r.FieldMatch(field_id=field.id, ternary=p4r.FieldMatch.Ternary(value=value, mask=mask))
    return p4r.FieldMatch(field_id=field.id, exact=p4r.FieldMatch.Exact(value=value))


def _value(bits: int, draws: Random) -> bytes:
    number = draws.getrandbits(bits)
    return number.to_bytes(max(1, (number.bit_length() + 7) // 8), "big")


def _read(draws: Random) -> Message:
    kinds = (
        p4r.Entity(table_entry=p4r.TableEntry(table_id=draws.choice(_pipeline().p4info.tables).preamble.id)),
        p4r.Entity(table_entry=p4r.TableEntry()),
        p4r.Entity(counter_entry=p4r.CounterEntry()),
        p4r.Entity(register_entry=p4r.RegisterEntry()),
        p4r.Entity(action_profile_member=p4r.ActionProfileMember()),
    )
    return p4r.ReadRequest(device_id=1, entities=[draws.choice(kinds)])


def _set_pipeline(draws: Random) -> Message:
    return p4r.SetForwardingPipelineConfigRequest(
        device_id=1, election_id=ELECTION, action=draws.choice((1, 2, 3)), config=_pipeline()
    )


def _ports() -> gnmi.Path:
    return gnmi.Path(elem=[gnmi.PathElem(name=name) for name in ("interfaces", "interface", "state", "oper-status")])


_TEMPLATES: Mapping[str, Callable[[Random], Message]] = {
    "RegisterJob": _register_job,
    "RegisterFlowGroups": _register_flow_groups,
    "StartFlowGroups": _start_flow_groups,
    "ReportProfile": _report_profile,
    "Heartbeat": _of_job(wire.HeartbeatRequest),
    "Directives": _of_job(wire.DirectivesRequest),
    "DeregisterJob": _of_job(wire.DeregisterJobRequest),
    "ExchangeProbes": _exchange_probes,
    "LocateNics": _locate_nics,
    "GetPathLoads": _get_path_loads,
    "Write": _write,
    "Read": _read,
    "SetForwardingPipelineConfig": _set_pipeline,
    "GetForwardingPipelineConfig": lambda _: p4r.GetForwardingPipelineConfigRequest(device_id=1),
    "StreamChannel": lambda _: arbitration(),
    "Get": lambda _: gnmi.GetRequest(path=[_ports()]),
    "Subscribe": lambda _: gnmi.SubscribeRequest(
        subscribe=gnmi.SubscriptionList(subscription=[gnmi.Subscription(path=_ports())], mode="ONCE")
    ),
}
