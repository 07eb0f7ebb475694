"""How the processes of a job speak with each other: through the store by which they found each other.

The first rank leads: it hears the others' reports, and what it tells is numbered, so that everybody hears all of it.
The connection is one of our own, because a wait would keep the job's calls on its connection waiting, too.

One thread speaks. Another one ends the conversation before the store ends, and before the interpreter does: PyTorch
prints a page about a call whose store ends meanwhile, and a thread inside a call aborts the process at the
interpreter's end.
"""

import json
import os
import socket
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import torch.distributed as dist

_PREFIX = "trainyard"
_OPEN_FILES = "/proc/self/fd"
_CONNECTS_WITHIN_S = 2.0


class ExchangeError(Exception):
    """The store cannot be used, or is gone; the text says why."""


class Exchange:
    """A conversation among the ranks of the default process group, once this rank has joined it.

    Args:
        rank: That of this process.
        world_size: How many there are.
        start: Tells one start of the process group from the next.

    Attributes:
        port: The store's; None: it has none, or was not reached yet.
    """

    def __init__(self, rank: int, world_size: int, start: str) -> None:
        self.rank = rank
        self.world_size = world_size
        self.port: int | None = None
        self._start = start
        self._socket: socket.socket | None = None
        self._store: Any = None
        self._told = 0
        self._heard = 0
        self._has_left = False
        self._calling = threading.Lock()

    def join(self) -> None:
        """Reach the store. Raises ExchangeError."""
        with self._call():
            before = open_files()
            self.port, store = own_store()
            self._socket = None if self.port is None else socket_to(self.port, open_files() - before)
            self._store = dist.PrefixStore(f"{_PREFIX}/{self._start}", store)

    def leave(self, within_s: float) -> bool:
        """End the conversation; return whether no call is under way any more.

        Calls raise ExchangeError from now on. One that is under way has ``within_s`` to end, then its connection is
        closed, and it has as long again.
        """
        self._has_left = True
        if self._has_no_call(within_s):
            return True
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        return self._has_no_call(within_s)

    def report(self, round_number: int, text: str) -> None:
        """Give the report of this rank. Raises ExchangeError."""
        self._set(f"report/{round_number}/{self.rank}", text)

    def reports(self, round_number: int) -> list[str] | None:
        """Return the reports of all ranks, in order; None where some are missing yet. Raises ExchangeError."""
        return self._found([f"report/{round_number}/{rank}" for rank in range(self.world_size)])

    def tell(self, message: Mapping[str, Any]) -> None:
        """Tell all other ranks something. Raises ExchangeError."""
        self._set(f"told/{self._told}", json.dumps(message))
        self._told += 1

    def hear(self) -> dict[str, Any] | None:
        """Return what the first rank has told next; None: nothing yet. Raises ExchangeError."""
        found = self._found([f"told/{self._heard}"])
        if found is None:
            return None
        self._heard += 1
        message: dict[str, Any] = json.loads(found[0])
        return message

    def _found(self, keys: list[str]) -> list[str] | None:
        """Return the values of keys; None where some are missing. A wait would log each time that it is in vain."""
        with self._call():
            self._expect_answers()
            if not self._store.check(keys):
                return None
            return [self._store.get(key).decode() for key in keys]

    def _set(self, key: str, text: str) -> None:
        with self._call():
            self._expect_answers()
            self._store.set(key, text)

    @contextmanager
    def _call(self) -> Iterator[None]:
        """Call the store. Raises ExchangeError for whatever it raises, and where this rank has left."""
        with self._calling:
            if self._has_left:
                raise ExchangeError("this rank has left")
            try:
                yield
            except ExchangeError:
                raise
            except Exception as error:
                raise ExchangeError(str(error)) from error

    def _has_no_call(self, within_s: float) -> bool:
        if not self._calling.acquire(timeout=within_s):
            return False
        self._calling.release()
        return True

    def _expect_answers(self) -> None:
        """Raise ExchangeError where the store has ended: PyTorch prints a page about each call after that."""
        if self._socket is None:
            return
        try:
            is_closed = not self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return  # nobody answers before we ask
        except OSError as error:
            raise ExchangeError(str(error)) from error
        if is_closed:
            raise ExchangeError("the store has ended")


def open_files() -> frozenset[int]:
    """Return the numbers of this process's open files; nothing where the system does not say."""
    with suppress(OSError):
        return frozenset(int(name) for name in os.listdir(_OPEN_FILES))  # noqa: PTH208 # it is looked at often
    return frozenset()


def socket_to(port: int, files: Iterable[int]) -> socket.socket | None:
    """Return the one among files that is connected to a port, as a socket that is to be closed; None: there is none."""
    for number in files:
        try:
            found = socket.socket(fileno=os.dup(number))
        except OSError:
            continue  # no socket, or closed meanwhile
        with suppress(OSError, TypeError, IndexError):
            if found.getpeername()[1] == port:
                return found
        found.close()
    return None


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
            # Where nobody listens, a TCPStore would try for minutes and print much.
            socket.create_connection((store.host, store.port), _CONNECTS_WITHIN_S).close()
            within = timedelta(seconds=_CONNECTS_WITHIN_S)
            opened = dist.TCPStore(store.host, store.port, is_master=False, wait_for_workers=False, timeout=within)
            return store.port, opened
        if isinstance(store, dist.FileStore):
            return None, dist.FileStore(store.path, dist.get_world_size())
        return None, store
    except Exception as error:
        raise ExchangeError(f"the store of the default process group cannot be used: {error}") from error
