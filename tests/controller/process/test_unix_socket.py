"""The file of a controller's Unix socket: what is replaced, what is left, and what stays behind."""

import asyncio
import os
import re
import socket
from pathlib import Path

import pytest

from controller.config import ControllerConfig
from controller.process.server import Server


def config(path: Path) -> ControllerConfig:
    topology = {"kind": "dumbbell", "hosts_per_side": 1, "host_link_gbps": 100, "bottleneck_gbps": 100}
    switches = [{"name": name, "address": "127.0.0.1:1"} for name in ("t0", "t1")]
    return ControllerConfig.model_validate({"listen": f"unix:{path}", "topology": topology, "switches": switches})


def bind_and_end(path: Path) -> None:
    async def scenario() -> None:
        async with Server.bound(config(path)) as server:
            assert server.address == f"unix:{path}"
            assert path.is_socket()

    asyncio.run(scenario())


def refused(path: Path, why: str) -> None:
    with pytest.raises(OSError, match=f"^cannot listen on unix:{re.escape(str(path))}: {why}$"):
        bind_and_end(path)


def test_a_controller_that_never_served_leaves_no_socket(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    bind_and_end(path)
    assert not path.exists()


def test_files_are_made_with_the_permissions_from_before(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        bind_and_end(tmp_path / "socket")
        (tmp_path / "file").touch()
        assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(before)


def test_a_server_that_takes_no_connections_is_a_server(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as waiting:
        server.bind(str(path))
        server.listen(0)
        waiting.connect(str(path))
        refused(path, "another server listens there")
    bind_and_end(path)


def test_what_is_no_socket_is_left(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("mine")
    refused(path, "there is a file that is no socket")
    assert path.read_text() == "mine"


def test_a_path_that_cannot_be_is_refused_with_the_reason(tmp_path: Path) -> None:
    refused(tmp_path / "none" / "socket", "No such file or directory")
    refused(tmp_path, "there is a file that is no socket")
