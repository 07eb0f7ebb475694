"""Addresses of controllers: HOST:PORT and nothing else."""

import pytest

from hostlib import BlockingClient, Client
from hostlib.addresses import check_address, is_loopback, unique_addresses
from hostlib.connection import Connection


@pytest.mark.parametrize(
    "address",
    ["foo", "foo:", ":4790", "foo:0", "foo:65536", "::1:4790", "[::1]", "a b:1", "h:1\n", "h:٣", "http://h:1", 7],
)
def test_an_address_without_host_or_port_is_refused_at_once(address: str) -> None:
    for make in (BlockingClient, Client, Connection):
        with pytest.raises(ValueError, match="address: expected HOST:PORT with a port from 1 to 65535"):
            make([address])


@pytest.mark.parametrize("address", ["controller:4790", "10.0.0.1:1", "[::1]:65535", "a-b.example:80"])
def test_what_names_host_and_port_is_an_address(address: str) -> None:
    assert check_address(address) == address


def test_an_address_counts_once() -> None:
    assert unique_addresses(["a:1", "b:1", "a:1"]) == ("a:1", "b:1")


def test_loopback_is_told_from_the_network() -> None:
    assert all(map(is_loopback, ("127.0.0.1:1", "127.9.9.9:1", "localhost:1", "[::1]:1")))
    assert not any(map(is_loopback, ("10.0.0.1:1", "localhost.example:1", "[2001:db8::1]:1", "controller:1")))
