"""Registered jobs as rows: what has changed written, all of them read back."""

import json
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, insert, select, update

from controller.admission import check_flow, check_job
from controller.policy.profile import Profile
from controller.registration import (
    FlowRequest,
    InvalidFieldError,
    JobChange,
    JobRequest,
    NicReference,
    RegisteredFlow,
    RegisteredFlowGroup,
    RegisteredJob,
)
from controller.store.schema import FLOW_GROUP, JOB, PROPERTY
from topologies.addressing import FiveTuple
from topologies.fabric import Fabric

_Values = dict[str, Any]

_JOB_OF = JOB.c.name == bindparam("known_name")
_GROUP_OF = (FLOW_GROUP.c.job == bindparam("of_job")) & (FLOW_GROUP.c.position == bindparam("at"))
_JOB_GONE = delete(JOB).where(_JOB_OF)
_JOB_CHANGED = update(JOB).where(_JOB_OF)
_GROUP_GONE = delete(FLOW_GROUP).where(_GROUP_OF)
_GROUP_CHANGED = update(FLOW_GROUP).where(_GROUP_OF)


class ForeignJobError(ValueError):
    """A job that cannot be on this fabric; the message names it."""


def write_changes(changes: Iterable[JobChange], connection: Connection) -> None:
    """Write what these changes, one after the other, make of the jobs."""
    firsts: dict[str, JobChange] = {}
    lasts: dict[str, JobChange] = {}
    for change in changes:
        firsts.setdefault(change.name, change)
        lasts[change.name] = change
    gone, came, changed = [], [], []
    groups = _GroupChanges()
    for name, first in firsts.items():
        before, after = first.before, lasts[name].after
        if after is None:
            if before is not None:
                gone.append({"known_name": name})
            continue
        if before is None:
            came.append(_job_values(after))
        elif _job_values(before) != _job_values(after):
            changed.append({"known_name": name, **_job_values(after)})
        groups.note(name, before.flow_groups if before else (), after.flow_groups)
    for statement, rows in (
        (_JOB_GONE, gone),
        (insert(JOB), came),
        (_JOB_CHANGED, changed),
        (_GROUP_GONE, groups.gone),
        (_GROUP_CHANGED, groups.changed),
        (insert(FLOW_GROUP), groups.came),
    ):
        if rows:
            connection.execute(statement, rows)


class _GroupChanges:
    def __init__(self) -> None:
        self.gone: list[_Values] = []
        self.changed: list[_Values] = []
        self.came: list[_Values] = []

    def note(self, job: str, before: Sequence[RegisteredFlowGroup], after: Sequence[RegisteredFlowGroup]) -> None:
        """A job's groups, which keep their positions, were ``before`` and are ``after``."""
        for position, group in enumerate(after):
            if position >= len(before):
                self.came.append({"job": job, "position": position, **_group_values(group)})
            elif before[position] is not group:
                self.changed.append({"of_job": job, "at": position, **_group_values(group)})
        self.gone += [{"of_job": job, "at": position} for position in range(len(after), len(before))]


def read_jobs(fabric: Fabric, connection: Connection) -> list[RegisteredJob]:
    """All jobs, by name. Raises ForeignJobError where one cannot be on the fabric."""
    rows = connection.execute(select(FLOW_GROUP).order_by(FLOW_GROUP.c.job, FLOW_GROUP.c.position))
    groups = {job: list(of_job) for job, of_job in groupby(rows, attrgetter("job"))}
    return [
        _job_from(row, groups.get(row.name, ()), fabric) for row in connection.execute(select(JOB).order_by(JOB.c.name))
    ]


def complete_from_s(first_s: float, connection: Connection) -> float:
    """When every job that there is was known, or will be; ``first_s`` for the first controller on this database."""
    name = "complete_from_s"
    known = connection.scalar(select(PROPERTY.c.value).where(PROPERTY.c.name == name))
    if known is None:
        connection.execute(insert(PROPERTY), {"name": name, "value": first_s})
    return first_s if known is None else float(known)


def _job_values(job: RegisteredJob) -> _Values:
    request = job.request
    return {
        "name": request.name,
        "hosts": json.dumps(request.hosts),
        "gpus": request.gpus,
        "compute_s": None if request.profile is None else request.profile.compute_s,
        "comm_start": None if request.profile is None else request.profile.comm_start,
        "work": None if request.profile is None else request.profile.work,
        "arrival_s": job.arrival_s,
        "owner_token": job.owner_token,
    }


def _group_values(group: RegisteredFlowGroup) -> _Values:
    return {"name": group.name, "flows": json.dumps([_flow_values(flow) for flow in group.flows])}


def _flow_values(flow: RegisteredFlow) -> list[Any]:
    five_tuple = flow.five_tuple
    return [
        *(flow.source.host, flow.source.index, flow.destination.host, flow.destination.index),
        *(flow.size_bytes, flow.offset_s),
        *(five_tuple.source_address, five_tuple.destination_address, five_tuple.protocol),
        *(five_tuple.source_port, five_tuple.destination_port, flow.is_assigned),
    ]


def _job_from(row: Row[Any], groups: Iterable[Row[Any]], fabric: Fabric) -> RegisteredJob:
    profile = None if row.work is None else Profile(row.compute_s, row.comm_start, row.work)
    request = JobRequest(row.name, tuple(json.loads(row.hosts)), row.gpus, profile)
    try:
        check_job(request, fabric)
        flow_groups = tuple(_group_from(group, request, fabric) for group in groups)
    except InvalidFieldError as error:
        raise ForeignJobError(f"job {row.name!r} was registered on another topology: {error}") from error
    return RegisteredJob(request, row.arrival_s, row.owner_token, flow_groups)


def _group_from(row: Row[Any], job: JobRequest, fabric: Fabric) -> RegisteredFlowGroup:
    flows = [
        _flow_from(values, job, fabric, f"flow_groups[{row.position}].flows[{number}]")
        for number, values in enumerate(json.loads(row.flows))
    ]
    return RegisteredFlowGroup(row.name, tuple(flows))


def _flow_from(values: Sequence[Any], job: JobRequest, fabric: Fabric, field: str) -> RegisteredFlow:
    source_host, source_index, destination_host, destination_index, size_bytes, offset_s, *packet, is_assigned = values
    five_tuple = FiveTuple(*packet)
    ends = NicReference(source_host, source_index), NicReference(destination_host, destination_index)
    source, destination = check_flow(FlowRequest(*ends, size_bytes, offset_s, five_tuple), job, fabric, field)
    return RegisteredFlow(source, destination, size_bytes, offset_s, five_tuple, is_assigned)
