"""The record in the database: decisions written as the facts that change, read back from any of them on, pruned."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, func, insert, or_, select, update

from controller.record.facts import Body, FactKey, FactKind
from controller.store.schema import FACT, PLAN

_ENDED = (
    update(FACT)
    .where((FACT.c.kind == bindparam("of_kind")) & (FACT.c.key == bindparam("of_key")) & FACT.c.until.is_(None))
    .values(until=bindparam("now"))
)


@dataclass(frozen=True, slots=True)
class PlanRow:
    """A Plan that was in force from ``time_s`` on, after the one of number ``previous`` (0: after none)."""

    number: int
    previous: int
    time_s: float


ChangeRows = list[tuple[FactKey, str | None]]
"""Facts as they are stored."""


def change_rows(changes: Iterable[tuple[FactKey, Body]]) -> ChangeRows:
    """Bodies as text."""
    return [
        (key, None if body is None else json.dumps(body, separators=(",", ":"), ensure_ascii=False))
        for key, body in changes
    ]


def write_decision(plan: PlanRow, changes: ChangeRows, connection: Connection, *, is_whole: bool) -> None:
    """Add a decision: what changes with it, or the whole of it, with which all that was so before ends."""
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
    """The last Plan; None where there is none."""
    row = connection.execute(select(PLAN).order_by(PLAN.c.number.desc()).limit(1)).first()
    return None if row is None else PlanRow(row.number, row.previous, row.time_s)


def plan_numbers(first: int, last: int, connection: Connection) -> tuple[int, int] | None:
    """The lowest and the highest number of the Plans of these numbers that are recorded; None where none is."""
    asked = PLAN.c.number.between(first, last)
    lowest, highest = connection.execute(select(func.min(PLAN.c.number), func.max(PLAN.c.number)).where(asked)).one()
    return None if highest is None else (lowest, highest)


def plans(first: int, last: int, connection: Connection) -> list[PlanRow]:
    """The Plans of these numbers, in order."""
    rows = connection.execute(select(PLAN).where(PLAN.c.number.between(first, last)).order_by(PLAN.c.number))
    return [PlanRow(row.number, row.previous, row.time_s) for row in rows]


def newest(key: FactKey, connection: Connection) -> Body:
    """A fact as it was recorded last."""
    is_it = (FACT.c.kind == key.kind) & (FACT.c.key == key.key) & FACT.c.until.is_(None)
    body = connection.scalar(select(FACT.c.body).where(is_it))
    return None if body is None else json.loads(body)


def facts_at(number: int, connection: Connection) -> Iterator[tuple[FactKey, Body]]:
    """All that was so under a Plan."""
    is_so = (FACT.c.since <= number) & or_(FACT.c.until.is_(None), FACT.c.until > number)
    for row in connection.execute(select(FACT).where(is_so).order_by(FACT.c.id)):
        yield _key(row), json.loads(row.body)


def changes_at(number: int, connection: Connection) -> Iterator[tuple[FactKey, Body]]:
    """What was no longer, or newly, so with a Plan; None for what was not replaced."""
    began = {_key(row): json.loads(row.body) for row in connection.execute(select(FACT).where(FACT.c.since == number))}
    for row in connection.execute(select(FACT.c.kind, FACT.c.key).where(FACT.c.until == number).order_by(FACT.c.id)):
        if _key(row) not in began:
            yield _key(row), None
    yield from began.items()


def prune(keep: int, connection: Connection) -> None:
    """Forget all but the last ``keep`` Plans."""
    newest = connection.scalar(select(func.max(PLAN.c.number)))
    if newest is not None:
        oldest = newest - keep + 1
        connection.execute(delete(PLAN).where(PLAN.c.number < oldest))
        connection.execute(delete(FACT).where(FACT.c.until <= oldest))


def _key(row: Row[Any, Any]) -> FactKey:
    return FactKey(FactKind(row.kind), row.key)
