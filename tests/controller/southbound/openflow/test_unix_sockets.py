"""Switches whose network namespace is not the controller's connect to it over a Unix socket."""

import asyncio
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from controller.access.bound_socket import bound_socket
from controller.southbound.openflow.channel import OpenFlowChannel
from controller.southbound.openflow.limits import LIMITS
from controller.southbound.openflow.listener import OpenFlowListener
from tests.openvswitch import add_dummy_bridge, running_openvswitch
from tests.patience import PATIENCE_S, until

_PATIENT = replace(LIMITS, handshake_s=PATIENCE_S, answer_s=PATIENCE_S)


@pytest.fixture
def path() -> Iterator[Path]:
    """A path that is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="trainyard-") as folder:
        yield Path(folder, "openflow.sock")


def test_an_open_vswitch_connects_over_a_unix_socket_and_again_to_the_next_controller() -> None:
    async def control(address: str) -> OpenFlowChannel:
        channels: list[OpenFlowChannel] = []
        async with asyncio.timeout(PATIENCE_S):
            async with OpenFlowListener([5], channels.append, limits=_PATIENT).serving(address) as at:
                assert at == address
                await until(lambda: bool(channels))
        return channels[0]

    with running_openvswitch() as switch:
        # Open vSwitch connects to no Unix socket outside its folder.
        address = f"unix:{switch.folder}/openflow.sock"
        add_dummy_bridge(switch, "t0", 5, [3], controller=address)
        for _ in range(2):
            channel = asyncio.run(control(address))
            assert channel.peer == "a Unix socket"
            assert {port.name for port in channel.ports.values()} >= {"t0-3"}
            assert not (switch.folder / "openflow.sock").exists()


def test_a_socket_whose_process_is_gone_is_replaced_and_one_that_answers_is_not(path: Path) -> None:
    left_behind = socket.socket(socket.AF_UNIX)
    left_behind.bind(str(path))
    left_behind.close()
    with bound_socket(f"unix:{path}", "openflow"):
        told = f"^openflow: cannot listen on unix:{path}: another server listens there$"
        with pytest.raises(OSError, match=told), bound_socket(f"unix:{path}", "openflow"):
            pass
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(str(path))
    assert not path.exists()


def test_a_file_that_is_no_socket_stays(path: Path) -> None:
    path.write_text("kept")
    with pytest.raises(OSError, match="there is a file that is no socket"), bound_socket(f"unix:{path}", "openflow"):
        pass
    assert path.read_text() == "kept"
