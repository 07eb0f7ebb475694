"""A database that takes nothing for a while."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any
from unittest.mock import patch

from controller.store.database import Database


@contextmanager
def held_up() -> Iterator[None]:
    """What is to be written meanwhile is written afterwards."""
    may_go_on, write_now = Event(), Database.write_now

    def later(database: Database, work: Callable[..., Any]) -> Any:
        may_go_on.wait()
        return write_now(database, work)

    with patch.object(Database, "write_now", later):
        try:
            yield
        finally:
            may_go_on.set()
