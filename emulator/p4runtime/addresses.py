"""Check whether an address can be bound, before gRPC tries and reports the reason only in its own log."""

import errno
import socket


def require_free(address: str) -> None:
    """Raise OSError, naming HOST:PORT and the reason, if the address is taken or not local."""
    host, _, port = address.rpartition(":")
    try:
        places = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise _refusal(address, error) from None
    errors = []
    for family, kind, protocol, _, place in places:
        try:
            with socket.socket(family, kind, protocol) as probe:
                # As gRPC does: closed connections do not block the address.
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(place)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise _refusal(address, error) from None
            errors.append(error)
    if len(errors) == len(places):
        raise _refusal(address, errors[0])


def _refusal(address: str, error: OSError) -> OSError:
    return OSError(f"{address} is taken or cannot be bound: {error.strerror}")
