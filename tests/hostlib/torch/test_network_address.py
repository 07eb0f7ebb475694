"""The interface by which a process reaches its job, chosen for gloo where its own choice would lead nowhere."""

import socket
from ipaddress import IPv4Address

import pytest

from hostlib.torch import network_address
from hostlib.torch.network_address import choose_interface, interface_of, own_address
from tests.namespaces import namespaces

LOOPBACK = IPv4Address("127.0.0.1")


def test_the_loopback_interface_leads_to_oneself() -> None:
    assert own_address("127.0.0.1") == LOOPBACK
    name = interface_of(LOOPBACK)
    assert name is not None
    assert name in [known for _, known in socket.if_nameindex()]


@pytest.mark.parametrize("peer", ["no such host.invalid", "a" * 70 + ".invalid", "::1"])
def test_where_there_is_no_way_there_is_no_address(peer: str) -> None:
    assert own_address(peer) is None


def test_an_address_that_is_no_interface_s_has_none() -> None:
    assert interface_of(IPv4Address("192.0.2.1")) is None


def test_the_interface_of_the_way_is_chosen_where_the_machine_s_name_leads_nowhere() -> None:
    with namespaces("here", "there") as made:
        made.cable(("here", "rail3"), ("there", "eth0"))
        made.ip("here", "address", "add", "10.0.0.1/24", "dev", "rail3")
        made.ip("there", "address", "add", "10.0.0.2/24", "dev", "eth0")
        with made.entered("here"):
            assert own_address("10.0.0.2") == IPv4Address("10.0.0.1")
            assert interface_of(IPv4Address("10.0.0.1")) == "rail3"
            assert own_address("10.9.9.9") is None


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's own name is a loopback address, and the way to others is by rail3."""
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: [(0, 0, 0, "", ("127.0.1.1", 0))])
    monkeypatch.setattr(network_address, "own_address", lambda _: IPv4Address("10.0.0.1"))
    monkeypatch.setattr(network_address, "interface_of", lambda _: "rail3")


@pytest.mark.usefixtures("nowhere")
def test_gloo_is_told_the_interface_that_leads_to_the_master() -> None:
    environment = {"MASTER_ADDR": "10.0.0.2"}
    choose_interface(environment)
    assert environment == {"MASTER_ADDR": "10.0.0.2", "GLOO_SOCKET_IFNAME": "rail3"}


@pytest.mark.usefixtures("nowhere")
@pytest.mark.parametrize(
    "environment", [{}, {"MASTER_ADDR": ""}, {"MASTER_ADDR": "10.0.0.2", "GLOO_SOCKET_IFNAME": "eth7"}]
)
def test_the_user_s_choice_stays_and_without_a_master_none_is_made(environment: dict[str, str]) -> None:
    before = dict(environment)
    choose_interface(environment)
    assert environment == before


@pytest.mark.usefixtures("nowhere")
def test_a_name_that_leads_out_is_left_to_gloo(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = [(0, 0, 0, "", ("127.0.1.1", 0)), (0, 0, 0, "", ("10.0.0.1", 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: addresses)
    environment = {"MASTER_ADDR": "10.0.0.2"}
    choose_interface(environment)
    assert "GLOO_SOCKET_IFNAME" not in environment


@pytest.mark.usefixtures("nowhere")
@pytest.mark.parametrize("address", [None, LOOPBACK])
def test_a_master_on_this_machine_or_nowhere_needs_no_interface(
    monkeypatch: pytest.MonkeyPatch, address: IPv4Address | None
) -> None:
    monkeypatch.setattr(network_address, "own_address", lambda _: address)
    environment = {"MASTER_ADDR": "10.0.0.2"}
    choose_interface(environment)
    assert "GLOO_SOCKET_IFNAME" not in environment


@pytest.mark.usefixtures("nowhere")
def test_a_name_that_nobody_knows_leads_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object) -> None:
        raise socket.gaierror("unknown")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    environment = {"MASTER_ADDR": "10.0.0.2"}
    choose_interface(environment)
    assert environment["GLOO_SOCKET_IFNAME"] == "rail3"
