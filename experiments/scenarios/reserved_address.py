"""An address at which a server listens again after it has been killed."""

import socket


class ReservedAddress:
    """An address whose port is kept while no server listens there, until ``close``.

    Of ``HOST:0`` the port is chosen now. The kernel gives it to no connection, and to no other socket that asks for any
    port; servers that set SO_REUSEADDR, as gRPC's do, can listen there, one at a time. An address that names its port,
    and one that is no ``HOST:PORT``, stays as it is.

    Raises:
        OSError: There is no such host.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._kept: socket.socket | None = None
        host, _, port = address.rpartition(":")
        if port != "0" or address.startswith("unix:"):
            return
        family, kind, protocol, _, place = socket.getaddrinfo(host.strip("[]"), 0, type=socket.SOCK_STREAM)[0]
        self._kept = socket.socket(family, kind, protocol)
        try:
            self._kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._kept.bind(place)  # it never listens, and is in no server's way
        except OSError:
            self.close()
            raise
        self.address = f"{host}:{self._kept.getsockname()[1]}"

    def close(self) -> None:
        """Let others have the port."""
        if self._kept is not None:
            self._kept.close()
