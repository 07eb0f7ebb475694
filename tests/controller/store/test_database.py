"""A database is opened correctly, or refused by name."""

import asyncio
import stat
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert, select, text, update
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateTable

from controller.errors import StoreError
from controller.store.addresses import url_of
from controller.store.database import Database
from controller.store.migration import Access
from controller.store.schema import INSTANCE, METADATA, PAUSE, PIN, PROPERTY, SCHEMA_VERSION, SILENCE
from tests.controller.store.registering import restored


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trainyard.db"


def test_a_commit_is_durable_and_the_file_is_private(path: Path) -> None:
    database = Database.open(str(path))

    def pragmas(connection: Connection) -> list[object]:
        return [connection.scalar(text(f"PRAGMA {name}")) for name in ("journal_mode", "synchronous", "foreign_keys")]

    assert database.read(pragmas) == ["wal", 2, 1]
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}
    database.close()


def test_a_transaction_that_fails_changes_nothing_and_names_the_database(path: Path) -> None:
    database = Database.open(str(path))

    def twice(connection: Connection) -> None:
        for _ in range(2):
            connection.execute(insert(PROPERTY), {"name": "a", "value": 1.0})

    with pytest.raises(StoreError, match=rf"database {path}: UNIQUE constraint"):
        asyncio.run(database.write(twice))
    assert "a" not in database.read(lambda connection: list(connection.scalars(select(PROPERTY.c.name))))
    database.close()


def test_a_newer_schema_is_refused_by_name(path: Path) -> None:
    database = Database.open(str(path))
    database.write_now(lambda connection: connection.execute(update(PROPERTY).values(value=99)))
    database.close()
    with pytest.raises(StoreError, match=rf"{path}: its schema has version 99, and this Trainyard reads version \d"):
        Database.open(str(path))


def test_only_a_controller_adds_missing_tables_to_an_older_database(address: str) -> None:
    def make_older(connection: Connection) -> None:
        METADATA.drop_all(connection, tables=(INSTANCE, SILENCE, PAUSE, PIN))
        connection.execute(update(PROPERTY).values(value=1))

    def version(connection: Connection) -> object:
        return connection.scalar(select(PROPERTY.c.value).where(PROPERTY.c.name == "schema_version"))

    database = Database.open(address)
    database.write_now(make_older)
    database.close()
    for access, expected in ((Access.READ, 1), (Access.CREATE, SCHEMA_VERSION)):
        database = Database.open(address, access)
        assert database.read(version) == expected
        database.close()
    restored(address)


def test_another_file_is_refused_and_left_as_it_is(path: Path) -> None:
    path.write_text("name,bytes\n" * 100)
    with pytest.raises(StoreError, match=rf"{path}: file is not a database"):
        Database.open(str(path))
    assert path.read_text() == "name,bytes\n" * 100


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("/nowhere/at/all/trainyard.db", "unable to open database file"),
        ("oracular://host/name", "no such kind of database is known"),
        ("postgresql+nodriver://name:secret@host/name", "no such kind of database is known"),
        ("sqlite://:://", "not a URL"),
    ],
)
def test_a_database_that_cannot_be_opened_is_refused_by_name(address: str, reason: str) -> None:
    with pytest.raises(StoreError, match=reason) as refused:
        Database.open(address)
    assert "secret" not in str(refused.value)


def test_a_path_is_a_database_of_sqlite() -> None:
    assert url_of("out/trainyard.db").render_as_string() == "sqlite:///out/trainyard.db"
    assert url_of("postgresql://host/name").get_backend_name() == "postgresql"


@pytest.mark.parametrize("table", METADATA.sorted_tables, ids=lambda table: table.name)
def test_every_table_can_be_created_in_postgresql(table) -> None:  # type: ignore[no-untyped-def]
    made = str(CreateTable(table).compile(dialect=postgresql.dialect()))
    assert f"CREATE TABLE {table.name}" in made
    assert "JSON" not in made
