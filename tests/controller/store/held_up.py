"""A database that commits nothing for a while."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any
from unittest.mock import patch

from controller.store.database import Database


@contextmanager
def held_up() -> Iterator[Event]:
    """What is to be written meanwhile is written afterwards; gives an event that is set once something is."""
    is_asked, may_go_on, write_now = Event(), Event(), Database.write_now

    def later(database: Database, work: Callable[..., Any]) -> Any:
        is_asked.set()
        may_go_on.wait()
        return write_now(database, work)

    with patch.object(Database, "write_now", later):
        try:
            yield is_asked
        finally:
            may_go_on.set()
