"""Which runs of a program a controller takes to be sending, as a client of it is told."""

from typing import Any

import pytest

from runtime.server import instances
from runtime.server.instances import Instances

PAIRS = [(0, 2), (1, 3), (2, 0)]
"""Hosts 0 and 1 are on one island, hosts 2 and 3 on another one."""


class Client:
    """Knows which instance is open."""

    def __init__(self) -> None:
        self.open: set[int] = set()

    def start_flow_groups(self, _job: str, _flow_groups: Any, number: int) -> None:
        self.open = {number}

    def end_flow_groups(self, _job: str, _flow_groups: Any, number: int) -> None:
        self.open.remove(number)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> tuple[Instances, Client]:
    """Instances of a job that is registered."""
    monkeypatch.setattr(instances, "_PAUSE_S", 0.0)
    client: Any = Client()
    announced = Instances(client, lambda _run, _job: None)
    announced.begin("job", ["there", "back"], PAIRS)
    return announced, client


def test_a_host_that_waits_cancels_nothing_while_a_flow_between_others_is_needed(
    made: tuple[Instances, Client],
) -> None:
    announced, client = made
    announced.start(5)
    announced.stall(5, 0, is_stalled=True)
    assert client.open == {0}
    announced.stall(5, 3, is_stalled=True)
    assert not client.open
    announced.stall(5, 0, is_stalled=False)
    assert client.open == {1}
    announced.stall(5, 2, is_stalled=True)
    assert not client.open


def test_a_run_that_goes_on_is_announced_though_others_wait(made: tuple[Instances, Client]) -> None:
    announced, client = made
    for run in (5, 6):
        announced.start(run)
        for host in (2, 3):
            announced.stall(run, host, is_stalled=True)
    assert not client.open
    announced.stall(6, 3, is_stalled=False)
    assert client.open
    announced.end(6)
    assert not client.open
