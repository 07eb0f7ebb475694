"""Stand-in ranks send what they are told to, over TCP, and say when it has arrived."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from experiments.scenarios.real_hosts import rank
from tests.patience import PATIENCE_S
from tests.ports import free_port


class Control:
    """The run's end of a rank's control socket."""

    def __init__(self, listener: socket.socket) -> None:
        self._connection, _ = listener.accept()
        self._connection.settimeout(PATIENCE_S)
        self._lines = self._connection.makefile("r")
        self.who = self.heard()

    def heard(self) -> Any:
        """The next message of the rank."""
        return json.loads(self._lines.readline())

    def tell(self, **messages: Any) -> None:
        """Send a message to the rank."""
        self._connection.sendall(json.dumps(messages).encode() + b"\n")

    def arrivals(self, count: int) -> list[tuple[int, int]]:
        """Wait for so many arrivals."""
        found: list[tuple[int, int]] = []
        while len(found) < count:
            found += map(tuple, self.heard().get("arrived", ()))
        return found

    def close(self) -> None:
        """End the conversation."""
        self._lines.close()
        self._connection.close()


@contextmanager
def _ranks(folder: Path, *hosts: str) -> Iterator[tuple[list[Control], list["subprocess.Popen[str]"]]]:
    path = folder / "control.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(PATIENCE_S)
        command = (sys.executable, "-I", "-S", rank.__file__, str(path), "gpt")
        processes, controls = [], []
        try:
            for host in hosts:
                processes.append(subprocess.Popen([*command, host], stderr=subprocess.PIPE, text=True))
                controls.append(Control(listener))
            yield controls, processes
        finally:
            for control in controls:
                control.close()
            for process in processes:
                process.kill()
                process.communicate()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Control, Control, list["subprocess.Popen[str]"]]]:
    """Two ranks; flows 0 and 7 lead from the first to the second."""
    with _ranks(tmp_path, "h0", "h1") as ((one, other), processes):
        listening, *sources = (free_port() for _ in range(3))
        other.tell(listen=[["127.0.0.1", listening]])
        ends = zip((0, 7), sources, strict=True)
        one.tell(connect=[[flow, "127.0.0.1", port, "127.0.0.1", listening] for flow, port in ends])
        opened: list[int] = []
        while len(opened) < 2:
            opened += other.heard()["opened"]
        assert sorted(opened) == [0, 7]
        yield one, other, processes


def test_a_rank_says_who_it_is(tmp_path: Path) -> None:
    with _ranks(tmp_path, "h3") as ((control,), _):
        assert control.who == {"job": "gpt", "host": "h3"}


def test_every_transfer_arrives_once_however_long(pair: tuple[Control, Control, Any]) -> None:
    one, other, _ = pair
    sizes = [1, 8, (1 << 20) - 1, 1 << 20, 5_000_003]
    for size_bytes in sizes:
        before_ns = time.monotonic_ns()
        one.tell(send=[[7, size_bytes]])
        ((flow, at_ns),) = other.arrivals(1)
        assert flow == 7
        assert before_ns <= at_ns <= time.monotonic_ns()


def test_transfers_of_a_flow_follow_each_other_and_flows_go_side_by_side(pair: tuple[Control, Control, Any]) -> None:
    one, other, _ = pair
    one.tell(send=[[0, 3_000_000], [7, 10], [0, 1], [0, 3_000_000], [7, 3_000_000]])
    flows = [flow for flow, _ in other.arrivals(5)]
    assert sorted(flows) == [0, 0, 0, 7, 7]


def test_a_rank_ends_with_its_control_socket(pair: tuple[Control, Control, list["subprocess.Popen[str]"]]) -> None:
    one, _, processes = pair
    one.close()
    assert processes[0].wait(PATIENCE_S) == 0


def test_a_rank_says_when_its_peer_has_died(pair: tuple[Control, Control, list["subprocess.Popen[str]"]]) -> None:
    one, _, processes = pair
    one.tell(send=[[7, 100_000_000]])
    processes[0].kill()
    _, complaint = processes[1].communicate(timeout=PATIENCE_S)
    assert processes[1].returncode == 1
    assert complaint.startswith("rank of gpt at h1: ")
