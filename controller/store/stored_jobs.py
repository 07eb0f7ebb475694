"""Registered jobs are read back from the database, each held against the fabric."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Annotated, Any

from pydantic import Field, TypeAdapter
from sqlalchemy import Connection, Row, select

from controller.errors import DaemonError
from controller.record.graph_codec import graph_from_text
from controller.registry.admission import check_flow, check_iteration, check_job, check_name
from controller.registry.errors import InvalidFieldError
from controller.registry.jobs import FlowGroupInstance, RegisteredFlow, RegisteredFlowGroup, RegisteredJob, StoredJob
from controller.registry.requests import FlowRequest, JobRequest, NicReference
from controller.store.rows import DamagedRowError, Finite, StoredRow, Text, checked_json, checked_row, naming, shown
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
    """Stored jobs that do not fit the fabric; ``jobs`` are their names, and the message tells of the first."""

    def __init__(self, jobs: Sequence[str], message: str) -> None:
        super().__init__(message)
        self.jobs = tuple(jobs)


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


def decode_jobs(fabric: Fabric, rows: FetchedJobs) -> list[StoredJob]:
    """Decode the rows of all jobs.

    Raises:
        DamagedRowError: A row cannot be what it claims.
        MisfitError: Jobs were registered on another fabric.
    """
    silences_s = {row.job: checked_row(_SilenceRow, SILENCE.name, row.job, row).silent_s for row in rows.silences}
    instances: defaultdict[str, dict[str, FlowGroupInstance]] = defaultdict(dict)
    for found in rows.instances:
        instance = checked_row(_InstanceRow, INSTANCE.name, (found.job, found.flow_group), found)
        with naming(INSTANCE.name, (found.job, found.flow_group)):
            check_iteration(instance.iteration, "iteration")
        newest = FlowGroupInstance(instance.iteration, instance.reference_s, instance.has_ended)
        instances[instance.job][instance.flow_group] = newest
    groups = {job: list(of_job) for job, of_job in groupby(rows.flow_groups, attrgetter("job"))}
    graphs = {graph.job: graph for graph in rows.task_graphs}
    jobs, misfits = [], {}
    for row in rows.jobs:
        try:
            job = _job_from(row, groups.get(row.name, ()), graphs.get(row.name), fabric)
        except InvalidFieldError as error:
            misfits[row.name] = str(error)
        else:
            jobs.append(StoredJob(job, instances[row.name], silences_s.get(row.name, 0.0)))
    if misfits:
        first, problem = next(iter(misfits.items()))
        raise MisfitError(tuple(misfits), f"job {shown(first)} does not fit the topology: {problem}")
    _check_five_tuples(stored.job for stored in jobs)
    return jobs


def _check_five_tuples(jobs: Iterable[RegisteredJob]) -> None:
    owners: dict[FiveTuple, FlowKey] = {}
    for job in jobs:
        for key, five_tuple in job.five_tuples:
            if (owner := owners.setdefault(five_tuple, key)) != key:
                raise DamagedRowError(
                    FLOW_GROUP.name, (key.job, key.group), f"flows: {five_tuple} is that of {owner.job}/{owner.group}"
                )


def _job_from(found: Row[Any], groups: Iterable[Row[Any]], graph: Row[Any] | None, fabric: Fabric) -> RegisteredJob:
    row = checked_row(_JobRow, JOB.name, found.name, found)
    with naming(JOB.name, row.name):
        profile = None
        if row.compute_s is not None and row.comm_start is not None and row.work is not None:
            profile = Profile(row.compute_s, row.comm_start, row.work)
        elif (row.compute_s, row.comm_start, row.work) != (None, None, None):
            raise ValueError("has a part of a profile")
    hosts = checked_json(_HOSTS, JOB.name, row.name, "hosts", row.hosts)
    request = JobRequest(row.name, hosts, row.gpus, profile)
    check_job(request, fabric)
    registered = [group for group in groups if row.num_groups is None or group.position < row.num_groups]
    if row.num_groups not in (None, len(registered)):
        raise DamagedRowError(JOB.name, row.name, f"num_groups: {row.num_groups}, where {len(registered)} are there")
    flow_groups = tuple(_group_from(group, request, fabric) for group in registered)
    with naming(FLOW_GROUP.name, row.name):
        if len({group.name for group in flow_groups}) != len(flow_groups):
            raise ValueError("two groups have the same name")
    task_graph = None if graph is None else _graph_from(graph, flow_groups)
    return RegisteredJob(request, row.arrival_s, row.owner_token, flow_groups, row.tenant, task_graph)


def _graph_from(found: Row[Any], flow_groups: Sequence[RegisteredFlowGroup]) -> TaskGraph:
    row = checked_row(_GraphRow, TASK_GRAPH.name, found.job, found)
    with naming(TASK_GRAPH.name, found.job, "body: "):
        graph = graph_from_text(row.body)
        check_sends(graph, [len(group.flows) for group in flow_groups])
    return graph


def _group_from(found: Row[Any], job: JobRequest, fabric: Fabric) -> RegisteredFlowGroup:
    key = (found.job, found.position)
    row = checked_row(_GroupRow, FLOW_GROUP.name, key, found)
    check_name(row.name, "name")
    stored = checked_json(_FLOWS, FLOW_GROUP.name, key, "flows", row.flows)
    flows = [
        _flow_from(values, job, fabric, f"flow_groups[{row.position}].flows[{number}]")
        for number, values in enumerate(stored)
    ]
    return RegisteredFlowGroup(row.name, tuple(flows))


def _flow_from(values: _FlowValues, job: JobRequest, fabric: Fabric, field: str) -> RegisteredFlow:
    source_host, source_index, destination_host, destination_index, size_bytes, offset_s, *packet, is_assigned = values
    five_tuple = FiveTuple(*packet)
    ends = NicReference(source_host, source_index), NicReference(destination_host, destination_index)
    source, destination = check_flow(FlowRequest(*ends, size_bytes, offset_s, five_tuple), job, fabric, field)
    return RegisteredFlow(source, destination, size_bytes, offset_s, five_tuple, is_assigned)
