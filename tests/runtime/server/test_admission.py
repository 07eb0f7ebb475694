"""Programs that a quota holds back, on a clock of turns."""

from collections.abc import Callable
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from runtime import messages
from runtime.arrays import ArraySpec
from runtime.lowering.assign import AT_CLIENT
from runtime.server.accounts import Account, HeldArray, Ledger
from runtime.server.admission import Admission
from runtime.server.channel import Channel
from runtime.server.settings import ClientSettings, Quota

SPEC = ArraySpec((), "int8")


class Reading:
    """Stands in for a connection: it notes whether it is read."""

    is_paused = False

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False


class Clients:
    """Two connections of a client with a quota of programs, and what has happened to each message, in order."""

    def __init__(self, most: int) -> None:
        self.ledger = Ledger(ClientSettings("one", "token", quota=Quota(most_programs=most)))
        self.most = most
        self.accounts = [Account(number, self.ledger, cast("Channel", Reading())) for number in range(2)]
        self.turns: list[Callable[[], None]] = []
        self.admission = Admission(self.start, self.handle, lambda call: self.turns.append(call))
        self.running: list[tuple[Account, messages.Execute]] = []
        self.done: list[tuple[Account, object]] = []

    def start(self, account: Account, message: messages.Execute, _: memoryview) -> None:
        assert all(handle in account.arrays for handle in message.arguments)
        for handle in message.results:
            account.hold(handle, HeldArray(SPEC, AT_CLIENT, None))
        self.done.append((account, message))
        self.ledger.running += 1
        assert self.ledger.running <= self.most
        assert not account.is_suspended
        self.running.append((account, message))

    def handle(self, account: Account, message: Any) -> None:
        if isinstance(message, messages.Release):
            for handle in message.handles:
                assert account.let_go(handle)
                self.done.append((account, handle))
        else:
            assert message.handle in account.arrays
            self.done.append((account, message))

    def end(self, place: int) -> None:
        self.running.pop(place % len(self.running))
        self.ledger.running -= 1
        self.admission.ended(self.ledger)

    def turn(self) -> None:
        turns, self.turns = self.turns, []
        for call in turns:
            call()

    def send(self, account: Account, message: object) -> None:
        if isinstance(message, messages.Execute):
            self.admission.execute(account, message, memoryview(b"data"))
        else:
            self.admission.take(account, message)


@given(st.data())
def test_programs_start_in_order_and_never_more_than_the_quota(data: st.DataObject) -> None:
    clients = Clients(data.draw(st.integers(1, 3)))
    sent: list[tuple[Account, object]] = []
    known: dict[Account, list[int]] = {account: [] for account in clients.accounts}
    for handle in range(data.draw(st.integers(0, 40))):
        account = data.draw(st.sampled_from(clients.accounts))
        mine = known[account]
        step = data.draw(st.sampled_from(["run", "run", "run", "release", "fetch", "end", "turn", "suspend", "resume"]))
        if step == "run" and not account.is_suspended:
            taken = data.draw(st.lists(st.sampled_from(mine), max_size=2, unique=True)) if mine else []
            sent.append((account, messages.Execute(0, tuple(taken), (handle,))))
            clients.send(*sent[-1])
            mine.append(handle)
        elif step == "release" and mine and not account.is_suspended:
            gone = data.draw(st.lists(st.sampled_from(mine), min_size=1, max_size=3, unique=True))
            sent += [(account, each) for each in gone]
            clients.send(account, messages.Release(tuple(gone)))
            known[account] = [each for each in mine if each not in gone]
        elif step == "fetch" and mine and not account.is_suspended:
            sent.append((account, messages.Fetch(handle, data.draw(st.sampled_from(mine)), True)))
            clients.send(*sent[-1])
        elif step == "end" and clients.running:
            clients.end(data.draw(st.integers(0, 9)))
        elif step == "turn":
            clients.turn()
        elif step in ("suspend", "resume"):
            account.is_suspended = step == "suspend"
            clients.admission.go_on(clients.ledger)
    for account in clients.accounts:
        account.is_suspended = False
    clients.admission.go_on(clients.ledger)
    while clients.running:
        clients.end(0)
        clients.turn()
    assert sorted(map(repr, clients.done)) == sorted(map(repr, sent))
    for account in clients.accounts:
        assert not account.held_back
        assert account.held_back_bytes == 0
        of_sent, of_done = (
            [each for holder, each in log if holder is account and isinstance(each, messages.Execute)]
            for log in (sent, clients.done)
        )
        assert of_done == of_sent
        done = [each for holder, each in clients.done if holder is account]
        for place, each in enumerate(done):
            if isinstance(each, int):
                uses = [
                    other for other in done[place:] if isinstance(other, messages.Execute) and each in other.arguments
                ]
                assert not uses  # what takes an array starts before the array goes
    assert not clients.ledger.waiting


def test_connections_of_a_client_take_turns() -> None:
    clients = Clients(1)
    one, other = clients.accounts
    for handle in range(3):
        clients.send(one, messages.Execute(0, (), (handle,)))
    for handle in range(2):
        clients.send(other, messages.Execute(0, (), (handle,)))
    while clients.running:
        clients.end(0)
        clients.turn()
    assert [account.number for account, _ in clients.done] == [0, 0, 1, 0, 1]


def test_a_connection_that_sends_very_much_is_not_read_until_some_has_started() -> None:
    clients = Clients(1)
    account = clients.accounts[0]
    reading = cast("Reading", account.channel)
    for handle in range(1001):
        assert not reading.is_paused
        clients.send(account, messages.Execute(0, (), (handle,)))
    assert reading.is_paused
    while reading.is_paused:
        clients.end(0)
        clients.turn()
    assert len(account.held_back) == 499


def test_what_is_held_back_of_a_connection_that_has_ended_is_forgotten() -> None:
    clients = Clients(1)
    account = clients.accounts[0]
    for handle in range(2):
        clients.send(account, messages.Execute(0, (), (handle,)))
    clients.admission.drop(account)
    clients.end(0)
    clients.turn()
    assert (len(clients.done), clients.ledger.running) == (1, 0)


def test_a_connection_with_much_held_back_is_read_no_further_whatever_it_sends() -> None:
    clients = Clients(1)
    account = clients.accounts[0]
    for number in range(2):
        clients.admission.execute(account, messages.Execute(0, (), (number,)), memoryview(b""))
    reading = cast("Reading", account.channel)
    for number in range(2000):
        clients.admission.take(account, messages.Fetch(number, 1, True))
        if reading.is_paused:
            break
    assert reading.is_paused
    assert len(account.held_back) == 1000


def test_an_array_goes_no_sooner_than_a_question_for_it() -> None:
    clients = Clients(1)
    account = clients.accounts[0]
    for handle in range(3):
        clients.send(account, messages.Execute(0, (), (handle,)))
    question = messages.Fetch(7, 1, True)
    clients.send(account, question)
    clients.end(0)
    clients.turn()  # program 1 starts; program 2 and the question wait
    clients.send(account, messages.Release((1,)))
    while clients.running:
        clients.end(0)
        clients.turn()
    assert [each for _, each in clients.done[-2:]] == [question, 1]
