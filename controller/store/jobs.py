"""Registered jobs are written as rows of the database; ``controller.store.stored_jobs`` reads them."""

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, Executable, bindparam, delete, insert, select, update

from controller.record.graph_codec import graph_text
from controller.registry.jobs import FlowGroupInstance, RegisteredFlow, RegisteredFlowGroup, RegisteredJob
from controller.registry.journal import Change, InstanceChange, JobChange, JobOverwrite, SilenceChange
from controller.store.batches import BYTES_PER_TRANSACTION, ROWS_PER_TRANSACTION, batches, execute
from controller.store.schema import FLOW_GROUP, INSTANCE, JOB, MEASURED, SILENCE, TASK_GRAPH

_Values = dict[str, Any]

_JOB_OF = JOB.c.name == bindparam("known_name")
_GROUP_OF = (FLOW_GROUP.c.job == bindparam("of_job")) & (FLOW_GROUP.c.position == bindparam("at"))
_JOB_GONE = delete(JOB).where(_JOB_OF)
_JOB_CHANGED = update(JOB).where(_JOB_OF)
_GROUPS_BEHIND_GONE = delete(FLOW_GROUP).where(
    (FLOW_GROUP.c.job == bindparam("of_job")) & (FLOW_GROUP.c.position >= bindparam("first"))
)
_GROUP_CHANGED = update(FLOW_GROUP).where(_GROUP_OF)
_GRAPH_GONE = delete(TASK_GRAPH).where(TASK_GRAPH.c.job == bindparam("of_job"))
_INSTANCE_GONE = delete(INSTANCE).where(
    (INSTANCE.c.job == bindparam("of_job")) & (INSTANCE.c.flow_group == bindparam("of_group"))
)
_SILENCE_GONE = delete(SILENCE).where(SILENCE.c.job == bindparam("of_job"))


def write_changes(changes: Iterable[Change], connection: Connection) -> None:
    """Write the outcome of these changes, which were made one after the other."""
    batch = _Batch()
    for change in changes:
        batch.add(change)
    measured = _measured(batch.overwritten, connection)
    for statement, rows in (*batch.statements(), (insert(MEASURED), batch.still_valid(measured))):
        execute(connection, statement, rows)


def _measured(jobs: Collection[str], connection: Connection) -> list[_Values]:
    """The measurements of these jobs, which are deleted with their rows."""
    if not jobs:
        return []
    rows = connection.execute(select(MEASURED).where(MEASURED.c.job.in_(jobs)))
    return [dict(row) for row in rows.mappings()]


class _Batch:
    """The outcome of several changes for every job."""

    def __init__(self) -> None:
        self.overwritten: set[str] = set()
        self._befores: dict[str, RegisteredJob | None] = {}
        self._afters: dict[str, RegisteredJob | None] = {}
        self._num_staged: dict[str, int] = {}
        self._gone: dict[str, None] = {}
        """Jobs whose rows are deleted first, with all rows that refer to them, whatever replaces them."""
        self._instances: dict[tuple[str, str], FlowGroupInstance] = {}
        self._silences_s: dict[str, float] = {}

    def add(self, change: Change) -> None:
        """Add the next change."""
        match change:
            case JobChange(job, before, after, num_staged=num_staged):
                self._num_staged[job] = num_staged
                if after is None:
                    self._forget(job, is_stored=before is not None)
                self._befores.setdefault(job, before)
                self._afters[job] = after
            case JobOverwrite(job, state):
                self._forget(job, is_stored=True)
                self.overwritten.add(job)
                self._afters[job] = state
            case InstanceChange(job, flow_group, _, instance):
                self._instances[job, flow_group] = instance
            case SilenceChange(job, _, silent_s):
                self._silences_s[job] = silent_s

    def still_valid(self, measured: Iterable[_Values]) -> list[_Values]:
        """Those of these measurements whose jobs are registered still."""
        arrivals_s = {name: job.arrival_s for name, job in self._afters.items() if job is not None}
        return [of_job for of_job in measured if arrivals_s.get(of_job["job"]) == of_job["arrival_s"]]

    def statements(self) -> Iterator[tuple[Executable, list[_Values]]]:
        """Statements with their rows, in the order in which they have to be executed."""
        came, changed = [], []
        groups, graphs = _GroupChanges(), _GraphChanges()
        for name, after in self._afters.items():
            before = self._befores[name]
            if after is None:
                continue
            if before is None:
                came.append(_job_values(after))
            elif _job_values(before) != _job_values(after):
                changed.append({"known_name": name, **_job_values(after)})
            groups.add(before, after, self._num_staged.get(name, 0))
            graphs.add(before, after)
        instances = [_instance_values(*key, instance) for key, instance in self._instances.items()]
        yield _JOB_GONE, [{"known_name": name} for name in self._gone]
        yield insert(JOB), came
        yield _JOB_CHANGED, changed
        yield _GROUPS_BEHIND_GONE, groups.behind_gone
        yield _GROUP_CHANGED, groups.changed
        yield insert(FLOW_GROUP), groups.came
        yield _GRAPH_GONE, graphs.gone
        yield insert(TASK_GRAPH), graphs.came
        yield _INSTANCE_GONE, [{"of_job": job, "of_group": flow_group} for job, flow_group in self._instances]
        yield insert(INSTANCE), instances
        yield _SILENCE_GONE, [{"of_job": job} for job in self._silences_s]
        yield insert(SILENCE), [{"job": job, "silent_s": of} for job, of in self._silences_s.items() if of]

    def _forget(self, name: str, *, is_stored: bool) -> None:
        if is_stored:
            self._gone[name] = None
        self._befores[name] = None
        self._silences_s.pop(name, None)
        for key in [key for key in self._instances if key[0] == name]:
            del self._instances[key]


class _GroupChanges:
    def __init__(self) -> None:
        self.behind_gone: list[_Values] = []
        self.changed: list[_Values] = []
        self.came: list[_Values] = []

    def add(self, before: RegisteredJob | None, after: RegisteredJob, num_staged: int) -> None:
        """Add the changes of a job's groups, which keep their positions; the first ``num_staged`` are there already."""
        job, groups = after.request.name, after.flow_groups
        known = before.flow_groups if before else ()
        for position, group in enumerate(groups):
            if position >= len(known):
                if position >= num_staged:
                    self.came.append(_group_row(job, position, group))
            elif known[position] is not group:
                self.changed.append({"of_job": job, "at": position, **_group_values(group)})
        num_there = max(len(known), num_staged)
        if before is not None and num_there != len(groups):
            # Behind those that are known there may be some of a registration that was cut off.
            self.behind_gone.append({"of_job": job, "first": min(num_there, len(groups))})


class _GraphChanges:
    def __init__(self) -> None:
        self.gone: list[_Values] = []
        self.came: list[_Values] = []

    def add(self, before: RegisteredJob | None, after: RegisteredJob) -> None:
        """Add the change of a job's task graph."""
        job, known = after.request.name, None if before is None else before.task_graph
        if after.task_graph is known:
            return
        if known is not None:
            self.gone.append({"of_job": job})
        if after.task_graph is not None:
            self.came.append({"job": job, "body": graph_text(after.task_graph)})


def stage_groups(change: JobChange, first: int, connection: Connection) -> int:
    """Write a bounded part of the groups that a job gets, from position ``first`` on, before the change itself.

    They count only once that is written. Returns the position behind them.
    """
    assert change.before is not None
    assert change.after is not None
    groups = change.after.flow_groups
    if first == len(change.before.flow_groups):
        execute(connection, _GROUPS_BEHIND_GONE, [{"of_job": change.job, "first": first}])
    rows = (_group_row(change.job, position, groups[position]) for position in range(first, len(groups)))
    part = next(batches(rows, ROWS_PER_TRANSACTION, BYTES_PER_TRANSACTION))
    execute(connection, insert(FLOW_GROUP), part)
    return first + len(part)


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
        "tenant": job.tenant,
        "num_groups": len(job.flow_groups),
    }


def _instance_values(job: str, flow_group: str, instance: FlowGroupInstance) -> _Values:
    return {"job": job, "flow_group": flow_group, **asdict(instance)}


def _group_row(job: str, position: int, group: RegisteredFlowGroup) -> _Values:
    return {"job": job, "position": position, **_group_values(group)}


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
