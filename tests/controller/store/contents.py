"""What databases hold, and what is wrong with them, for tests that compare them."""

from contextlib import closing
from pathlib import Path

from sqlalchemy import Connection, select

from controller.store.backup import back_up
from controller.store.database import Database
from controller.store.migration import Access
from controller.store.schema import LEADERSHIP, METADATA, PROPERTY
from controller.store.verify import verify


def contents(address: str | Path) -> dict[str, list[tuple[object, ...]]]:
    """All rows by table, in order of their keys; but for what a restore changes, the lease and the grace."""

    def read(connection: Connection) -> dict[str, list[tuple[object, ...]]]:
        rows = {}
        for table in METADATA.sorted_tables:
            if table is not LEADERSHIP:
                found = connection.execute(select(*sorted(table.c, key=str)).order_by(*table.primary_key))
                rows[table.name] = [tuple(row) for row in found]
        rows[PROPERTY.name] = [row for row in rows[PROPERTY.name] if "grace_left_s" not in row]
        return rows

    with closing(Database.open(str(address), Access.READ)) as database:
        return database.read(read)


def problems_of(address: str | Path) -> list[str]:
    """What ``verify`` tells."""
    problems: list[str] = []
    with closing(Database.open(str(address), Access.READ)) as database:
        verify(database, problems.append)
    return problems


def backed_up(address: str | Path, file: Path, *, is_forced: bool = False) -> Path:
    """Back up a database, and return the file."""
    with closing(Database.open(str(address), Access.READ)) as database:
        back_up(database, file, is_forced=is_forced)
    return file
