"""The record of decisions in the database: written as the facts that change, read back from any Plan on, and pruned.

A large decision is written in several transactions. It counts only with the last one, which adds its Plan: facts that
begin or end with a Plan that is not there are those of a decision that was cut off, and change nothing.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import ColumnElement, Connection, Row, bindparam, delete, func, insert, or_, select, update

from controller.record.facts import Body, FactKey, FactKind
from controller.record.lines import Line, PlanLine, WriteLine, fact_line
from controller.store.audit import writes_between
from controller.store.batches import BYTES_PER_TRANSACTION, ROWS_PER_TRANSACTION, batches, execute
from controller.store.rows import Finite, StoredRow, checked_row, naming
from controller.store.schema import FACT, PLAN, SWITCH_WRITE

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


def decision_steps(plan: PlanRow, changes: ChangeRows, *, is_whole: bool) -> Iterator[Callable[[Connection], None]]:
    """The transactions that add a decision, of bounded size; it counts once the last one is committed.

    They write the facts that change, or, where it ``is_whole``, all its facts instead of those before.
    """
    rows = [{"of_kind": key.kind, "of_key": key.key, "now": plan.number, "body": body} for key, body in changes]
    parts = list(batches(rows, ROWS_PER_TRANSACTION, BYTES_PER_TRANSACTION)) or [[]]
    for number, part in enumerate(parts):
        begins, ends = number == 0, number == len(parts) - 1
        yield partial(_write_part, plan, part, begins=begins, ends=ends, is_whole=is_whole)


def _write_part(
    plan: PlanRow,
    rows: Sequence[Mapping[str, Any]],
    connection: Connection,
    *,
    begins: bool,
    ends: bool,
    is_whole: bool,
) -> None:
    if begins:
        _discard_cut_off(connection)
        if is_whole:
            connection.execute(update(FACT).where(FACT.c.until.is_(None)).values(until=plan.number))
    if not is_whole:
        execute(connection, _ENDED, [{name: row[name] for name in ("of_kind", "of_key", "now")} for row in rows])
    began = [
        {"kind": row["of_kind"], "key": row["of_key"], "since": plan.number, "body": row["body"]}
        for row in rows
        if row["body"] is not None
    ]
    execute(connection, insert(FACT), began)
    if ends:
        connection.execute(insert(PLAN), {"number": plan.number, "previous": plan.previous, "time_s": plan.time_s})


def _discard_cut_off(connection: Connection) -> None:
    """Undo what was written of a decision whose Plan is not there."""
    newest = connection.scalar(select(func.max(PLAN.c.number))) or 0
    connection.execute(delete(FACT).where(FACT.c.since > newest))
    connection.execute(update(FACT).where(FACT.c.until > newest).values(until=None))


class _PlanRow(StoredRow):
    number: Annotated[int, Field(ge=1, le=LAST_PLAN_NUMBER)]
    previous: Annotated[int, Field(ge=0, le=LAST_PLAN_NUMBER)]
    time_s: Finite


def newest_plan(connection: Connection) -> PlanRow | None:
    """Read the last Plan; None where there is none."""
    row = connection.execute(select(PLAN).order_by(PLAN.c.number.desc()).limit(1)).first()
    return None if row is None else plan_row(row)


def plan_numbers(first: int, last: int, connection: Connection) -> tuple[int, int] | None:
    """The lowest and the highest recorded number from ``first`` to ``last``; None where none is recorded."""
    asked = PLAN.c.number.between(first, last)
    lowest, highest = connection.execute(select(func.min(PLAN.c.number), func.max(PLAN.c.number)).where(asked)).one()
    return None if highest is None else (lowest, highest)


def plans(first: int, last: int, connection: Connection) -> list[PlanRow]:
    """The Plans with numbers from ``first`` to ``last``, in order."""
    rows = connection.execute(select(PLAN).where(PLAN.c.number.between(first, last)).order_by(PLAN.c.number))
    return [plan_row(row) for row in rows]


def newest_fact(key: FactKey, connection: Connection) -> Body:
    """The body of a fact under the last Plan; None where there is none."""
    newest = connection.scalar(select(func.max(PLAN.c.number)))
    if newest is None:
        return None
    is_it = (FACT.c.kind == key.kind) & (FACT.c.key == key.key) & _held_at(newest)
    row = connection.execute(select(FACT).where(is_it)).first()
    return None if row is None else _body(row)


def newest_decision(connection: Connection) -> tuple[PlanRow, Sequence[Row[Any]]] | None:
    """Fetch the last Plan and the facts that held under it, for ``decoded``; None where there is none."""
    newest = newest_plan(connection)
    return None if newest is None else (newest, _rows_at(newest.number, connection))


def decoded(row: Row[Any]) -> tuple[FactKey, Body]:
    """Decode a fact. Raises DamagedRowError."""
    return _key(row), _body(row)


def facts_at(number: int, connection: Connection) -> Iterator[tuple[FactKey, Body]]:
    """All facts that held under a Plan."""
    yield from map(decoded, _rows_at(number, connection))


def _rows_at(number: int, connection: Connection) -> Sequence[Row[Any]]:
    return connection.execute(select(FACT).where(_held_at(number)).order_by(FACT.c.id)).all()


def _held_at(number: int) -> ColumnElement[bool]:
    return (FACT.c.since <= number) & or_(FACT.c.until.is_(None), FACT.c.until > number)


def changes_at(number: int, connection: Connection) -> Iterator[tuple[FactKey, Body]]:
    """The facts that changed with a Plan; the body of one that ended without a successor is None."""
    began = {_key(row): _body(row) for row in connection.execute(select(FACT).where(FACT.c.since == number))}
    for row in connection.execute(select(FACT).where(FACT.c.until == number).order_by(FACT.c.id)):
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


def prune(keep: int, connection: Connection) -> bool:
    """Delete all but the last ``keep`` Plans, or a bounded part of that; returns whether more is left to delete."""
    newest = connection.scalar(select(func.max(PLAN.c.number)))
    if newest is None:
        return False
    oldest = newest - keep + 1
    connection.execute(delete(PLAN).where(PLAN.c.number < oldest))
    ended = list(connection.scalars(select(FACT.c.id).where(FACT.c.until <= oldest).limit(ROWS_PER_TRANSACTION)))
    connection.execute(delete(FACT).where(FACT.c.id.in_(ended)))
    return len(ended) == ROWS_PER_TRANSACTION


def plan_row(found: Row[Any]) -> PlanRow:
    """Decode a Plan's row. Raises DamagedRowError."""
    row = checked_row(_PlanRow, PLAN.name, found.number, found)
    return PlanRow(row.number, row.previous, row.time_s)


def _key(row: Row[Any]) -> FactKey:
    with naming(FACT.name, row.id):
        key: object = row.key
        if not isinstance(key, str):
            raise ValueError("key: is not text")
        return FactKey(FactKind(row.kind), key)


def _body(row: Row[Any]) -> Body:
    with naming(FACT.name, row.id, "body: "):
        return json.loads(row.body)


def _write_lines(after: int, last: int, connection: Connection) -> Iterator[Line]:
    for write in writes_between(after, last, connection):
        with naming(SWITCH_WRITE.name, (write["plan"], write["switch"])):
            line = WriteLine(**write)
        yield line
