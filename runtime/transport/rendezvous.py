"""Which tuple of a peer goes where, whichever side speaks first. Pure: no I/O; its caller keeps threads apart.

A consumer *expects* a tuple in a place, a producer *offers* one. Small ("eager") tuples travel as soon as they are
offered, and wait here where nobody expects them yet. Larger ones wait at their producer until it is *granted* the
place, so that they are received straight into it, and nothing is sent that has nowhere to go. Every expectation and
every offer ends exactly once; from then on its memory is its owner's again.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from runtime.transport.errors import FrameError, TransportError, WithdrawnError
from runtime.transport.framing import EAGER_BYTES, Place, Tag
from runtime.transport.shared_memory import Segment

_LOG = logging.getLogger(__name__)

MOST_EARLY_BYTES = 256 << 20
"""What eager tuples that nobody expects may take."""
_MOST_WITHDRAWN = 1 << 16
"""As many withdrawn executions are remembered, to drop what comes late."""

Ended = Callable[[TransportError | None], None]
"""What is called once, from any thread, when a tuple is where it should be (None), or never will be."""


def end(calls: Iterable[Ended], cause: TransportError | None) -> None:
    """Call all of them, whatever one raises."""
    for call in calls:
        try:
            call(cause)
        except Exception:
            _LOG.exception("the end of a tuple could not be handled")


@dataclass(frozen=True)
class Expectation:
    """Where a tuple shall be: ``memory``, which may be a part of a segment at an offset."""

    memory: memoryview
    ended: Ended
    segment: Segment | None = None
    offset_bytes: int = 0

    @property
    def place(self) -> Place:
        """What its producer is told."""
        return Place(self.segment.number if self.segment else 0, self.offset_bytes, len(self.memory))


@dataclass(frozen=True)
class Offer:
    """A tuple to be sent."""

    payload: memoryview
    ended: Ended


class Rendezvous:
    """The tuples from and to one peer."""

    def __init__(self) -> None:
        self._expected: dict[Tag, Expectation] = {}
        self._early: dict[Tag, bytes] = {}
        self._early_bytes = 0
        self._offered: dict[Tag, Offer] = {}
        self._granted: dict[Tag, Place] = {}
        self._withdrawn: dict[int, None] = {}
        self._withdrawing: set[int] = set()

    def expect(self, tag: Tag, expectation: Expectation) -> bytes | None:
        """Expect a tuple; return its payload if it was early, and nothing is expected any more.

        Raises ValueError if it is expected already, FrameError for an early payload of another size, WithdrawnError if
        its execution was withdrawn.
        """
        self._check_wanted(tag)
        if tag in self._expected:
            raise ValueError(f"{tag}: expected already")
        early = self._early.get(tag)
        if early is None:
            self._expected[tag] = expectation
            return None
        _check_size(tag, len(early), len(expectation.memory))
        self._early_bytes -= len(self._early.pop(tag))
        return early

    def arrived(self, tag: Tag, payload: memoryview) -> Expectation | None:
        """Return who expects an eager tuple that has arrived; keep a copy if nobody does yet.

        Raises FrameError for the wrong size, for a second tuple of that tag, and if too much is early.
        """
        expectation = self._expected.get(tag)
        if expectation is not None:
            _check_size(tag, len(payload), len(expectation.memory))
            return self._expected.pop(tag)
        if tag.execution in self._withdrawn:
            return None
        if tag in self._early:
            raise FrameError(f"{tag}: the tuple came twice")
        if self._early_bytes + len(payload) > MOST_EARLY_BYTES:
            raise FrameError(f"{tag}: more than {MOST_EARLY_BYTES} bytes of tuples came that nobody expects")
        self._early[tag] = bytes(payload)
        self._early_bytes += len(payload)
        return None

    def granted(self, tag: Tag, size_bytes: int) -> Expectation:
        """Return who expects a large tuple that begins to arrive; it goes on being expected until ``received``.

        Raises FrameError for a tuple that was not granted, or of another size.
        """
        expectation = self._expected.get(tag)
        if expectation is None or len(expectation.memory) <= EAGER_BYTES:
            raise FrameError(f"{tag}: a tuple of {size_bytes} bytes, which was not granted")
        _check_size(tag, size_bytes, len(expectation.memory))
        return expectation

    def received(self, tag: Tag) -> Expectation:
        """Return who expected a large tuple that has arrived."""
        return self._expected.pop(tag)

    def placed(self, tag: Tag) -> Expectation:
        """Return who expected a tuple that its producer has placed. Raises FrameError if nobody granted it."""
        expectation = self._expected.get(tag)
        if expectation is None or expectation.segment is None:
            raise FrameError(f"{tag}: placed in shared memory, where no place was granted")
        return self._expected.pop(tag)

    def offer(self, tag: Tag, offer: Offer) -> Place | None:
        """Offer a large tuple; return its place if that was granted before.

        Raises ValueError if it is offered already, and for a place of another size; WithdrawnError if its execution was
        withdrawn.
        """
        self.check_offered(tag)
        place = self._granted.get(tag)
        if place is None:
            self._offered[tag] = offer
            return None
        if place.size_bytes != len(offer.payload):
            raise ValueError(f"{tag}: {len(offer.payload)} bytes, where the consumer expects {place.size_bytes}")
        return self._granted.pop(tag)

    def check_offered(self, tag: Tag) -> None:
        """Check that a tuple may be offered. Raises ValueError and WithdrawnError as ``offer``."""
        self._check_wanted(tag)
        if tag in self._offered:
            raise ValueError(f"{tag}: offered already")

    def grant(self, tag: Tag, place: Place) -> Offer | None:
        """Return the offer whose place became known; remember the place if there is none yet.

        Raises FrameError for a second place, and one of another size than the tuple's.
        """
        if tag.execution in self._withdrawn:
            return None
        if tag in self._granted:
            raise FrameError(f"{tag}: a second place")
        offer = self._offered.get(tag)
        if offer is None:
            self._granted[tag] = place
            return None
        _check_size(tag, place.size_bytes, len(offer.payload))
        return self._offered.pop(tag)

    def withdraw(self, execution: int) -> list[Ended]:
        """Withdraw an execution here; return what ends at once: its offers. Expectations end with ``withdrawn``.

        Until then memory may still be written to.
        """
        self._remember(execution)
        self._withdrawing.add(execution)
        return self._stop_sending(execution)

    def peer_withdraws(self, execution: int) -> list[Ended]:
        """Withdraw an execution that the peer withdrew; return what ends: its offers."""
        self._remember(execution)
        return self._stop_sending(execution)

    def withdraws_too(self, execution: int) -> bool:
        """Return whether to withdraw an execution because the peer did: something is expected that will not come."""
        is_new = execution not in self._withdrawing and any(tag.execution == execution for tag in self._expected)
        if is_new:
            self._withdrawing.add(execution)
        return is_new

    def withdrawn(self, execution: int) -> list[Ended]:
        """Return the expectations that end because the peer sends no more of an execution.

        Raises FrameError if it was not withdrawn here.
        """
        if execution not in self._withdrawing:
            raise FrameError(f"execution {execution}: withdrawn, but nobody had asked for it")
        self._withdrawing.discard(execution)
        tags = [tag for tag in self._expected if tag.execution == execution]
        return [self._expected.pop(tag).ended for tag in tags]

    def lose(self) -> list[Ended]:
        """Return all that ends because the peer is gone."""
        ended = [each.ended for each in self._expected.values()]
        ended += [each.ended for each in self._offered.values()]
        self._expected.clear()
        self._offered.clear()
        self._early.clear()
        self._granted.clear()
        return ended

    def _stop_sending(self, execution: int) -> list[Ended]:
        for tag in [tag for tag in self._granted if tag.execution == execution]:
            del self._granted[tag]
        for early in [tag for tag in self._early if tag.execution == execution]:
            self._early_bytes -= len(self._early.pop(early))
        offered = [tag for tag in self._offered if tag.execution == execution]
        return [self._offered.pop(tag).ended for tag in offered]

    def _remember(self, execution: int) -> None:
        self._withdrawn[execution] = None
        if len(self._withdrawn) > _MOST_WITHDRAWN:
            del self._withdrawn[next(iter(self._withdrawn))]

    def _check_wanted(self, tag: Tag) -> None:
        if tag.execution in self._withdrawn:
            raise WithdrawnError(f"{tag}: execution {tag.execution} was withdrawn")


def _check_size(tag: Tag, size_bytes: int, expected_bytes: int) -> None:
    if size_bytes != expected_bytes:
        raise FrameError(f"{tag}: {size_bytes} bytes, expected {expected_bytes}")
