"""A reserved port stays a server's own, also while the server is away."""

import socket
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from errno import EADDRNOTAVAIL, ENOPROTOOPT

import grpc
import pytest

from controller.process.server import SERVER_OPTIONS
from experiments.scenarios.reserved_address import ReservedAddress

_IP_LOCAL_PORT_RANGE = 51
"""ip(7), since Linux 6.3: among which ports the kernel chooses for a socket."""


@pytest.fixture
def reserved() -> Iterator[tuple[str, int]]:
    with closing(ReservedAddress("127.0.0.1:0")) as address:
        host, _, port = address.address.rpartition(":")
        yield host, int(port)


def _only(port: int) -> socket.socket:
    """Return a socket for which the kernel chooses this port."""
    made = socket.socket()
    try:
        made.setsockopt(socket.IPPROTO_IP, _IP_LOCAL_PORT_RANGE, struct.pack("I", port << 16 | port))
    except OSError as error:
        made.close()
        if error.errno != ENOPROTOOPT:
            raise
        pytest.skip("the kernel has no IP_LOCAL_PORT_RANGE (Linux 6.3): that it passes over the port is not checked")
    return made


def test_one_server_at_a_time_listens_there_again_and_again(reserved: tuple[str, int]) -> None:
    for _ in range(3):
        with socket.create_server(reserved):
            with pytest.raises(OSError, match="in use"):
                socket.create_server(reserved)
            socket.create_connection(reserved).close()
    with ThreadPoolExecutor(1) as threads:
        server = grpc.server(threads, options=SERVER_OPTIONS)
        assert server.add_insecure_port("{}:{}".format(*reserved)) == reserved[1]
        server.start()
        socket.create_connection(reserved).close()
        server.stop(None).wait()


def test_neither_a_connection_nor_another_server_is_given_it(reserved: tuple[str, int]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, _only(reserved[1]) as connecting:
        assert connecting.connect_ex(other.getsockname()) == EADDRNOTAVAIL
    with _only(reserved[1]) as binding:
        binding.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with pytest.raises(OSError, match="in use"):
            binding.bind(("127.0.0.1", 0))


@pytest.mark.parametrize("address", ["127.0.0.1:4790", "unix:/run/trainyard/controller:0"])
def test_an_address_that_names_its_place_stays_as_it_is(address: str) -> None:
    with closing(ReservedAddress(address)) as reserved:
        assert reserved.address == address


def test_a_host_that_is_not_here_is_refused() -> None:
    with pytest.raises(OSError, match="assign"):
        ReservedAddress("192.0.2.1:0")
