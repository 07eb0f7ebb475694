"""pytest's plugin: the fixture ``p4``. It imports nothing of the emulator until a test asks for it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from emulator.testing.programs import Programs


@pytest.fixture(scope="session")
def p4() -> "Iterator[Programs]":
    """Programs, each compiled once in a session, and switches that run them (``emulator.testing.Programs``)."""
    from emulator.testing.programs import Programs

    with Programs() as programs:
        yield programs
