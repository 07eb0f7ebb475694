"""Seats of HTTP connections: nobody keeps others out, however many connections anybody opens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.web import seats
from controller.web.seats import Seats


class _Connection:
    """A connection that is closed once at most."""

    def __init__(self, *, waits_for_client: bool = True) -> None:
        self.is_open = True
        self.waits_for_client = waits_for_client

    def close_at_once(self) -> None:
        assert self.is_open
        self.is_open = False


def _open(connections: list[_Connection]) -> list[bool]:
    return [each.is_open for each in connections]


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rooms of six seats, of which one may have three."""
    monkeypatch.setattr(seats, "MOST_OF_A_ROOM", 6)
    monkeypatch.setattr(seats, "MOST_OF_ONE", 3)


def _seated(table: Seats, *addresses: str) -> list[_Connection]:
    found = [_Connection() for _ in addresses]
    for connection, address in zip(found, addresses, strict=True):
        table.seat(connection, address)
    return found


def test_the_oldest_of_an_address_goes_for_its_newest() -> None:
    table = Seats()
    assert _open(_seated(table, "10.0.0.1", "10.0.0.2", *["10.0.0.1"] * 4)) == [False, True, False, True, True, True]


def test_where_all_seats_are_taken_one_goes_of_whoever_has_the_most() -> None:
    table = Seats()
    many = _seated(table, *["10.0.0.1"] * 3, "10.0.0.2", "10.0.0.3", "10.0.0.4")
    newcomer = _seated(table, "10.0.0.9")
    assert _open([*many, *newcomer]) == [False, *[True] * 6]


def test_what_is_being_answered_stays_if_something_else_waits_for_its_client() -> None:
    table = Seats()
    busy = _Connection(waits_for_client=False)
    table.seat(busy, "10.0.0.1")
    assert _open(_seated(table, *["10.0.0.1"] * 3)) == [False, True, True]
    assert busy.is_open


def test_a_network_of_ipv6_counts_as_one_address_and_so_does_ipv4_in_ipv6() -> None:
    table = Seats()
    assert _open(_seated(table, *(f"2001:db8::{n}" for n in range(4)))) == [False, True, True, True]
    assert _open(_seated(table, "10.0.0.1", "10.0.0.1", "::ffff:10.0.0.1", "::ffff:10.0.0.1"))[0] is False


def test_a_credential_has_seats_of_its_own_wherever_it_comes_from() -> None:
    table = Seats()
    known = _seated(table, "10.0.0.1")
    table.know(known[0], "viewer 'prometheus'")
    assert _open(_seated(table, *["10.0.0.1"] * 6))[-3:] == [True] * 3
    assert known[0].is_open
    for address in ("10.0.0.2", "10.0.0.3", "10.0.0.4"):
        known += _seated(table, address)
        table.know(known[-1], "viewer 'prometheus'")
    assert _open(known) == [False, True, True, True]


def test_what_was_used_last_goes_last() -> None:
    table = Seats()
    known = _seated(table, *["10.0.0.1"] * 3)
    for each in (*known, known[0]):
        table.know(each, "bob")
    newcomer = _seated(table, "10.0.0.1")[0]
    table.know(newcomer, "bob")
    assert _open(known) == [True, False, True]


def test_who_is_known_only_after_the_connection_has_ended_takes_no_seat() -> None:
    table = Seats()
    connections = _seated(table, *["10.0.0.1"] * 4)
    assert not connections[0].is_open
    table.leave(connections[0])
    table.know(connections[0], "bob")
    others = _seated(table, "10.0.0.2", "10.0.0.3", "10.0.0.4")
    for each in others:
        table.know(each, "bob")
    assert _open(others) == [True] * 3


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.booleans(), st.sampled_from(["", "bob", "eve"]))))
def test_there_are_never_more_than_the_most_and_a_newcomer_has_a_seat(steps: list[tuple[str, bool, str]]) -> None:
    table, seated = Seats(), list[_Connection]()
    for address, is_waiting, credential in steps:
        newcomer = _Connection(waits_for_client=is_waiting)
        table.seat(newcomer, address)
        if credential:
            table.know(newcomer, credential)
        seated = [each for each in (*seated, newcomer) if each.is_open]
        assert newcomer.is_open
        assert len(seated) <= 12
