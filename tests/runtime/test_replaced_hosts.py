"""Hosts of a substrate that says itself when they end, and puts others in the place of those that are lost."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest

import runtime as rt
from runtime.addresses import listening
from runtime.server.service import Server
from runtime.server.settings import ClientSettings, IslandSettings, ServerSettings
from runtime.substrates.interface import HostSettings, SubstrateError
from runtime.substrates.local import LocalSubstrate
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow

add_one = rt.function(library="numpy", outputs=lambda x: x)(lambda x: x + 1)


class Cluster(LocalSubstrate):
    """Processes of this machine. Those that take the place of others fail once."""

    def __init__(self) -> None:
        super().__init__()
        self.fails: list[str] = []
        self.breaks: list[Exception] = []
        self.tell: Callable[[int, str], None] = lambda _host, _why: None

    def watch(self, on_end: Callable[[int, str], None]) -> None:
        self.tell = on_end

    def spawn(self, settings: HostSettings) -> None:
        if self.breaks:
            raise self.breaks.pop()
        if self.fails:
            raise SubstrateError(f"host {settings.host}: {self.fails.pop()}")
        super().spawn(settings)

    def lost(self, _: int) -> bool:
        return True


@contextmanager
def served(folder: Path, cluster: Cluster, hosts: int) -> Iterator[rt.Runtime]:
    address = f"unix:{folder}/server"
    settings = ServerSettings(
        address,
        str(folder),
        (IslandSettings("island-0", hosts, 1),),
        (ClientSettings("one", "token", is_operator=True),),
        "secret",
        "fifo",
        0.02,
    )
    is_ready, failed = Event(), []
    loop = asyncio.new_event_loop()
    server = Server(settings, cluster)

    def run() -> None:
        try:
            loop.run_until_complete(server.serve(listening(address), is_ready.set))
        except SubstrateError as error:
            failed.append(error)
            is_ready.set()

    thread = Thread(target=run)
    thread.start()
    try:
        assert is_ready.wait(PATIENCE_S)
        if failed:
            raise failed[0]
        with rt.connect(address, "token") as runtime:
            yield runtime
    finally:
        loop.call_soon_threadsafe(server.stop)
        thread.join()
        loop.close()
        cluster.close()


def until(holds: Callable[[], bool]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end_s
        time.sleep(0.01)


def numbers(runtime: rt.Runtime) -> list[int]:
    return sorted(host["host"] for host in runtime.status()["hosts"])


def test_a_host_of_which_the_substrate_says_that_it_has_ended_is_lost_and_replaced(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster()
    with served(tmp_path, cluster, hosts=2) as runtime:
        add: Any = rt.pmap(add_one, devices=runtime.make_virtual_device_set().add_slice(2))
        lost = add(np.zeros(2)).wait(PATIENCE_S)
        cluster.fails = ["there is no room yet"]
        cluster.tell(0, "its node is silent")  # its connection has not ended
        until(lambda: numbers(runtime) == [1, 3])
        with pytest.raises(rt.LostError, match="host 0 of island island-0 ended: its node is silent"):
            add(lost).numpy(PATIENCE_S)
        assert add(np.zeros(2)).numpy(PATIENCE_S).tolist() == [1, 1]
    assert "nothing takes the place of host 0 yet: host 2: there is no room yet" in capfd.readouterr().err


def test_a_substrate_that_breaks_keeps_nobody_waiting(tmp_path: Path) -> None:
    cluster = Cluster()
    with served(tmp_path, cluster, hosts=1) as runtime:
        add: Any = rt.pmap(add_one, devices=runtime.make_virtual_device_set().add_slice(1))
        lost = add(np.zeros(1)).wait(PATIENCE_S)
        cluster.breaks = [RuntimeError("its cluster is gone")]
        cluster.tell(0, "its node is silent")
        with pytest.raises(rt.LostError):
            add(lost).numpy(PATIENCE_S)
        until(lambda: numbers(runtime) == [2])
        cluster.breaks = [RuntimeError("its cluster is gone")]
        with pytest.raises(rt.RefusedError, match=r"host 3: .*its cluster is gone"):
            runtime.add_host("island-0")


def test_a_server_whose_first_hosts_cannot_be_started_says_why(tmp_path: Path) -> None:
    cluster = Cluster()
    cluster.fails = ["there is no room"]
    with pytest.raises(SubstrateError, match="host 0: there is no room"), served(tmp_path, cluster, hosts=2):
        pass


def test_a_host_that_cannot_join_is_refused_with_the_reason(tmp_path: Path) -> None:
    cluster = Cluster()
    with served(tmp_path, cluster, hosts=1) as runtime:
        cluster.fails = ["there is no room"]
        with pytest.raises(rt.RefusedError, match="host 1: there is no room"):
            runtime.add_host("island-0")
        assert numbers(runtime) == [0]
        assert runtime.add_host("island-0") == 2
