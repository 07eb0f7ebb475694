"""Bounds on what callers make the controller keep: connections, calls in progress, lines of logs and of the trail."""

import pytest

from controller.access import connections
from controller.access.budget import Budget
from controller.access.connections import ConnectionLimitError, ConnectionTable


def test_a_connection_with_a_silent_stream_counts_however_long_it_is_silent() -> None:
    now_s = 0.0
    table = ConnectionTable(lambda: now_s)
    with table.call("job", "one", 2):
        with table.call("job", "two", 2):
            pass
        now_s = 1_000.0
        with table.call("job", "three", 2):  # in place of the second, which is idle
            pass
        with pytest.raises(ConnectionLimitError, match="connections"), table.call("job", "four", 2):
            pass
    now_s = 2_000.0
    with table.call("job", "four", 2), table.call("job", "five", 2):
        pass


def test_an_identity_has_so_many_calls_in_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_CALLS", 2)
    table = ConnectionTable(lambda: 0.0)
    with table.call("job", "one", 9), table.call("job", "two", 9):
        with pytest.raises(ConnectionLimitError, match="calls"), table.call("job", "one", 9):
            pass
        with table.call("other", "three", 9):
            pass
    with table.call("job", "one", 9), table.call("job", "one", 9):
        pass


def test_identities_that_are_gone_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_MANY_IDENTITIES", 10)
    now_s = 0.0
    table = ConnectionTable(lambda: now_s)
    with table.call("lasting", "stream", 9):
        for number in range(10_000):
            now_s += 1
            with table.call(f"job-{number}", "one", 9):
                pass
        assert len(table) < 1_000
        assert table._calls["lasting"] == 1


def test_a_budget_leaves_out_what_comes_too_often_and_says_how_much() -> None:
    now_s = 0.0
    budget = Budget(2, 0.1, lambda: now_s)
    assert [budget.take("a") for _ in range(5)] == [0, 0, None, None, None]
    assert budget.take("b") == 0
    now_s = 10.0
    assert [budget.take("a") for _ in range(2)] == [3, None]
    for number in range(5_000):
        now_s += 100.0
        budget.take(str(number))
    assert len(budget._accounts) < 2_000
