"""Who speaks for which host, and whether what it says can be new."""

import hmac
from dataclasses import dataclass

from controller.registry.registration import NotOwnerError
from controller.telemetry.drops import Drop

MAX_CLOCK_JUMP_S = 1.0
"""How far a reporter's clock may run ahead of or behind ours between two exchanges, messages' delays included."""

_NS_PER_S = 1_000_000_000


@dataclass(slots=True)
class _Reporter:
    owner_token: str
    heard_s: float
    session: int = -1
    number: int = -1
    clock_ns: int = 0
    has_gap: bool = True


class Reporters:
    """The agents of hosts. A host belongs to the token that first spoke for it, until it is silent for ``lease_s``."""

    def __init__(self, lease_s: float) -> None:
        self._lease_s = lease_s
        self._by_host: dict[str, _Reporter] = {}

    def authorise(self, host: str, owner_token: str, now_s: float) -> None:
        """Raise NotOwnerError where the host is somebody else's."""
        known = self._by_host.get(host)
        if known is not None and not hmac.compare_digest(known.owner_token.encode(), owner_token.encode()):
            if now_s < known.heard_s + self._lease_s:
                raise NotOwnerError(f"owner_token: host {host!r} is spoken for by another agent")
            known = None
        if known is None:
            self._by_host[host] = _Reporter(owner_token, now_s)

    def has_gap(self, host: str) -> bool:
        """Whether there were exchanges of a host before its last one that nobody heard."""
        return self._by_host[host].has_gap

    def note(self, host: str, session: int, number: int, clock_ns: int, now_s: float) -> Drop | None:
        """An exchange of an authorised host; why its reports are to be dropped, if they are.

        After a jump the clock is believed again as it is then.
        """
        known = self._by_host[host]
        if (session, number) <= (known.session, known.number):
            return Drop.REPLAYED_EXCHANGE
        drift_s = (clock_ns - known.clock_ns) / _NS_PER_S - (now_s - known.heard_s)
        has_jumped = known.session == session and abs(drift_s) > MAX_CLOCK_JUMP_S
        known.has_gap = (session, number) != (known.session, known.number + 1)
        known.session, known.number, known.clock_ns, known.heard_s = session, number, clock_ns, now_s
        return Drop.HOST_CLOCK if has_jumped else None
