"""What a service tells the service manager that has started it: systemd's notification protocol, sd_notify(3).

Every message is one datagram to the socket that ``NOTIFY_SOCKET`` names. Without it nobody is told.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, suppress
from time import monotonic_ns

_LOG = logging.getLogger(__name__)

_MOST_PATH_BYTES = 107
"""What Linux takes as the address of a Unix socket."""
_SEND_LIMIT_S = 0.02
"""How long a message waits for room in the manager's socket; then it is lost, as if nobody listened."""
_PERIOD_S = 10.0
"""How often a service that starts asks for patience, where the manager wants no signs of life."""
_PINGS_PER_WATCHDOG = 3
_PATIENCE_PERIODS = 3
_US_PER_S = 1_000_000


class ServiceManager:
    """The service manager of this process: ``address`` is its socket, and it wants a sign of life each ``watchdog_s``.

    Example::

        manager = ServiceManager.from_environment()
        alive = asyncio.create_task(manager.keep_alive())
        manager.ready("probing for h0")
        with manager.reloading():
            read_files_again()
        manager.stopping()
    """

    def __init__(self, address: str | None = None, watchdog_s: float | None = None) -> None:
        self._address = address
        self._period_s = _PERIOD_S if watchdog_s is None else watchdog_s / _PINGS_PER_WATCHDOG
        self._is_watched = watchdog_s is not None
        self._is_ready = False

    @classmethod
    def from_environment(cls, environment: MutableMapping[str, str] = os.environ) -> "ServiceManager":
        """The manager that the environment names; the names are removed, as they are not for this process's children.

        An address or a time that cannot be used is logged, and counts as none.
        """
        address = environment.pop("NOTIFY_SOCKET", None)
        watchdog_us, watched = environment.pop("WATCHDOG_USEC", None), environment.pop("WATCHDOG_PID", None)
        if address is not None and not _is_usable(address):
            _LOG.warning("NOTIFY_SOCKET: expected an absolute path or @NAME, got %.100r", address)
            address = None
        if watchdog_us is not None and not (watchdog_us.isdecimal() and int(watchdog_us[:20]) > 0):
            _LOG.warning("WATCHDOG_USEC: expected microseconds above 0, got %.100r", watchdog_us)
            watchdog_us = None
        if watchdog_us is None or watched not in (None, str(os.getpid())):
            return cls(address)
        return cls(address, int(watchdog_us[:20]) / _US_PER_S)

    def ready(self, status: str) -> None:
        """Say that the service has started, or has reloaded."""
        self._is_ready = True
        self._tell("READY=1", _status(status))

    def status(self, status: str) -> None:
        """Say what the service does, in a line for people."""
        self._tell(_status(status))

    @contextmanager
    def reloading(self) -> Iterator[None]:
        """Say that the service reads its files again while the context lasts, and that it is ready in the end."""
        self._tell("RELOADING=1", f"MONOTONIC_USEC={monotonic_ns() // 1000}")
        try:
            yield
        finally:
            self._tell("READY=1")

    def stopping(self) -> None:
        """Say that the service ends."""
        self._tell("STOPPING=1")

    async def keep_alive(self) -> None:
        """Give signs of life while the event loop runs, until cancelled; until the service is ready, ask for patience.

        A loop that hangs gives none, and the manager ends the process.
        """
        while True:
            if not self._is_ready:
                self._tell(f"EXTEND_TIMEOUT_USEC={round(_PATIENCE_PERIODS * self._period_s * _US_PER_S)}")
            elif self._is_watched:
                self._tell("WATCHDOG=1")
            await asyncio.sleep(self._period_s)

    def _tell(self, *fields: str) -> None:
        if self._address is None:
            return
        # A name that begins with @ is in the abstract namespace, where the first byte is 0.
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.settimeout(_SEND_LIMIT_S)
            sender.sendto("\n".join(fields).encode(errors="replace"), address)


def _is_usable(address: str) -> bool:
    return address[:1] in ("/", "@") and "\0" not in address and 1 < len(os.fsencode(address)) <= _MOST_PATH_BYTES


def _status(text: str) -> str:
    # A line end would begin another field.
    return f"STATUS={' '.join(text.split())}"
