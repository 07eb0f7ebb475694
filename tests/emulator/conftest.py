"""Fixtures of several modules."""

from collections.abc import Iterator

import pytest

from tests.emulator.lab import cabled
from tests.namespaces import Namespaces


@pytest.fixture
def lab() -> Iterator[Namespaces]:
    """A namespace with pairs of interfaces."""
    with cabled() as made:
        yield made
