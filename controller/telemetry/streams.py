"""The probes of one sender between two NICs, by their numbers: which reports of them can be new."""

from controller.telemetry.drops import Drop
from hostlib.wire.sequence_window import Arrival, SequenceWindow

MAX_CLOCK_JUMP_NS = 1_000_000_000
"""How much longer or shorter than the one before a probe may seem to have travelled."""


class ProbeStream:
    """A sender's newest session; ``window`` has its numbers, and counts what is missing, late and doubled."""

    __slots__ = ("_session", "_travelled_ns", "window")

    def __init__(self) -> None:
        self.window = SequenceWindow()
        self._session = -1
        self._travelled_ns: int | None = None

    def note(self, session: int, sequence: int, sent_ns: int, received_ns: int) -> Drop | None:
        """A report of a probe; why it is to be dropped, if it is.

        Sender and receiver have clocks of their own, so that only changes of the difference tell. After a jump it is
        believed again as it is then.
        """
        if session < self._session:
            return Drop.OLD_SESSION
        if session > self._session:
            self._session, self._travelled_ns, self.window = session, None, SequenceWindow()
        arrival = self.window.note(sequence)
        if not arrival.is_new:
            return Drop.NUMBER_JUMP if arrival is Arrival.JUMP else Drop.REPLAYED
        before_ns, self._travelled_ns = self._travelled_ns, received_ns - sent_ns
        if before_ns is not None and abs(self._travelled_ns - before_ns) > MAX_CLOCK_JUMP_NS:
            return Drop.SENDER_CLOCK
        return None
