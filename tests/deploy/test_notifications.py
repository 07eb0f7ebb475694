"""The controller and the agent as services: what they tell systemd when they start, live, hang and end."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from controller.leadership.lease import VACANT, LeaseRecord
from controller.store.leader_lease import DatabaseLease
from tests.deploy.manager_socket import ManagerSocket
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow

_WATCHDOG_S = 0.3
_SILENT_PERIODS = 6
_CONFIG = """
listen: 127.0.0.1:0
topology: {kind: dumbbell, hosts_per_side: 1, host_link_gbps: 100, bottleneck_gbps: 100}
switches: [{name: t0, address: "127.0.0.1:1"}, {name: t1, address: "127.0.0.1:1"}]
"""
_HANGING = """
import asyncio, signal, sys
from controller.__main__ import main
from controller.process import daemon

def hang():
    print("hanging", flush=True)
    sys.stdin.readline()

def tune_for_latency(real=daemon.tune_for_latency):
    real()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, hang)

daemon.tune_for_latency = tune_for_latency
sys.exit(main(["--config", sys.argv[1]]))
"""


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[ManagerSocket]:
    with ManagerSocket(tmp_path / "notify") as manager:
        yield manager


@contextmanager
def service(systemd: ManagerSocket, *command: str | Path, **environment: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, *map(str, command)],
        env=os.environ | {"NOTIFY_SOCKET": systemd.address} | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def config(folder: Path, *lines: str) -> Path:
    file = folder / "controller.yaml"
    file.write_text("\n".join((_CONFIG, *lines)))
    return file


def test_a_controller_is_ready_pings_while_its_loop_runs_and_says_that_it_stops(
    systemd: ManagerSocket, tmp_path: Path
) -> None:
    watched = {"WATCHDOG_USEC": str(round(_WATCHDOG_S * 1e6))}
    with service(systemd, "-c", _HANGING, config(tmp_path), **watched) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert systemd.heard().keys() == {"EXTEND_TIMEOUT_USEC"}  # it may compile for long
        assert systemd.next_with("READY")["STATUS"].startswith("listening on 127.0.0.1:")
        assert process.stdout.readline().startswith("listening on 127.0.0.1:")
        for _ in range(3):
            systemd.next_with("WATCHDOG")

        process.send_signal(signal.SIGUSR1)
        assert process.stdout.readline() == "hanging\n"
        systemd.drain()
        with pytest.raises(TimeoutError):
            systemd.heard(_SILENT_PERIODS * _WATCHDOG_S)
        process.stdin.write("\n")
        process.stdin.flush()
        systemd.next_with("WATCHDOG")

        process.send_signal(signal.SIGTERM)
        systemd.next_with("STOPPING")
        assert process.wait(timeout=PATIENCE_S) == 0
        assert not any("READY" in message for message in systemd.drain())


def test_a_controller_without_a_watchdog_is_ready_and_does_not_ping(systemd: ManagerSocket, tmp_path: Path) -> None:
    with service(systemd, "-m", "controller", "--config", config(tmp_path)) as process:
        systemd.next_with("READY")
        process.send_signal(signal.SIGTERM)
        assert systemd.heard() == {"STOPPING": "1"}


def test_a_standby_is_ready_and_says_what_it_waits_for(systemd: ManagerSocket, tmp_path: Path) -> None:
    database = tmp_path / "controllers.db"
    file = config(tmp_path, f"database: {database}", "leadership: {name: two, lease_s: 1}")
    with closing(DatabaseLease.open(str(database))) as table:
        assert asyncio.run(table.take(VACANT, LeaseRecord("one", 1, 0, 3600.0)))
        with service(systemd, "-m", "controller", "--config", file) as process:
            assert systemd.next_with("READY")["STATUS"].startswith("standing by, listening on ")
            asyncio.run(table.give_back(1))
            assert systemd.next_with("STATUS")["STATUS"].startswith("leading, term 2, listening on ")
            process.send_signal(signal.SIGTERM)
            systemd.next_with("STOPPING")
            assert process.wait(timeout=PATIENCE_S) == 0


def test_a_bad_configuration_is_never_ready(systemd: ManagerSocket, tmp_path: Path) -> None:
    with service(systemd, "-m", "controller", "--config", config(tmp_path, "polcy: crux")) as process:
        assert process.wait(timeout=PATIENCE_S) == 2
    assert systemd.drain() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="not tried: an agent needs CAP_NET_RAW, that is root")
def test_an_agent_is_ready_without_a_controller_and_pings(systemd: ManagerSocket) -> None:
    options = ("--host", "h0", "--nic", "lo=127.0.0.1@1", "--controller", "127.0.0.1:1", "--leave-probes")
    watched = {"WATCHDOG_USEC": str(round(_WATCHDOG_S * 1e6))}
    with service(systemd, "-m", "hostlib.agent", *options, **watched) as process:
        assert systemd.next_with("READY")["STATUS"].startswith("probing for h0 by lo (127.0.0.1, ")
        systemd.next_with("WATCHDOG")
        process.send_signal(signal.SIGUSR1)
        assert systemd.next_with("STATUS")["STATUS"].startswith("h0: targets 0, probes sent 0")
        process.send_signal(signal.SIGTERM)
        systemd.next_with("STOPPING")
        assert process.wait(timeout=PATIENCE_S) == 0
