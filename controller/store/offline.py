"""Work on a database on which no controller runs: whoever does it takes the lease, as a controller would."""

from controller.errors import StoreError
from controller.leadership.exclusive import acquire_term
from controller.store.database import Database
from controller.store.leader_lease import DatabaseLease
from controller.store.rows import shown


class InUseError(StoreError):
    """A controller runs on the database; nothing was changed."""


async def require_unused(database: Database) -> None:
    """Raise InUseError where a controller is known to run on the database, and StoreError where it cannot be used."""
    table = DatabaseLease(database)
    record = await table.read()
    if await table.is_running(record):
        raise InUseError(
            f"{database.name}: controller {shown(record.holder)} runs on it, in term {record.term}; stop it first"
        )


async def take_term(database: Database, holder: str) -> int:
    """Take the lease for ``holder``, so that no controller that comes meanwhile works with what is changed.

    Writes that begin with ``require_term`` then fail once a controller has come. Raises InUseError where one runs, and
    StoreError where one leads or the database cannot be used.
    """
    await require_unused(database)
    return await acquire_term(DatabaseLease(database), holder)
