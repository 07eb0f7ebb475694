"""Withdrawal of jobs from a database on which no controller runs."""

from collections.abc import Sequence
from functools import partial

from sqlalchemy import Connection, delete, func, select

from controller.errors import StoreError
from controller.store.database import Database
from controller.store.leader_lease import require_term
from controller.store.offline import require_unused, take_term
from controller.store.rows import shown
from controller.store.schema import FLOW_GROUP, JOB

_MOST_NAMED = 8
_HOLDER = "trainyard withdraw"


class NothingWithdrawnError(StoreError):
    """There is no such job; nothing was changed."""


async def withdraw_jobs(database: Database, names: Sequence[str]) -> dict[str, int]:
    """Withdraw jobs with all that belongs to them, all or none; returns how many flow groups each had.

    Raises:
        InUseError: A controller runs on the database.
        NothingWithdrawnError: The database has no such job.
        StoreError: The database cannot be used, or a controller leads on it.
    """
    await require_unused(database)
    await database.write(partial(_require_jobs, database.name, names))
    term = await take_term(database, _HOLDER)
    in_term = database.guarded(partial(require_term, term))
    return await in_term.write(partial(_withdraw, database.name, names))


def _require_jobs(database: str, names: Sequence[str], connection: Connection) -> None:
    stored = list(connection.scalars(select(JOB.c.name).order_by(JOB.c.name)))
    if missing := [name for name in names if name not in stored]:
        others = ", ".join(map(shown, stored[:_MOST_NAMED])) + (" …" if len(stored) > _MOST_NAMED else "")
        unknown = ", ".join(map(shown, missing[:_MOST_NAMED]))
        raise NothingWithdrawnError(f"{database}: no job {unknown} is stored; stored are: {others or 'none'}")


def _withdraw(database: str, names: Sequence[str], connection: Connection) -> dict[str, int]:
    _require_jobs(database, names, connection)
    counted = select(func.count()).where(FLOW_GROUP.c.job == JOB.c.name).scalar_subquery()
    num_groups = select(func.coalesce(JOB.c.num_groups, counted))
    counts = {name: connection.scalar(num_groups.where(JOB.c.name == name)) or 0 for name in names}
    connection.execute(delete(JOB).where(JOB.c.name.in_(list(counts))))
    return counts
