"""Session window: classifies the numbered packets of a sender that may begin anew, or be imitated."""

from hostlib.wire.sequence_window import Arrival, SequenceWindow

SESSION_SILENCE_S = 1.0
"""A host takes another session of a sender when the one before has been silent for so long, and starts no sooner."""

MAX_CLOCK_JUMP_NS = 1_000_000_000
"""How much longer or shorter than the packet before it a packet may seem to travel, by the clocks of both ends."""

_LASTING = 3
"""Packets of a session that is remembered instead of the one before it."""

_NEW = Arrival.NEW


class SessionWindow:
    """The numbers of the session in force, and what it takes to continue otherwise.

    A sender numbers its packets in a session with a random number of its own, and begins another when it restarts.
    Anybody may send a packet with any numbers, so no single packet decides what counts from then on: another session,
    a number far ahead or one far behind count only once nothing has counted for ``silence_s``. Genuine packets, of
    which many come in that time, are never shut out for longer. The session before the one in force is remembered, so
    that its packets do not count twice. A number far behind must also come at the right time by the sender's clock,
    which tells a sender that was pushed aside from packets that somebody repeats.

    ``window`` counts the packets of the session in force, and ``generation`` how often numbers began anew.
    """

    __slots__ = ("_former", "_heard_s", "_session", "_silence_s", "_travelled_ns", "generation", "window")

    def __init__(self, silence_s: float) -> None:
        self.window = SequenceWindow()
        self.generation = 0
        self._silence_s = silence_s
        self._session = -1
        self._heard_s = 0.0
        self._travelled_ns: int | None = None
        self._former: tuple[int, SequenceWindow] | None = None

    def note(self, session: int, number: int, travelled_ns: int, now_s: float) -> Arrival:
        """Record a packet.

        Args:
            session: The sender's session.
            number: Of the packet in its session.
            travelled_ns: When it arrived by the receiver's clock, less when it was sent by the sender's.
            now_s: When it arrived, by a clock that the caller trusts.

        Returns:
            How the packet counts. ``CLOCK`` means that one of the clocks has jumped since the packet before, or that
            somebody imitates the sender; from then on the clocks count as right again.
        """
        if session != self._session and not self._begin(session, number, now_s):
            return Arrival.OTHER_SESSION if now_s < self._heard_s + self._silence_s else Arrival.DUPLICATE
        arrival = self.window.note(number)
        if arrival is not _NEW and not arrival.is_new:
            if not self._resumes(arrival, number, travelled_ns, now_s):
                return arrival
            arrival = _NEW
        self._heard_s = now_s
        before_ns, self._travelled_ns = self._travelled_ns, travelled_ns
        if before_ns is not None and not -MAX_CLOCK_JUMP_NS <= travelled_ns - before_ns <= MAX_CLOCK_JUMP_NS:
            return Arrival.CLOCK
        return arrival

    def _begin(self, session: int, number: int, now_s: float) -> bool:
        """Put another session in force, if the one before is silent and this packet is not of a former one."""
        if self._session >= 0 and now_s < self._heard_s + self._silence_s:
            return False
        window = SequenceWindow()
        returns = self._former is not None and self._former[0] == session
        if self._former is not None and returns:
            window = self._former[1]
            if not window.is_unseen(number):
                return False
        # A stray packet in a pause is no session worth remembering.
        if self._former is None or returns or self.window.received >= _LASTING:
            self._former = self._session, self.window
        self._session, self.window, self._travelled_ns = session, window, None
        self.generation += 1
        return True

    def _resumes(self, arrival: Arrival, number: int, travelled_ns: int, now_s: float) -> bool:
        """Continue at a number far ahead or far behind, if nothing else has counted lately."""
        if now_s < self._heard_s + self._silence_s:
            return False
        if arrival is Arrival.JUMP:
            self.window.skip_to(number)
            return True
        before_ns = self._travelled_ns
        if arrival is Arrival.TOO_OLD and before_ns is not None and abs(travelled_ns - before_ns) <= MAX_CLOCK_JUMP_NS:
            self.window = SequenceWindow()
            self.window.note(number)
            self.generation += 1
            return True
        return False
