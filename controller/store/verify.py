"""Verifies databases and backups: every row is read as a controller reads it, and all that is damaged is told."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from sqlalchemy import Connection, Row, Table, exists, select
from sqlalchemy.exc import DBAPIError

from controller.record.decisions import DecisionDecoder
from controller.record.facts import RecordError
from controller.store import facts
from controller.store.audit_entries import decoded_call, decoded_write
from controller.store.copies import up_to_date
from controller.store.database import Database
from controller.store.drains import decoded_drain
from controller.store.grace import decoded_property
from controller.store.interventions import decoded_pause, decoded_pin
from controller.store.leader_lease import lease_record
from controller.store.profiles import check_measurement
from controller.store.rows import DamagedRowError, OnDamage, reported
from controller.store.schema import (
    CALL,
    DRAIN,
    FACT,
    FLOW_GROUP,
    INSTANCE,
    JOB,
    LEADERSHIP,
    MEASURED,
    PAUSE,
    PIN,
    PLAN,
    PROPERTY,
    SILENCE,
    SWITCH_WRITE,
    TASK_GRAPH,
)
from controller.store.seal import broken_seals, is_sealed, text_read_by
from controller.store.stored_jobs import MisfitError, check_jobs, fetch_jobs, fit_jobs
from topologies.fabric import Fabric

OnProblem = Callable[[str], None]

_ROWS_AT_ONCE = 100

TABLES_OF_JOBS = (JOB, FLOW_GROUP, TASK_GRAPH, SILENCE, INSTANCE)
"""Their rows are read together."""
READERS: Mapping[Table, Callable[[Row[Any]], object]] = {
    PROPERTY: decoded_property,
    MEASURED: check_measurement,
    PLAN: facts.plan_row,
    FACT: facts.decoded,
    SWITCH_WRITE: decoded_write,
    CALL: decoded_call,
    DRAIN: decoded_drain,
    PAUSE: decoded_pause,
    PIN: decoded_pin,
    LEADERSHIP: lease_record,
}
"""What reads a row of every other table, and raises DamagedRowError."""


def verify(database: Database, on_problem: OnProblem) -> int:
    """Tell every problem of a database that was opened to be read; returns the number of rows.

    One with an older schema is verified as it will be once it is upgraded. Raises StoreError where it cannot be read.
    """
    database.read(partial(check_file, on_problem))
    with up_to_date(database) as newest:
        return newest.read(partial(check_rows, on_problem))


def check_file(on_problem: OnProblem, connection: Connection) -> None:
    """Tell what is wrong with the file of an SQLite database, and with the seal of a backup."""
    if connection.dialect.name != "sqlite":
        return
    with _going_on("file", on_problem, connection):
        for problem, *_ in connection.exec_driver_sql("PRAGMA integrity_check"):
            if problem != "ok":
                on_problem(f"file: {' '.join(str(problem).split())}")
    with _going_on("seal", on_problem, connection):
        if is_sealed(connection):
            for problem in broken_seals(connection):
                on_problem(problem)


def check_rows(on_problem: OnProblem, connection: Connection) -> int:
    """Tell what is wrong with the rows of a database of the newest version; returns their number."""
    damaged = set()

    def on_damage(error: DamagedRowError) -> None:
        damaged.add(error.table)
        on_problem(str(error))

    num_rows = 0
    with text_read_by(_decoded_anyway, connection):
        for table in (*TABLES_OF_JOBS, *READERS):
            with _going_on(f"table {table.name}", on_problem, connection):
                num_rows += _check_table(table, on_damage, connection)
        with _going_on("references", on_problem, connection):
            _check_references(on_damage, connection)
        fabric = None
        if damaged.isdisjoint((PLAN.name, FACT.name)):
            with _going_on("record", on_problem, connection):
                fabric = _check_record(on_problem, connection)
        with _going_on("jobs", on_problem, connection):
            jobs = check_jobs(fetch_jobs(connection), on_damage)
            if fabric is not None:
                try:
                    fit_jobs(fabric, jobs, on_damage)
                except MisfitError as error:
                    for name, problem in error.problems.items():
                        problem = f"does not fit the newest Plan's topology: {problem}"
                        on_damage(DamagedRowError(JOB.name, name, problem))
    return num_rows


def _check_table(table: Table, on_damage: OnDamage, connection: Connection) -> int:
    read = READERS.get(table)
    num_rows = 0
    for row in connection.execute(select(table).execution_options(yield_per=_ROWS_AT_ONCE)):
        num_rows += 1
        with reported(on_damage):
            _check_text(table, row)
            if read is not None:
                read(row)
    return num_rows


def _check_text(table: Table, row: Row[Any]) -> None:
    for column, value in row._mapping.items():
        if isinstance(value, str):
            try:
                value.encode()
            except UnicodeEncodeError as error:
                raise DamagedRowError(table.name, _key(table, row), f"{column}: is not UTF-8") from error


def _check_references(on_damage: OnDamage, connection: Connection) -> None:
    """Rows refer to rows that are there; SQLite lets other programs break that."""
    for table in (*TABLES_OF_JOBS, *READERS):
        for reference in table.foreign_keys:
            column, there = reference.parent, reference.column
            lost = select(*table.primary_key).where(~exists().where(there == column))
            for row in connection.execute(lost):
                problem = f"{column.name}: {there.table.name} has no such row"
                on_damage(DamagedRowError(table.name, _key(table, row), problem))


def _check_record(on_problem: OnProblem, connection: Connection) -> Fabric | None:
    """Put every recorded Plan together; returns the fabric of the newest one."""
    decoder, fabric = DecisionDecoder(), None
    for position, plan in enumerate(facts.plans(0, facts.LAST_PLAN_NUMBER, connection)):
        changes = facts.facts_at if position == 0 else facts.changes_at
        decoder.apply(changes(plan.number, connection))
        try:
            fabric = decoder.decision(plan.number, plan.previous, plan.time_s).fabric
        except RecordError as error:
            on_problem(f"table {PLAN.name}, row {plan.number}: {error}")
    return fabric


def _key(table: Table, row: Row[*tuple[Any, ...]]) -> object:
    values = [row._mapping[column.name] for column in table.primary_key]
    return values[0] if len(values) == 1 else tuple(values)


def _decoded_anyway(text: bytes) -> str:
    return text.decode(errors="surrogateescape")


@contextmanager
def _going_on(what: str, on_problem: OnProblem, connection: Connection) -> Iterator[None]:
    """Go on behind the block where SQLite cannot read a part of its file."""
    try:
        yield
    except DBAPIError as error:
        if connection.dialect.name != "sqlite":
            raise
        on_problem(f"{what}: {error.orig}")
