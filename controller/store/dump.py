"""The record in the database as lines."""

from collections.abc import Iterator

from sqlalchemy import Connection

from controller.record.lines import Line, PlanLine, WriteLine, fact_line
from controller.store import facts
from controller.store.audit import writes_between

LAST = (1 << 31) - 1
"""No number of a Plan is higher."""


def dump(first: int, last: int, connection: Connection) -> Iterator[Line]:
    """All that is recorded of the Plans of these numbers; and before them the Plan that was in force then."""
    chosen = facts.plans(first, last, connection)
    if chosen:
        chosen = facts.plans(chosen[0].previous, chosen[0].previous, connection) + chosen
    told = first - 1
    for position, plan in enumerate(chosen):
        changes = facts.facts_at if position == 0 else facts.changes_at
        for key, body in changes(plan.number, connection):
            yield fact_line(key, body)
        yield PlanLine(plan=plan.number, previous=plan.previous, time_s=plan.time_s)
        yield from _writes(told, plan.number, connection)
        told = max(told, plan.number)
    yield from _writes(told, last, connection)


def _writes(after: int, last: int, connection: Connection) -> Iterator[Line]:
    for write in writes_between(after, last, connection):
        yield WriteLine(**write)
