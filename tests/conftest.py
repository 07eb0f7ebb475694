"""What all tests share."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, settings

from policies.jit import Kernel
from tests.postgresql import NotInstalledError, Server, running

# A deadline, and how long examples take to draw, would measure the machine, not the code.
settings.register_profile("trainyard", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("trainyard")

# pytest loads readline, which tells processes that are started, those of ``-n`` too, the size of a terminal they lack.
for _size in ("COLUMNS", "LINES"):
    os.environ.pop(_size, None)


def _is_of_this_loop(record: logging.LogRecord) -> bool:
    """Whether asyncio's record is none of gRPC's poller, which a process has once and tells loops that have closed."""
    return "PollerCompletionQueue._handle_events" not in record.getMessage()


# An earlier test's late event would else be found among what a later test logs.
logging.getLogger("asyncio").addFilter(_is_of_this_loop)

_TESTS = Path(__file__).parent
_SLOW_FOLDERS = {"bmv2", "chaos", "docs", "evaluations", "integration", "papers", "report"}
"""All tests in folders of these names take long: processes, whole runs, figures of papers."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what ``make quick`` leaves out by its folder; other tests are marked one by one."""
    for item in items:
        if not _SLOW_FOLDERS.isdisjoint(item.path.relative_to(_TESTS).parts):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def _kernels_compile_as_in_a_new_process() -> Iterator[None]:
    """Undo ``Kernel.compile_all``: else decisions of later tests would compile within their time limit."""
    with patch.object(Kernel, "_compiles_all", False):
        yield


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
