"""Addresses of controllers: HOST:PORT, unix:/PATH, and nothing else."""

import pytest

from hostlib import BlockingClient, Client
from hostlib.addresses import check_address, is_local, unique_addresses
from hostlib.connection import Connection


@pytest.mark.parametrize(
    "address",
    ["foo", "foo:", ":4790", "foo:0", "foo:65536", "::1:4790", "[::1]", "a b:1", "h:1\n", "h:٣", "http://h:1", 7],
)
def test_an_address_without_host_or_port_is_refused_at_once(address: str) -> None:
    for make in (BlockingClient, Client, Connection):
        with pytest.raises(ValueError, match="address: expected HOST:PORT with a port from 1 to 65535, or unix:/PATH"):
            make([address])


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("unix:", "expected an absolute path after unix:"),
        ("unix:run/socket", "expected an absolute path after unix:"),
        ("unix:///run/a b", "expected an absolute path after unix:"),
        ("unix:/run/a%20b", "expected an absolute path after unix:"),
        ("unix:/run/größe", "expected an absolute path after unix:"),
        ("unix:/run/a\0", "expected an absolute path after unix:"),
        ("unix:/" + "x" * 107, "expected a path of at most 107 bytes after unix:, not 108"),
    ],
)
def test_a_path_that_no_socket_can_have_is_refused_at_once(address: str, problem: str) -> None:
    for make in (BlockingClient, Client, Connection):
        with pytest.raises(ValueError, match=f"^address: {problem}.*, got 'unix:"):
            make([address])


@pytest.mark.parametrize(
    "address", ["controller:4790", "10.0.0.1:1", "[::1]:65535", "a-b.example:80", "unix:/a", "unix:/" + "x" * 106]
)
def test_what_names_host_and_port_or_a_path_is_an_address(address: str) -> None:
    assert check_address(address) == address


def test_an_address_counts_once() -> None:
    assert unique_addresses(["a:1", "b:1", "a:1"]) == ("a:1", "b:1")


def test_this_machine_is_told_from_the_network() -> None:
    assert all(map(is_local, ("127.0.0.1:1", "127.9.9.9:1", "localhost:1", "[::1]:1", "unix:/run/socket")))
    assert not any(map(is_local, ("10.0.0.1:1", "localhost.example:1", "[2001:db8::1]:1", "controller:1")))
