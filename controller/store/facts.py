"""The record of decisions in the database: written as the facts that change, read back from any Plan on, and pruned."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, func, insert, or_, select, update

from controller.record.facts import Body, FactKey, FactKind
from controller.record.lines import Line, PlanLine, WriteLine, fact_line
from controller.store.audit import writes_between
from controller.store.schema import FACT, PLAN

LAST_PLAN_NUMBER = (1 << 31) - 1
"""The highest number that a Plan can have."""

_ENDED = (
    update(FACT)
    .where((FACT.c.kind == bindparam("of_kind")) & (FACT.c.key == bindparam("of_key")) & FACT.c.until.is_(None))
    .values(until=bindparam("now"))
)


@dataclass(frozen=True, slots=True)
class PlanRow:
    """A Plan in force from ``time_s`` on, after the Plan with the number ``previous`` (0: after none)."""

    number: int
    previous: int
    time_s: float


ChangeRows = list[tuple[FactKey, str | None]]
"""Changed facts with their bodies as JSON text."""


def change_rows(changes: Iterable[tuple[FactKey, Body]]) -> ChangeRows:
    """Encode the bodies of facts as text."""
    return [
        (key, None if body is None else json.dumps(body, separators=(",", ":"), ensure_ascii=False))
        for key, body in changes
    ]


def write_decision(plan: PlanRow, changes: ChangeRows, connection: Connection, *, is_whole: bool) -> None:
    """Add a decision: the facts that change, or, where it ``is_whole``, all its facts instead of those before."""
    if is_whole:
        connection.execute(update(FACT).where(FACT.c.until.is_(None)).values(until=plan.number))
    elif changes:
        ended = [{"of_kind": key.kind, "of_key": key.key, "now": plan.number} for key, _ in changes]
        connection.execute(_ENDED, ended)
    began = [
        {"kind": key.kind, "key": key.key, "since": plan.number, "body": body}
        for key, body in changes
        if body is not None
    ]
    if began:
        connection.execute(insert(FACT), began)
    connection.execute(insert(PLAN), {"number": plan.number, "previous": plan.previous, "time_s": plan.time_s})


def newest_plan(connection: Connection) -> PlanRow | None:
    """Read the last Plan; None where there is none."""
    row = connection.execute(select(PLAN).order_by(PLAN.c.number.desc()).limit(1)).first()
    return None if row is None else PlanRow(row.number, row.previous, row.time_s)


def plan_numbers(first: int, last: int, connection: Connection) -> tuple[int, int] | None:
    """The lowest and the highest recorded number from ``first`` to ``last``; None where none is recorded."""
    asked = PLAN.c.number.between(first, last)
    lowest, highest = connection.execute(select(func.min(PLAN.c.number), func.max(PLAN.c.number)).where(asked)).one()
    return None if highest is None else (lowest, highest)


def plans(first: int, last: int, connection: Connection) -> list[PlanRow]:
    """The Plans with numbers from ``first`` to ``last``, in order."""
    rows = connection.execute(select(PLAN).where(PLAN.c.number.between(first, last)).order_by(PLAN.c.number))
    return [PlanRow(row.number, row.previous, row.time_s) for row in rows]


def newest_fact(key: FactKey, connection: Connection) -> Body:
    """The body of a fact as it was recorded last; None where there is none."""
    is_it = (FACT.c.kind == key.kind) & (FACT.c.key == key.key) & FACT.c.until.is_(None)
    body = connection.scalar(select(FACT.c.body).where(is_it))
    return None if body is None else json.loads(body)


def facts_at(number: int, connection: Connection) -> Iterator[tuple[FactKey, Body]]:
    """All facts that held under a Plan."""
    is_so = (FACT.c.since <= number) & or_(FACT.c.until.is_(None), FACT.c.until > number)
    for row in connection.execute(select(FACT).where(is_so).order_by(FACT.c.id)):
        yield _key(row), json.loads(row.body)


def changes_at(number: int, connection: Connection) -> Iterator[tuple[FactKey, Body]]:
    """The facts that changed with a Plan; the body of one that ended without a successor is None."""
    began = {_key(row): json.loads(row.body) for row in connection.execute(select(FACT).where(FACT.c.since == number))}
    for row in connection.execute(select(FACT.c.kind, FACT.c.key).where(FACT.c.until == number).order_by(FACT.c.id)):
        if _key(row) not in began:
            yield _key(row), None
    yield from began.items()


def record_lines(first: int, last: int, connection: Connection) -> Iterator[Line]:
    """The record of the Plans with numbers from ``first`` to ``last`` as lines, after the Plan in force before them."""
    wanted = plans(first, last, connection)
    if wanted:
        wanted = plans(wanted[0].previous, wanted[0].previous, connection) + wanted
    written = first - 1
    for position, plan in enumerate(wanted):
        changes = facts_at if position == 0 else changes_at
        for key, body in changes(plan.number, connection):
            yield fact_line(key, body)
        yield PlanLine(plan=plan.number, previous=plan.previous, time_s=plan.time_s)
        yield from _write_lines(written, plan.number, connection)
        written = max(written, plan.number)
    yield from _write_lines(written, last, connection)


def prune(keep: int, connection: Connection) -> None:
    """Delete all but the last ``keep`` Plans."""
    newest = connection.scalar(select(func.max(PLAN.c.number)))
    if newest is not None:
        oldest = newest - keep + 1
        connection.execute(delete(PLAN).where(PLAN.c.number < oldest))
        connection.execute(delete(FACT).where(FACT.c.until <= oldest))


def _key(row: Row[Any, Any]) -> FactKey:
    return FactKey(FactKind(row.kind), row.key)


def _write_lines(after: int, last: int, connection: Connection) -> Iterator[Line]:
    for write in writes_between(after, last, connection):
        yield WriteLine(**write)
