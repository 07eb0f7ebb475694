"""Check that what a host reports is its own, new, and consistent with its clock."""

import hmac
from dataclasses import dataclass
from enum import StrEnum

from controller.registry.errors import NotOwnerError
from hostlib.wire.sequence_window import Arrival, SequenceWindow

MAX_CLOCK_JUMP_S = 1.0
"""How far the clock of a host may drift from ours between two exchanges, including the delays of the messages, or the
travel time of a probe may differ from that of the probe before it."""

_NS_PER_S = 1_000_000_000
_NEW = Arrival.NEW
_MAX_CLOCK_JUMP_NS = round(MAX_CLOCK_JUMP_S * _NS_PER_S)


class RejectReason(StrEnum):
    """Why the controller rejects a report, in the order of the checks; the first four reject a whole exchange."""

    NOT_OWNER = "another agent speaks for the reporter's host"
    REPLAYED_EXCHANGE = "the exchange was told before"
    TOO_MANY = "more reports in an exchange than are allowed"
    HOST_CLOCK = "the reporter's clock has jumped"
    NOT_ITS_HOST = "the probe went to another host than the reporter's"
    NOT_WANTED = "no job has a flow between its NICs"
    SOURCE_PORT = "no host was told to probe from its source port"
    TOO_OLD = "older than what may be late"
    OLD_SESSION = "of a session of the sender that has ended"
    REPLAYED = "its number has been reported before"
    NUMBER_JUMP = "its number is far ahead of all before"
    SENDER_CLOCK = "the sender's clock has jumped"
    STACK = "the stack is not of whole hops, or has none"
    UNKNOWN_SWITCH = "a hop is no switch of the topology"
    NOT_ADJACENT = "no cable leads from one hop to the next"
    NOT_A_CANDIDATE = "not a path that ECMP allows"
    HOP_TIMES = "a hop's times and latency contradict each other"


@dataclass(slots=True)
class _Reporter:
    owner_token: str
    heard_s: float
    session: int = -1
    number: int = -1
    clock_ns: int = 0
    has_gap: bool = True


class Reporters:
    """The agents that report for hosts.

    A host belongs to the token of the first agent that reports for it, until that agent is silent for ``lease_s``.
    """

    def __init__(self, lease_s: float) -> None:
        self._lease_s = lease_s
        self._by_host: dict[str, _Reporter] = {}

    def authorise(self, host: str, owner_token: str, now_s: float) -> None:
        """Check that an agent may report for a host.

        Raises:
            NotOwnerError: Another agent reports for the host.
        """
        reporter = self._by_host.get(host)
        if reporter is not None and not hmac.compare_digest(reporter.owner_token.encode(), owner_token.encode()):
            if now_s < reporter.heard_s + self._lease_s:
                raise NotOwnerError(f"owner_token: host {host!r} is spoken for by another agent")
            reporter = None
        if reporter is None:
            self._by_host[host] = _Reporter(owner_token, now_s)

    def has_gap(self, host: str) -> bool:
        """Return whether exchanges of a host before its last one were lost."""
        return self._by_host[host].has_gap

    def check_exchange(self, host: str, session: int, number: int, clock_ns: int, now_s: float) -> RejectReason | None:
        """Record an exchange of an authorised host; return why its reports are rejected, if they are.

        After a jump the clock counts as right again.
        """
        reporter = self._by_host[host]
        if (session, number) <= (reporter.session, reporter.number):
            return RejectReason.REPLAYED_EXCHANGE
        drift_s = (clock_ns - reporter.clock_ns) / _NS_PER_S - (now_s - reporter.heard_s)
        has_jumped = reporter.session == session and abs(drift_s) > MAX_CLOCK_JUMP_S
        reporter.has_gap = (session, number) != (reporter.session, reporter.number + 1)
        reporter.session, reporter.number = session, number
        reporter.clock_ns, reporter.heard_s = clock_ns, now_s
        return RejectReason.HOST_CLOCK if has_jumped else None


class ProbeStream:
    """The probes between two NICs in the sender's newest session; ``window`` counts missing, late and doubled ones."""

    __slots__ = ("_session", "_travelled_ns", "window")

    def __init__(self) -> None:
        self.window = SequenceWindow()
        self._session = -1
        self._travelled_ns: int | None = None

    def check_probe(self, session: int, sequence: int, sent_ns: int, received_ns: int) -> RejectReason | None:
        """Record a probe by its numbers and times; return why its report is rejected, if it is.

        Sender and receiver have clocks of their own, so only a change of their difference shows a jump. After a jump
        the clocks count as right again.
        """
        if session < self._session:
            return RejectReason.OLD_SESSION
        if session > self._session:
            self._session, self._travelled_ns, self.window = session, None, SequenceWindow()
        arrival = self.window.note(sequence)
        if arrival is not _NEW and not arrival.is_new:
            return RejectReason.NUMBER_JUMP if arrival is Arrival.JUMP else RejectReason.REPLAYED
        before_ns, self._travelled_ns = self._travelled_ns, received_ns - sent_ns
        if before_ns is not None and abs(self._travelled_ns - before_ns) > _MAX_CLOCK_JUMP_NS:
            return RejectReason.SENDER_CLOCK
        return None
