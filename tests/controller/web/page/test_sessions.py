"""Sessions are bounded in time and number."""

import pytest

from controller.web.page import sessions as module
from controller.web.page.sessions import LIFETIME_S, MOST_OF_ONE, Sessions


class _Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_a_session_ends_by_itself_or_when_it_is_ended() -> None:
    clock = _Clock()
    sessions = Sessions(clock)
    first, second = sessions.begin("secret", "alice"), sessions.begin("secret", "alice")
    assert first != second
    assert "secret" not in first
    assert sessions.token(first) == "secret"
    sessions.end(first)
    assert sessions.token(first) is None
    clock.now_s = LIFETIME_S
    assert sessions.token(second) is None
    assert sessions.token("") is None


def test_one_more_session_of_somebody_ends_the_oldest_one_of_theirs() -> None:
    sessions = Sessions(_Clock())
    other = sessions.begin("t", "bob")
    cookies = [sessions.begin("t", "alice") for _ in range(MOST_OF_ONE + 2)]
    assert [sessions.token(cookie) for cookie in cookies[:3]] == [None, None, "t"]
    assert sessions.token(other) == "t"


def test_there_are_never_more_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SESSIONS", 3)
    sessions = Sessions(_Clock())
    cookies = [sessions.begin("t", f"viewer {number}") for number in range(5)]
    assert [sessions.token(cookie) is not None for cookie in cookies] == [False, False, True, True, True]
