"""Sessions of browsers: who signs in with a token gets a random cookie, and the token stays here, in memory.

Whether the token still holds is asked at every request. So a session ends when its token expires or is removed from the
file of tokens, at the latest ``LIFETIME_S`` after its beginning, and with the process.
"""

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

LIFETIME_S = 12 * 3600.0
MOST_SESSIONS = 1_000
MOST_OF_ONE = 20
"""Sessions of one identity; with one more, its oldest one ends."""
_COOKIE_BYTES = 32


@dataclass(frozen=True, slots=True)
class _Session:
    token: str
    account: str
    end_s: float


class Sessions:
    """The sessions of one process, by the hashes of their cookies."""

    def __init__(self, now_s: Callable[[], float] = monotonic) -> None:
        self._now_s = now_s
        self._sessions: dict[str, _Session] = {}

    def begin(self, token: str, account: str) -> str:
        """Begin a session for whoever has shown a token; returns its cookie."""
        now_s = self._now_s()
        self._sessions = {key: session for key, session in self._sessions.items() if now_s < session.end_s}
        own = [key for key, session in self._sessions.items() if session.account == account]
        for key in own[: max(0, len(own) - MOST_OF_ONE + 1)]:
            del self._sessions[key]
        if len(self._sessions) >= MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        cookie = secrets.token_urlsafe(_COOKIE_BYTES)
        self._sessions[_hash(cookie)] = _Session(token, account, now_s + LIFETIME_S)
        return cookie

    def token(self, cookie: str) -> str | None:
        """The token of a session; None where there is no such session."""
        session = self._sessions.get(_hash(cookie))
        return session.token if session is not None and self._now_s() < session.end_s else None

    def end(self, cookie: str) -> None:
        """End a session."""
        self._sessions.pop(_hash(cookie), None)


def _hash(cookie: str) -> str:
    return hashlib.sha256(cookie.encode()).hexdigest()
