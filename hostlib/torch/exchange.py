"""How the processes of a job speak with each other: through the store by which they found each other.

The first rank leads: it hears the others' reports, and what it tells is numbered, so that everybody hears all of it.
The connection is one of our own, because a wait would keep the job's calls on its connection waiting, too.
"""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import torch.distributed as dist

_PREFIX = "trainyard"
_LOOK = timedelta(seconds=0.25)


class ExchangeError(Exception):
    """The store cannot be used, or is gone; the text says why."""


class Exchange:
    """A conversation among the ranks of the default process group.

    Args:
        rank: That of this process.
        world_size: How many there are.
        start: Tells one start of the process group from the next.
    """

    def __init__(self, rank: int, world_size: int, start: str) -> None:
        self.rank = rank
        self.world_size = world_size
        self.port, store = own_store()
        self._store = dist.PrefixStore(f"{_PREFIX}/{start}", store)
        self._told = 0
        self._heard = 0

    def report(self, round_number: int, text: str) -> None:
        """Give the report of this rank. Raises ExchangeError."""
        self._set(f"report/{round_number}/{self.rank}", text)

    def reports(self, round_number: int) -> list[str] | None:
        """Return the reports of all ranks, in order; None where some are missing yet. Raises ExchangeError."""
        keys = [f"report/{round_number}/{rank}" for rank in range(self.world_size)]
        try:
            self._store.wait(keys, _LOOK)
            return [self._store.get(key).decode() for key in keys]
        except Exception as error:
            if is_timeout(error):
                return None
            raise ExchangeError(str(error)) from error

    def tell(self, message: Mapping[str, Any]) -> None:
        """Tell all other ranks something. Raises ExchangeError."""
        self._set(f"told/{self._told}", json.dumps(message))
        self._told += 1

    def hear(self) -> dict[str, Any] | None:
        """Return what the first rank has told next, within a moment; None: nothing. Raises ExchangeError."""
        key = f"told/{self._heard}"
        try:
            self._store.wait([key], _LOOK)
            message: dict[str, Any] = json.loads(self._store.get(key))
        except Exception as error:
            if is_timeout(error):
                return None
            raise ExchangeError(str(error)) from error
        self._heard += 1
        return message

    def _set(self, key: str, text: str) -> None:
        try:
            self._store.set(key, text)
        except Exception as error:
            raise ExchangeError(str(error)) from error


def own_store() -> tuple[int | None, Any]:
    """Return a connection of our own to the store of the default process group, and its port if it has one.

    Raises:
        ExchangeError: There is none.
    """
    try:
        store = dist.distributed_c10d._get_default_store()
        while isinstance(store, dist.PrefixStore):
            store = store.underlying_store
        if isinstance(store, dist.TCPStore):
            opened = dist.TCPStore(store.host, store.port, is_master=False, wait_for_workers=False)
            return store.port, opened
        if isinstance(store, dist.FileStore):
            return None, dist.FileStore(store.path, dist.get_world_size())
        return None, store
    except Exception as error:
        raise ExchangeError(f"the store of the default process group cannot be used: {error}") from error


def is_timeout(error: Exception) -> bool:
    """Return whether a call of a store has failed because it has waited for long enough."""
    return isinstance(error, dist.DistStoreError | RuntimeError) and "timeout" in str(error).lower()
