"""A producer and a consumer over a pure model of their connections, in whatever order hypothesis draws."""

from collections import deque
from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from runtime.transport.errors import FrameError, PeerLostError, TransportError, WithdrawnError
from runtime.transport.framing import EAGER_BYTES, Place, Tag
from runtime.transport.rendezvous import MOST_EARLY_BYTES, Ended, Expectation, Offer, Rendezvous, end

SMALL, LARGE = 10, EAGER_BYTES + 1
EXECUTIONS = (1, 2)
TAGS = st.builds(
    Tag, st.sampled_from(EXECUTIONS), st.integers(0, 2), st.sampled_from([SMALL, LARGE]), st.just(0)
)  # a tuple's shard says how large it is


def ignored(_: TransportError | None) -> None:
    pass


class Exchange(RuleBasedStateMachine):
    """Two queues stand for the two connections; each delivers in order, neither waits for the other."""

    def __init__(self) -> None:
        super().__init__()
        self.consumer, self.producer = Rendezvous(), Rendezvous()
        self.messages_to_consumer: deque[Callable[[], None]] = deque()
        self.messages_to_producer: deque[Callable[[], None]] = deque()
        self.bulk: deque[Callable[[], None]] = deque()
        self.expected: dict[Tag, list[TransportError | None]] = {}
        self.offered: dict[Tag, list[TransportError | None]] = {}
        self.sent: set[Tag] = set()
        self.memories: dict[Tag, bytearray] = {}
        self.withdrawn: set[int] = set()
        self.is_lost = False

    def content(self, tag: Tag) -> bytes:
        return bytes([tag.execution, tag.edge]) * (tag.shard // 2) + b"." * (tag.shard % 2)

    @precondition(lambda self: not self.is_lost)
    @rule(tag=TAGS)
    def expect(self, tag: Tag) -> None:
        if tag in self.expected:
            return
        memory, ends = bytearray(tag.shard), []
        try:
            early = self.consumer.expect(tag, Expectation(memoryview(memory), ends.append))
        except WithdrawnError:
            assert tag.execution in self.withdrawn
            return
        self.expected[tag], self.memories[tag] = ends, memory
        if early is not None:
            memory[:] = early
            ends.append(None)
        elif tag.shard == LARGE:
            self.messages_to_producer.append(lambda: self.granted(tag))

    @precondition(lambda self: not self.is_lost)
    @rule(tag=TAGS)
    def offer(self, tag: Tag) -> None:
        if tag in self.offered:
            return
        payload, ends = self.content(tag), []
        try:
            if tag.shard == SMALL:
                self.producer.check_offered(tag)
                self.messages_to_consumer.append(lambda: self.arrived(tag))
                ends.append(None)
                self.sent.add(tag)
            elif self.producer.offer(tag, Offer(memoryview(payload), ends.append)) is not None:
                self.transfer(tag, ends.append)
        except WithdrawnError:
            assert tag.execution in self.withdrawn
            return
        self.offered[tag] = ends

    @precondition(lambda self: not self.is_lost)
    @rule(execution=st.sampled_from(EXECUTIONS))
    def withdraw(self, execution: int) -> None:
        if execution in self.withdrawn:
            return
        self.withdrawn.add(execution)
        end(self.consumer.withdraw(execution), WithdrawnError())
        self.messages_to_producer.append(lambda: self.answer(execution))

    @precondition(lambda self: not self.is_lost)
    @rule(execution=st.sampled_from(EXECUTIONS))
    def producer_withdraws(self, execution: int) -> None:
        if execution in self.withdrawn:
            return
        self.withdrawn.add(execution)
        end(self.producer.withdraw(execution), WithdrawnError())

        def withdrawn() -> None:
            end(self.consumer.peer_withdraws(execution), WithdrawnError())
            self.bulk.append(lambda: end(self.producer.withdrawn(execution), WithdrawnError()))
            if self.consumer.withdraws_too(execution):
                self.messages_to_producer.append(lambda: self.answer(execution))

        self.messages_to_consumer.append(withdrawn)

    @precondition(lambda self: self.messages_to_consumer)
    @rule()
    def deliver_to_consumer(self) -> None:
        self.messages_to_consumer.popleft()()

    @precondition(lambda self: self.messages_to_producer)
    @rule()
    def deliver_to_producer(self) -> None:
        self.messages_to_producer.popleft()()

    @precondition(lambda self: self.bulk)
    @rule()
    def deliver_bulk(self) -> None:
        self.bulk.popleft()()

    @precondition(lambda self: not self.is_lost and len(self.expected) > 3)
    @rule()
    def lose(self) -> None:
        self.is_lost = True
        for queue in (self.messages_to_consumer, self.messages_to_producer, self.bulk):
            queue.clear()
        for side in (self.consumer, self.producer):
            end(side.lose(), PeerLostError())
        assert all(len(ends) == 1 for ends in self.expected.values())

    @precondition(lambda self: self.is_lost)
    @rule()
    def nothing_is_left(self) -> None:
        assert not self.consumer.lose()
        assert not self.producer.lose()

    @invariant()
    def ends_once_and_with_its_bytes(self) -> None:
        for ends in (*self.expected.values(), *self.offered.values()):
            assert len(ends) <= 1
        for tag, ends in self.expected.items():
            if ends == [None]:
                assert tag in self.sent
                assert self.memories[tag] == self.content(tag)

    def teardown(self) -> None:
        while self.messages_to_consumer or self.messages_to_producer or self.bulk:
            for queue in (self.messages_to_consumer, self.messages_to_producer, self.bulk):
                while queue:
                    queue.popleft()()
        self.ends_once_and_with_its_bytes()
        if self.is_lost:
            return
        for tag in self.expected.keys() & self.offered.keys():
            assert len(self.expected[tag]) == 1
        for tag, ends in self.expected.items():
            if tag.execution in self.withdrawn:
                assert len(ends) == 1

    def granted(self, tag: Tag) -> None:
        offer = self.producer.grant(tag, Place(0, 0, LARGE))
        if offer is not None:
            self.transfer(tag, offer.ended)

    def transfer(self, tag: Tag, ended: Ended) -> None:
        self.sent.add(tag)

        def received() -> None:
            self.consumer.granted(tag, LARGE).memory[:] = self.content(tag)
            ended(None)
            end((self.consumer.received(tag).ended,), None)

        self.bulk.append(received)

    def arrived(self, tag: Tag) -> None:
        expectation = self.consumer.arrived(tag, memoryview(self.content(tag)))
        if expectation is not None:
            expectation.memory[:] = self.content(tag)
            expectation.ended(None)

    def answer(self, execution: int) -> None:
        end(self.producer.peer_withdraws(execution), WithdrawnError())
        self.bulk.append(lambda: end(self.consumer.withdrawn(execution), WithdrawnError()))


Exchange.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
test_every_tuple_ends_once_whatever_the_order = Exchange.TestCase


def test_what_is_early_is_limited() -> None:
    consumer, payload = Rendezvous(), memoryview(bytes(EAGER_BYTES))
    for number in range(MOST_EARLY_BYTES // EAGER_BYTES):
        consumer.arrived(Tag(1, number, 0, 0), payload)
    with pytest.raises(FrameError, match="nobody expects"):
        consumer.arrived(Tag(2, 0, 0, 0), payload)
    assert consumer.expect(Tag(1, 0, 0, 0), Expectation(memoryview(bytearray(EAGER_BYTES)), ignored)) == payload
    consumer.arrived(Tag(2, 0, 0, 0), payload)
    consumer.withdraw(1)
    for number in range(1, MOST_EARLY_BYTES // EAGER_BYTES):
        consumer.arrived(Tag(3, number, 0, 0), payload)


def test_nothing_is_expected_or_offered_twice() -> None:
    rendezvous, tag = Rendezvous(), Tag(1, 2, 3, 4)
    rendezvous.expect(tag, Expectation(memoryview(bytearray(LARGE)), ignored))
    with pytest.raises(ValueError, match="expected already"):
        rendezvous.expect(tag, Expectation(memoryview(bytearray(LARGE)), ignored))
    rendezvous.offer(tag, Offer(memoryview(bytes(LARGE)), ignored))
    with pytest.raises(ValueError, match="offered already"):
        rendezvous.offer(tag, Offer(memoryview(bytes(LARGE)), ignored))


def test_an_end_that_raises_keeps_no_other_from_ending() -> None:
    ended: list[TransportError | None] = []

    def mistaken(_: TransportError | None) -> None:
        raise RuntimeError("a mistake")

    end([mistaken, ended.append], None)
    assert ended == [None]
