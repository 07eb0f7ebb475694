"""Check that what a host reports is its own, new, and consistent with its clock."""

import hmac
from dataclasses import dataclass, field
from enum import StrEnum

from controller.registry.errors import NotOwnerError
from hostlib.wire.sequence_window import Arrival
from hostlib.wire.session_window import SESSION_SILENCE_S, SessionWindow

_NS_PER_S = 1_000_000_000

SILENCE_S = SESSION_SILENCE_S / 2
"""A session that has not been heard for so long may give way to another. Hosts wait twice as long, so what has passed
them passes here."""


class RejectReason(StrEnum):
    """Why the controller rejects a report, in the order of the checks; the first five reject a whole exchange."""

    NOT_OWNER = "another agent speaks for the reporter's host"
    REPLAYED_EXCHANGE = "the exchange was told before, or of another session than the one in force"
    TOO_MANY = "more reports in an exchange than are allowed"
    COUNTS = "counts of dropped packets that no host reaches"
    HOST_CLOCK = "the reporter's clock has jumped"
    NOT_ITS_HOST = "the probe went to another host than the reporter's"
    NOT_WANTED = "no job has a flow between its NICs"
    SOURCE_PORT = "no host was told to probe from its source port"
    TOO_OLD = "older than what may be late"
    OTHER_SESSION = "of another session of the sender than the one in force"
    REPLAYED = "its number has been reported before"
    NUMBER_JUMP = "its number is far ahead of all before"
    SENDER_CLOCK = "the sender's clock has jumped"
    STACK = "the stack is not of whole hops, or has none"
    UNKNOWN_SWITCH = "a hop is no switch of the topology"
    NOT_ADJACENT = "no cable leads from one hop to the next"
    NOT_A_CANDIDATE = "not a path that ECMP allows"
    HOP_TIMES = "a hop's times and latency contradict each other"


_REASONS = {
    Arrival.DUPLICATE: RejectReason.REPLAYED,
    Arrival.TOO_OLD: RejectReason.REPLAYED,
    Arrival.JUMP: RejectReason.NUMBER_JUMP,
    Arrival.OTHER_SESSION: RejectReason.OTHER_SESSION,
    Arrival.CLOCK: RejectReason.SENDER_CLOCK,
}


@dataclass(slots=True)
class _Reporter:
    owner_token: str
    heard_s: float
    exchanges: SessionWindow = field(default_factory=lambda: SessionWindow(SILENCE_S))
    has_gap: bool = True


class Reporters:
    """The agents that report for hosts.

    A host belongs to the token of the first agent that reports for it, until nothing of that agent has counted for
    ``lease_s``. What was remembered of the agent's exchanges is forgotten then.
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
        if reporter is None or now_s >= reporter.heard_s + self._lease_s:
            self._by_host[host] = _Reporter(owner_token, now_s)
        elif not hmac.compare_digest(reporter.owner_token.encode(), owner_token.encode()):
            raise NotOwnerError(f"owner_token: host {host!r} is spoken for by another agent")

    def has_gap(self, host: str) -> bool:
        """Return whether exchanges of a host before its last one were lost."""
        return self._by_host[host].has_gap

    def check_exchange(self, host: str, session: int, number: int, clock_ns: int, now_s: float) -> RejectReason | None:
        """Record an exchange of an authorised host; return why its reports are rejected, if they are."""
        reporter = self._by_host[host]
        exchanges = reporter.exchanges
        generation, newest = exchanges.generation, exchanges.window.newest
        arrival = exchanges.note(session, number, round(now_s * _NS_PER_S) - clock_ns, now_s)
        if not arrival.is_new and arrival is not Arrival.CLOCK:
            return RejectReason.REPLAYED_EXCHANGE
        reporter.has_gap = exchanges.generation != generation or number != newest + 1
        reporter.heard_s = now_s
        return RejectReason.HOST_CLOCK if arrival is Arrival.CLOCK else None


def check_arrival(arrival: Arrival) -> RejectReason | None:
    """Return why a probe of a sender's session is rejected, if it is.

    Sender and receiver have clocks of their own, so only a change of their difference shows a jump. After a jump the
    clocks count as right again.
    """
    return _REASONS.get(arrival)
