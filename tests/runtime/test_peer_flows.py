"""Flows between two hosts: connections of their own, levels, and ports that they move to."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from ipaddress import IPv4Address
from threading import Event

import numpy as np
import pytest

from hostlib.torch.sockets import AdoptedSocket, Endpoints
from runtime import messages
from runtime.executor import steering
from tests.patience import PATIENCE_S
from tests.ports import free_port
from tests.runtime.peer_hosts import SEND, TCP, Host, two_hosts
from tests.runtime.ranking import until


@pytest.fixture(scope="module")
def remote() -> Iterator[tuple[Host, Host]]:
    with two_hosts(*TCP) as hosts:
        yield hosts


def ends_of(sender: Host, receiver: Host, number: int) -> Endpoints:
    """The ends of the connection of a flow, as its socket says."""
    peer = sender.do(lambda: sender.peers._outgoing[1, number])
    port = sender.do(peer.connection.source_port)
    loopback = IPv4Address("127.0.0.1")
    return Endpoints(loopback, port, loopback, int(receiver.peers.place.address.rpartition(":")[2]))


def level_of(endpoints: Endpoints) -> int:
    found = AdoptedSocket.open(endpoints)
    assert found is not None
    return found.level


def is_closed(endpoints: Endpoints) -> bool:
    return AdoptedSocket.open(endpoints) is None


def until_from(hosts: tuple[Host, Host], number: int, port: int) -> None:
    """Wait until a flow sends from a port."""
    until(lambda: ends_of(*hosts, number).port == port)


def steered(sender: Host) -> list[messages.FlowSteered]:
    """What a host has told of its flows, and nobody has taken yet."""
    return [sender.steered.get() for _ in range(sender.steered.qsize())]


def open_flows(sender: Host, *numbers: int) -> None:
    steered(sender)  # what was told of earlier flows
    sender.do(lambda: sender.peers.open_flows([messages.FlowToOpen(number, 3, 1) for number in numbers]))


def rank(sender: Host, number: int, level: int, rate_bps: float | None = None, port: int = 0) -> None:
    sender.do(lambda: sender.peers.rank_flows([messages.FlowRank(number, level, rate_bps, port)]))


def send_on(sender: Host, number: int, execution: int) -> None:
    sender.do(lambda: sender.peers.send_piece(1, execution, SEND, np.full(3, 1), number, 5.0))


def arrival(hosts: tuple[Host, Host], execution: int) -> tuple[int, int, int, int]:
    """Send a piece on flow 7; return the name under which the next piece arrives."""
    sender, receiver = hosts
    send_on(sender, 7, execution)
    return receiver.next()[0]


def test_a_flow_has_a_connection_of_its_own_which_sends_at_its_level(remote: tuple[Host, Host]) -> None:
    sender, receiver = remote
    open_flows(sender, 7, 8)
    ends = {number: ends_of(*remote, number) for number in (7, 8)}
    assert len({each.port for each in ends.values()}) == 2
    assert sender.peers.flows.shown() == [(number, 1, -1, ends[number].port) for number in (7, 8)]
    assert arrival(remote, 20) == (20, 3, 4, 5)
    rank(sender, 7, 6)
    rank(sender, 9, 5)
    assert [level_of(ends[number]) for number in (7, 8)] == [6, 0]
    send_on(sender, 7, 21)
    receiver.next()
    sent = list(sender.peers.flows.sent)
    assert [(each.flow, each.name[0], each.size_bytes, each.level, each.made_s) for each in sent] == [
        (7, 20, 24, -1, 5.0),
        (7, 21, 24, 6, 5.0),
    ]
    assert sent[1].ranked_s <= sent[1].began_s
    assert [each.name[0] for each in receiver.peers.flows.arrived] == [20, 21]
    sender.do(lambda: sender.peers.close_flows([7, 8]))
    until(lambda: all(map(is_closed, ends.values())))
    assert arrival(remote, 22) == (22, 3, 4, 5), "what is sent on a flow that is over comes all the same"


def test_a_flow_goes_on_from_the_port_that_it_is_told_between_two_pieces(
    remote: tuple[Host, Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    sender, receiver = remote
    open_flows(sender, 7)
    first, second = free_port(), free_port()
    monkeypatch.setattr(steering, "RETRIED_S", 0.02)
    execution = 40
    for port in (first, second, first, second):  # also soon again: no 5-tuple is held back by the kernel
        before = ends_of(*remote, 7)
        send_on(sender, 7, execution)
        rank(sender, 7, 3, port=port)
        until_from(remote, 7, port)
        send_on(sender, 7, execution + 1)
        assert {receiver.next()[0][0] for _ in range(2)} == {execution, execution + 1}
        assert level_of(ends_of(*remote, 7)) == 3
        until(partial(is_closed, before))
        execution += 2
    assert steered(sender) == []
    assert not sender.do(lambda: sender.peers._outgoing[1, 7].sent.first)
    sender.do(lambda: sender.peers.close_flows([7]))


def test_flows_that_lead_elsewhere_may_send_from_one_port(remote: tuple[Host, Host]) -> None:
    sender, receiver = remote
    port = free_port()
    with socket.create_server(("127.0.0.1", 0)) as other:
        place = messages.Place(f"127.0.0.1:{other.getsockname()[1]}")
        sender.do(lambda: sender.peers.take_places({1: receiver.peers.place, 2: place}))
        sender.do(lambda: sender.peers.open_flows([messages.FlowToOpen(7, 3, 1), messages.FlowToOpen(8, 3, 2)]))
        for number in (7, 8):
            rank(sender, number, 3, port=port)
        until(lambda: [shown[3] for shown in sender.peers.flows.shown()] == [port, port])
        assert steered(sender) == []
        sender.do(lambda: sender.peers.close_flows([7, 8]))
    sender.do(lambda: sender.peers.take_places({1: receiver.peers.place}))


def test_a_flow_whose_port_another_socket_has_sends_from_another_until_it_is_free(
    remote: tuple[Host, Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steering, "RETRIED_S", 0.02)
    sender, _ = remote
    open_flows(sender, 7)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        rank(sender, 7, 6, port=port)
        told = sender.steered.get(timeout=PATIENCE_S)
        assert told == messages.FlowSteered(7, port, "Address already in use")
        assert arrival(remote, 60) == (60, 3, 4, 5)
        unsteered = ends_of(*remote, 7)
        assert (unsteered.port != port, level_of(unsteered)) == (True, 6)
    assert sender.steered.get(timeout=PATIENCE_S) == messages.FlowSteered(7, port, "")
    assert ends_of(*remote, 7).port == port
    assert arrival(remote, 61) == (61, 3, 4, 5)
    sender.do(lambda: sender.peers.close_flows([7]))


def test_a_flow_whose_connection_breaks_gets_another_like_it(
    remote: tuple[Host, Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steering, "RETRIED_S", 0.02)
    sender, _ = remote
    open_flows(sender, 7)
    port = free_port()
    rank(sender, 7, 4, 1e9, port)
    until_from(remote, 7, port)
    sender.do(lambda: sender.peers._outgoing[1, 7].connection.close("it was cut"))
    assert arrival(remote, 30) == (30, 3, 4, 5)
    until_from(remote, 7, port)
    assert level_of(ends_of(*remote, 7)) == 4
    sender.do(lambda: sender.peers.close_flows([7]))


def test_a_flow_that_is_told_its_own_port_again_sends_as_told(remote: tuple[Host, Host]) -> None:
    sender, _ = remote
    open_flows(sender, 7)
    own = ends_of(*remote, 7).port
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        rank(sender, 7, 6, port=port)
        assert sender.steered.get(timeout=PATIENCE_S).cause == "Address already in use"
        rank(sender, 7, 6, port=own)
        assert sender.steered.get(timeout=PATIENCE_S) == messages.FlowSteered(7, own, "")
    assert ends_of(*remote, 7).port == own
    sender.do(lambda: sender.peers.close_flows([7]))


@contextmanager
def deaf(host: Host) -> Iterator[None]:
    """Let a host do nothing meanwhile."""
    is_deaf, hears_again = Event(), Event()

    def wait() -> None:
        is_deaf.set()
        hears_again.wait(PATIENCE_S)

    host.loop.post(wait)
    assert is_deaf.wait(PATIENCE_S)
    try:
        yield
    finally:
        hears_again.set()


@contextmanager
def deaf_listener() -> Iterator[str]:
    """Yield an address at which no connection opens: as many wait there as there is room for."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def test_a_flow_stays_where_it_is_until_the_connection_from_its_port_is_open(
    remote: tuple[Host, Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steering, "RETRIED_S", 0.02)
    monkeypatch.setattr(steering, "OPENED_WITHIN_S", 0.1)
    sender, _ = remote
    open_flows(sender, 7)
    before = ends_of(*remote, 7)
    port = free_port()
    known = dict(sender.peers.places)
    with deaf_listener() as address:
        sender.do(lambda: sender.peers.take_places({1: messages.Place(address)}))
        rank(sender, 7, 6, port=port)
        assert arrival(remote, 70) == (70, 3, 4, 5)
        assert sender.steered.get(timeout=PATIENCE_S) == messages.FlowSteered(7, port, "Connection timed out")
        assert ends_of(*remote, 7) == before
        sender.do(lambda: sender.peers.take_places(known))
        assert sender.steered.get(timeout=PATIENCE_S) == messages.FlowSteered(7, port, "")
    assert ends_of(*remote, 7).port == port
    assert arrival(remote, 71) == (71, 3, 4, 5)
    sender.do(lambda: sender.peers.close_flows([7]))


def test_a_flow_moves_no_further_before_its_last_connection_has_ended_which_is_ranked_until_then(
    remote: tuple[Host, Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steering, "RETRIED_S", 0.02)
    sender, receiver = remote
    open_flows(sender, 7)
    before = ends_of(*remote, 7)
    first, second = free_port(), free_port()
    with deaf(receiver):
        rank(sender, 7, 3, port=first)
        until_from(remote, 7, first)
        rank(sender, 7, 5, port=second)
        assert [level_of(each) for each in (before, ends_of(*remote, 7))] == [5, 5]
        assert not sender.do(lambda: sender.peers._steering._opening)
        assert ends_of(*remote, 7).port == first
    until_from(remote, 7, second)
    sender.do(lambda: sender.peers.close_flows([7]))


def test_a_flow_whose_connection_cannot_be_opened_at_all_may_be_ranked(remote: tuple[Host, Host]) -> None:
    sender, _ = remote
    known = dict(sender.peers.places)

    def open_and_rank() -> None:
        sender.peers.take_places({1: messages.Place("unix:/nowhere/at/all")})
        sender.peers.open_flows([messages.FlowToOpen(7, 3, 1)])
        sender.peers.rank_flows([messages.FlowRank(7, 5, None, 0)])
        sender.peers.take_places(known)

    sender.do(open_and_rank)
    assert arrival(remote, 80) == (80, 3, 4, 5)
    assert level_of(ends_of(*remote, 7)) == 5
    sender.do(lambda: sender.peers.close_flows([7]))
