"""Registered jobs are read back from the database, each held against the fabric."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, TypeAdapter
from sqlalchemy import Connection, Row, select

from controller.errors import DaemonError
from controller.record.graph_codec import graph_from_text
from controller.registry.admission import check_flow, check_iteration, check_job, check_name
from controller.registry.errors import InvalidFieldError
from controller.registry.jobs import FlowGroupInstance, RegisteredFlow, RegisteredFlowGroup, RegisteredJob, StoredJob
from controller.registry.requests import FlowRequest, JobRequest, NicReference
from controller.store.rows import (
    DamagedRowError,
    Finite,
    OnDamage,
    StoredRow,
    Text,
    checked_json,
    checked_row,
    naming,
    raise_damage,
    reported,
    shown,
)
from controller.store.schema import FLOW_GROUP, INSTANCE, JOB, SILENCE, TASK_GRAPH
from policies.flows import FlowKey
from policies.job import Profile
from policies.task_graph import TaskGraph, check_sends
from topologies.addressing import FiveTuple
from topologies.fabric import Fabric

_FlowValues = tuple[str, int, str, int, int, Finite, int, int, int, int, int, bool]
_HOSTS: TypeAdapter[tuple[str, ...]] = TypeAdapter(tuple[str, ...])
_FLOWS: TypeAdapter[tuple[_FlowValues, ...]] = TypeAdapter(tuple[_FlowValues, ...])


class _JobRow(StoredRow):
    name: Text
    hosts: str
    gpus: int
    compute_s: Finite | None
    comm_start: Finite | None
    work: Finite | None
    arrival_s: Finite
    owner_token: Text
    tenant: Text
    num_groups: Annotated[int, Field(ge=0)] | None


class _GroupRow(StoredRow):
    name: Text
    position: int
    flows: str


_Group = tuple[_GroupRow, Sequence[_FlowValues]]


class _GraphRow(StoredRow):
    body: str


class _InstanceRow(StoredRow):
    job: str
    flow_group: str
    iteration: int
    reference_s: Finite
    has_ended: bool


class _SilenceRow(StoredRow):
    job: str
    silent_s: Annotated[float, Field(ge=0, allow_inf_nan=False)]


class MisfitError(DaemonError):
    """Stored jobs that do not fit the fabric: ``problems`` by name, in order; the message tells of the first."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        first, problem = next(iter(problems.items()))
        super().__init__(f"job {shown(first)} does not fit the topology: {problem}")
        self.problems = dict(problems)


@dataclass(frozen=True, slots=True)
class FetchedJobs:
    """Rows of all jobs, as the database has them."""

    jobs: Sequence[Row[Any]]
    flow_groups: Sequence[Row[Any]]
    task_graphs: Sequence[Row[Any]]
    instances: Sequence[Row[Any]]
    silences: Sequence[Row[Any]]


def fetch_jobs(connection: Connection) -> FetchedJobs:
    """Fetch the rows of all jobs, in order of their names."""
    return FetchedJobs(
        connection.execute(select(JOB).order_by(JOB.c.name)).all(),
        connection.execute(select(FLOW_GROUP).order_by(FLOW_GROUP.c.job, FLOW_GROUP.c.position)).all(),
        connection.execute(select(TASK_GRAPH)).all(),
        connection.execute(select(INSTANCE)).all(),
        connection.execute(select(SILENCE)).all(),
    )


@dataclass(frozen=True, slots=True)
class CheckedJob:
    """A job whose rows are what they claim, before it is held against a fabric."""

    row: _JobRow
    request: JobRequest
    flow_groups: Sequence[_Group]
    task_graph: TaskGraph | None
    instances: Mapping[str, FlowGroupInstance]
    silent_s: float


def decode_jobs(fabric: Fabric, rows: FetchedJobs) -> list[StoredJob]:
    """Decode the rows of all jobs.

    Raises:
        DamagedRowError: A row cannot be what it claims.
        MisfitError: Jobs were registered on another fabric.
    """
    return fit_jobs(fabric, check_jobs(rows))


def check_jobs(rows: FetchedJobs, on_damage: OnDamage = raise_damage) -> list[CheckedJob]:
    """Check the rows of all jobs. Jobs with damaged rows are left out, where ``on_damage`` returns."""
    silences_s = {}
    for found in rows.silences:
        with reported(on_damage):
            silences_s[found.job] = checked_row(_SilenceRow, SILENCE.name, found.job, found).silent_s
    instances: defaultdict[str, dict[str, FlowGroupInstance]] = defaultdict(dict)
    for found in rows.instances:
        with reported(on_damage):
            instance = checked_row(_InstanceRow, INSTANCE.name, (found.job, found.flow_group), found)
            with naming(INSTANCE.name, (found.job, found.flow_group)):
                check_iteration(instance.iteration, "iteration")
            newest = FlowGroupInstance(instance.iteration, instance.reference_s, instance.has_ended)
            instances[instance.job][instance.flow_group] = newest
    num_groups = Counter(found.job for found in rows.flow_groups)
    checked_groups: defaultdict[str, list[_Group]] = defaultdict(list)
    for found in rows.flow_groups:
        with reported(on_damage):
            checked_groups[found.job].append(_checked_group(found))
    graphs = {}
    for found in rows.task_graphs:
        with reported(on_damage):
            graphs[found.job] = _checked_graph(found)
    jobs = []
    for found in rows.jobs:
        with reported(on_damage):
            row, request = _checked_request(found)
            if len(checked_groups[row.name]) == num_groups[row.name]:
                flow_groups = _registered_groups(row, checked_groups[row.name])
                graph = graphs.get(row.name)
                if graph is not None:
                    with naming(TASK_GRAPH.name, row.name, "body: "):
                        check_sends(graph, [len(flows) for _, flows in flow_groups])
                silent_s = silences_s.get(row.name, 0.0)
                jobs.append(CheckedJob(row, request, flow_groups, graph, instances[row.name], silent_s))
    return jobs


def fit_jobs(fabric: Fabric, checked: Iterable[CheckedJob], on_damage: OnDamage = raise_damage) -> list[StoredJob]:
    """Hold jobs against a fabric, and their 5-tuples against one another. Raises as ``decode_jobs`` does."""
    jobs, misfits = [], {}
    for job in checked:
        try:
            fitting = _fitting(job, fabric)
        except InvalidFieldError as error:
            misfits[job.row.name] = str(error)
        else:
            jobs.append(StoredJob(fitting, job.instances, job.silent_s))
    if misfits:
        raise MisfitError(misfits)
    _check_five_tuples((stored.job for stored in jobs), on_damage)
    return jobs


def _check_five_tuples(jobs: Iterable[RegisteredJob], on_damage: OnDamage) -> None:
    owners: dict[FiveTuple, FlowKey] = {}
    for job in jobs:
        for key, five_tuple in job.five_tuples:
            if (owner := owners.setdefault(five_tuple, key)) != key:
                problem = f"flows: {five_tuple} is that of {owner.job}/{owner.group}"
                on_damage(DamagedRowError(FLOW_GROUP.name, (key.job, key.group), problem))


def _checked_request(found: Row[Any]) -> tuple[_JobRow, JobRequest]:
    row = checked_row(_JobRow, JOB.name, found.name, found)
    with naming(JOB.name, row.name):
        profile = None
        if row.compute_s is not None and row.comm_start is not None and row.work is not None:
            profile = Profile(row.compute_s, row.comm_start, row.work)
        elif (row.compute_s, row.comm_start, row.work) != (None, None, None):
            raise ValueError("has a part of a profile")
    hosts = checked_json(_HOSTS, JOB.name, row.name, "hosts", row.hosts)
    return row, JobRequest(row.name, hosts, row.gpus, profile)


def _registered_groups(row: _JobRow, groups: Sequence[_Group]) -> Sequence[_Group]:
    registered = [group for group in groups if row.num_groups is None or group[0].position < row.num_groups]
    if row.num_groups not in (None, len(registered)):
        raise DamagedRowError(JOB.name, row.name, f"num_groups: {row.num_groups}, where {len(registered)} are there")
    with naming(FLOW_GROUP.name, row.name):
        if len({group.name for group, _ in registered}) != len(registered):
            raise ValueError("two groups have the same name")
    return registered


def _checked_group(found: Row[Any]) -> _Group:
    key = (found.job, found.position)
    row = checked_row(_GroupRow, FLOW_GROUP.name, key, found)
    return row, checked_json(_FLOWS, FLOW_GROUP.name, key, "flows", row.flows)


def _checked_graph(found: Row[Any]) -> TaskGraph:
    row = checked_row(_GraphRow, TASK_GRAPH.name, found.job, found)
    with naming(TASK_GRAPH.name, found.job, "body: "):
        return graph_from_text(row.body)


def _fitting(job: CheckedJob, fabric: Fabric) -> RegisteredJob:
    """Hold a job against a fabric. Raises InvalidFieldError."""
    check_job(job.request, fabric)
    flow_groups = []
    for group, stored in job.flow_groups:
        check_name(group.name, "name")
        flows = [
            _fitting_flow(values, job.request, fabric, f"flow_groups[{group.position}].flows[{number}]")
            for number, values in enumerate(stored)
        ]
        flow_groups.append(RegisteredFlowGroup(group.name, tuple(flows)))
    row = job.row
    return RegisteredJob(job.request, row.arrival_s, row.owner_token, tuple(flow_groups), row.tenant, job.task_graph)


def _fitting_flow(values: _FlowValues, job: JobRequest, fabric: Fabric, field: str) -> RegisteredFlow:
    source_host, source_index, destination_host, destination_index, size_bytes, offset_s, *packet, is_assigned = values
    five_tuple = FiveTuple.of_numbers(packet)
    ends = NicReference(source_host, source_index), NicReference(destination_host, destination_index)
    source, destination = check_flow(FlowRequest(*ends, size_bytes, offset_s, five_tuple), job, fabric, field)
    return RegisteredFlow(source, destination, size_bytes, offset_s, five_tuple, is_assigned)
