"""What services tell their service manager, and what they make of an odd environment."""

import asyncio
import os
from pathlib import Path
from time import monotonic_ns

import pytest

from hostlib.service_manager import ServiceManager
from tests.deploy.manager_socket import ManagerSocket


def test_each_message_is_one_datagram(tmp_path: Path) -> None:
    with ManagerSocket(tmp_path / "notify") as systemd:
        manager = ServiceManager(systemd.address)
        manager.ready("listening on 127.0.0.1:4790")
        manager.status("leading, term 3")
        manager.stopping()
        assert systemd.drain() == [
            {"READY": "1", "STATUS": "listening on 127.0.0.1:4790"},
            {"STATUS": "leading, term 3"},
            {"STOPPING": "1"},
        ]


def test_a_reload_has_a_time_and_ends_as_ready_whatever_happens(tmp_path: Path) -> None:
    with ManagerSocket(tmp_path / "notify") as systemd:
        before_us = monotonic_ns() // 1000
        with pytest.raises(ValueError, match="half-written"), ServiceManager(systemd.address).reloading():
            raise ValueError("half-written")
        begun, ended = systemd.drain()
        assert begun.keys() == {"RELOADING", "MONOTONIC_USEC"}
        assert before_us <= int(begun["MONOTONIC_USEC"]) <= monotonic_ns() // 1000
        assert ended == {"READY": "1"}


def test_abstract_sockets_are_reached() -> None:
    with ManagerSocket(f"@trainyard-test-{os.getpid()}") as systemd:
        ServiceManager(systemd.address).stopping()
        assert systemd.drain() == [{"STOPPING": "1"}]


def test_a_status_stays_one_line(tmp_path: Path) -> None:
    with ManagerSocket(tmp_path / "notify") as systemd:
        ServiceManager(systemd.address).status("host\nMAINPID=1\udc80")
        assert systemd.drain() == [{"STATUS": "host MAINPID=1?"}]


def test_nobody_is_told_where_nobody_listens(tmp_path: Path) -> None:
    ServiceManager().ready("ready")
    ServiceManager(str(tmp_path / "gone")).ready("ready")


def test_a_manager_that_does_not_read_holds_nobody_up(tmp_path: Path) -> None:
    with ManagerSocket(tmp_path / "notify") as systemd:
        manager = ServiceManager(systemd.address)
        room = int(Path("/proc/sys/net/unix/max_dgram_qlen").read_text())
        for number in range(room + 5):
            manager.status(f"{number}")
        assert systemd.heard() == {"STATUS": "0"}


def test_the_environment_is_taken_and_not_handed_on(tmp_path: Path) -> None:
    environment = {
        "NOTIFY_SOCKET": str(tmp_path / "notify"),
        "WATCHDOG_USEC": "30000",
        "WATCHDOG_PID": str(os.getpid()),
        "HOME": "/",
    }

    async def first_signs(systemd: ManagerSocket, manager: ServiceManager) -> list[dict[str, str]]:
        alive = asyncio.create_task(manager.keep_alive())
        signs = [await asyncio.to_thread(systemd.heard)]
        manager.ready("ready")
        while (sign := await asyncio.to_thread(systemd.heard)) == signs[0]:
            pass  # on a busy machine it asks for patience more than once
        signs += [sign, *[await asyncio.to_thread(systemd.heard) for _ in range(2)]]
        alive.cancel()
        return signs

    with ManagerSocket(tmp_path / "notify") as systemd:
        manager = ServiceManager.from_environment(environment)
        assert environment == {"HOME": "/"}
        assert asyncio.run(first_signs(systemd, manager)) == [
            {"EXTEND_TIMEOUT_USEC": "30000"},
            {"READY": "1", "STATUS": "ready"},
            {"WATCHDOG": "1"},
            {"WATCHDOG": "1"},
        ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NOTIFY_SOCKET", "relative"),
        ("NOTIFY_SOCKET", ""),
        ("NOTIFY_SOCKET", "/" + 200 * "a"),
        ("NOTIFY_SOCKET", "vsock:2:1234"),
        ("WATCHDOG_USEC", "soon"),
        ("WATCHDOG_USEC", "0"),
        ("WATCHDOG_USEC", "-5"),
    ],
)
def test_what_cannot_be_used_is_named_and_counts_as_none(
    name: str, value: str, caplog: pytest.LogCaptureFixture
) -> None:
    ServiceManager.from_environment({name: value}).ready("ready")
    (record,) = caplog.records
    assert record.getMessage().startswith(f"{name}: expected ")


def test_the_watchdog_of_another_process_is_not_fed(tmp_path: Path) -> None:
    async def ready_then_late(manager: ServiceManager) -> None:
        manager.ready("ready")
        alive = asyncio.create_task(manager.keep_alive())
        await asyncio.sleep(0.05)
        alive.cancel()

    environment = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "3000", "WATCHDOG_PID": "1"}
    with ManagerSocket(tmp_path / "notify") as systemd:
        asyncio.run(ready_then_late(ServiceManager.from_environment(environment)))
        assert systemd.drain() == [{"READY": "1", "STATUS": "ready"}]
