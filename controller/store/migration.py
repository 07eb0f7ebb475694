"""The version of a database's schema: a new database gets all tables, and an older one what it lacks."""

from enum import Enum, auto

from sqlalchemy import Connection, delete, insert, inspect, select, update
from sqlalchemy.schema import CreateColumn

from controller.errors import DaemonError
from controller.store.rows import DamagedRowError
from controller.store.schema import COLUMNS_OF_VERSION_3, METADATA, PROPERTY, SCHEMA_VERSION

_VERSION = "schema_version"
_OLDER_VERSIONS = (1, 2, 3)
_OBSOLETE = "complete_from_s"
"""A property of older versions: a date, where a duration is kept now."""


class Access(Enum):
    """What may be done to a database that is opened."""

    READ = auto()
    """It must exist, and not even its schema is changed."""
    WRITE = auto()
    """It must exist; an older schema gets what it lacks."""
    CREATE = auto()
    """It may be new."""


class UnfitSchemaError(DaemonError):
    """The database has no schema that can be used; the message says why."""


def check_schema(access: Access, connection: Connection) -> None:
    """Bring the schema up to date, as far as ``access`` allows.

    Raises:
        UnfitSchemaError: There is no schema of ours, or that of a newer version.
        DamagedRowError: The row with the version is damaged.
    """
    if not inspect(connection).has_table(PROPERTY.name):
        if access is not Access.CREATE:
            raise UnfitSchemaError("holds nothing of Trainyard")
        METADATA.create_all(connection)
        connection.execute(insert(PROPERTY), {"name": _VERSION, "value": SCHEMA_VERSION})
        return
    version = connection.scalar(select(PROPERTY.c.value).where(PROPERTY.c.name == _VERSION))
    if version is not None and not isinstance(version, float):
        raise DamagedRowError(PROPERTY.name, _VERSION, "value: is not a number")
    if version in _OLDER_VERSIONS:
        if access is not Access.READ:
            _migrate(connection)
    elif version != SCHEMA_VERSION:
        known = "none" if version is None else f"{version:g}"
        raise UnfitSchemaError(f"its schema has version {known}, and this Trainyard reads version {SCHEMA_VERSION}")


def _migrate(connection: Connection) -> None:
    """Add the tables and columns that an older version lacks."""
    METADATA.create_all(connection)
    inspector = inspect(connection)
    for column in COLUMNS_OF_VERSION_3:
        if column.name not in {known["name"] for known in inspector.get_columns(column.table.name)}:
            added = CreateColumn(column).compile(dialect=connection.dialect)
            connection.exec_driver_sql(f"ALTER TABLE {column.table.name} ADD COLUMN {added}")
    connection.execute(delete(PROPERTY).where(PROPERTY.c.name == _OBSOLETE))
    connection.execute(update(PROPERTY).where(PROPERTY.c.name == _VERSION).values(value=SCHEMA_VERSION))
