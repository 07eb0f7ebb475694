"""The socket of a service manager, at which tests hear what a service says."""

import socket
from pathlib import Path
from typing import Self

from tests.patience import PATIENCE_S

_LARGEST = 4096


class ManagerSocket:
    """A socket as systemd has one, as a context manager; ``address`` is what ``NOTIFY_SOCKET`` names."""

    def __init__(self, address: str | Path) -> None:
        self.address = str(address)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(f"\0{self.address[1:]}" if self.address.startswith("@") else self.address)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def heard(self, patience_s: float = PATIENCE_S) -> dict[str, str]:
        """The fields of the next message. Raises TimeoutError where none comes."""
        self._socket.settimeout(patience_s)
        lines = self._socket.recv(_LARGEST).decode().splitlines()
        return dict(line.split("=", 1) for line in lines)

    def next_with(self, field: str) -> dict[str, str]:
        """The next message with a field."""
        while field not in (message := self.heard()):
            pass
        return message

    def drain(self) -> list[dict[str, str]]:
        """The messages that have come and were not heard."""
        drained = []
        while True:
            try:
                drained.append(self.heard(0.0))
            except BlockingIOError:
                return drained
