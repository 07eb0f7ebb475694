"""What all tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.postgresql import NotInstalledError, Server, running

# A deadline would measure the machine, not the code.
settings.register_profile("trainyard", deadline=None)
settings.load_profile("trainyard")


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """A PostgreSQL server; skips, saying so, where none is installed."""
    try:
        with running() as server:
            yield server
    except NotInstalledError as error:
        pytest.skip(f"not tried on PostgreSQL: {error}")


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new database of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "trainyard.db")
    server: Server = request.getfixturevalue("postgresql")
    return server.new_database()
