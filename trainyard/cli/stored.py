"""The database of a controller, opened for a command that reads it."""

from typing import TYPE_CHECKING

from controller.errors import StoreError
from trainyard.cli.exits import refuse

if TYPE_CHECKING:
    # The store brings SQLAlchemy and gRPC, which --help and bad options do not wait for.
    from controller.store.database import Database


def opened_to_read(url: str) -> "Database":
    """Return the database of ``--database``, which the controller may be using, or end the command."""
    from controller.store.database import Database
    from controller.store.migration import Access

    try:
        return Database.open(url, Access.READ)
    except StoreError as error:
        refuse(str(error))
