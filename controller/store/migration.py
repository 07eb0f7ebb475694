"""The version of a database's schema: a new database gets all tables, and an older one what it lacks.

The table ``property`` has the version, which is that of the last revision. Controllers that know no later one refuse
the database by it.
"""

from enum import Enum, auto
from pathlib import Path

from sqlalchemy import Connection, insert, inspect, select, update
from sqlalchemy.engine.interfaces import ReflectedColumn

from controller.errors import DaemonError
from controller.store.engine import begin_alone
from controller.store.rows import DamagedRowError, shown
from controller.store.schema import METADATA, PROPERTY, SCHEMA_VERSION

_VERSION = "schema_version"
REVISIONS = Path(__file__).parent / "revisions"
"""The folder of Alembic's revisions."""
FIRST_REVISION = 5
"""Older versions have no revisions; the first one knows what they may lack."""
_MOST_NAMED = 3


class Access(Enum):
    """What may be done to a database that is opened."""

    READ = auto()
    """It must exist, and not even its schema is changed."""
    WRITE = auto()
    """It must exist; an older schema gets what it lacks."""
    CREATE = auto()
    """It may be new."""
    RESTORE = auto()
    """It may be new, or have any version; what restores a backup changes it."""


class UnfitSchemaError(DaemonError):
    """The database has no schema that can be used; the message says why."""


def prepare_schema(access: Access, connection: Connection) -> None:
    """Bring the schema up to date, as far as ``access`` allows. Of several that come at once one does, others wait.

    Raises:
        UnfitSchemaError: There is no schema of ours, or that of a newer version.
        DamagedRowError: The row with the version is damaged.
    """
    version = stored_version(connection)
    if version is None and access not in (Access.CREATE, Access.RESTORE):
        raise UnfitSchemaError("holds nothing of Trainyard")
    if version != SCHEMA_VERSION and access in (Access.WRITE, Access.CREATE):
        begin_alone(connection)
        _bring_up_to_date(stored_version(connection), connection)


def create_tables(connection: Connection) -> None:
    """Make the tables of a new database."""
    METADATA.create_all(connection)
    connection.execute(insert(PROPERTY), {"name": _VERSION, "value": SCHEMA_VERSION})


def _bring_up_to_date(version: int | None, connection: Connection) -> None:
    if version is None:
        create_tables(connection)
    elif version < SCHEMA_VERSION:
        run_revisions(version, SCHEMA_VERSION, connection)
        connection.execute(update(PROPERTY).where(PROPERTY.c.name == _VERSION).values(value=SCHEMA_VERSION))


def stored_version(connection: Connection) -> int | None:
    """The version of the schema of a database; None where the database is empty.

    Raises:
        UnfitSchemaError: It is a newer one, or the database is of something else.
        DamagedRowError: The row with the version is damaged.
    """
    inspector = inspect(connection)
    tables = inspector.get_table_names()
    if not tables:
        return None
    if PROPERTY.name not in tables or not _has_own_columns(inspector.get_columns(PROPERTY.name)):
        others = ", ".join(map(shown, sorted(tables)[:_MOST_NAMED])) + (" …" if len(tables) > _MOST_NAMED else "")
        raise UnfitSchemaError(f"holds tables of something else ({others}), and nothing of Trainyard")
    version = connection.scalar(select(PROPERTY.c.value).where(PROPERTY.c.name == _VERSION))
    if version is not None and not isinstance(version, float):
        raise DamagedRowError(PROPERTY.name, _VERSION, "value: is not a number")
    if version is None or version not in range(1, SCHEMA_VERSION + 1):
        known = "none" if version is None else f"{version:g}"
        raise UnfitSchemaError(f"its schema has version {known}, and this Trainyard reads version {SCHEMA_VERSION}")
    return int(version)


def run_revisions(version: int, until: int, connection: Connection) -> None:
    """Run the revisions that follow a version (0: that of an empty database), in this transaction."""
    # Alembic takes a tenth of a second to import, and most databases have the newest version.
    from alembic.migration import MigrationContext
    from alembic.operations import Operations
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory(REVISIONS, version_locations=[REVISIONS])
    known = "base" if version < FIRST_REVISION else str(version)
    revisions = list(scripts.iterate_revisions(str(until), known))
    with Operations.context(MigrationContext.configure(connection)):
        for revision in reversed(revisions):
            revision.module.upgrade()


def _has_own_columns(columns: list[ReflectedColumn]) -> bool:
    return {column.name for column in PROPERTY.c} <= {column["name"] for column in columns}
