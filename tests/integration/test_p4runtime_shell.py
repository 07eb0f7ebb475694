"""p4runtime-shell, a client of others, works with the emulator's switches, also beside a controller."""

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml
from finsy.proto import p4r, p4r_grpc

from controller.config import ControllerConfig
from controller.switch_addresses import SwitchAddress
from experiments.scenarios.controller_process import ControllerProcess
from p4src import P4INFO, PROGRAM
from tests.bmv2.small_programs import AGEING
from tests.emulator.packets import ETHERNET, ipv4_packet
from tests.integration.fabrics import DUMBBELL
from tests.interpreters import interpreter_with
from tests.patience import PATIENCE_S
from topologies.addressing import UDP_PROTOCOL, FiveTuple

_SESSION = Path(__file__).with_name("shell_session.py")
_ARP = ETHERNET + b"\x08\x06" + bytes(46)
_DATA = ipv4_packet(FiveTuple(0x0A000001, 0x0A000002, UDP_PROTOCOL, 50_000, 4791), payload=bytes(30))


@pytest.fixture(scope="module")
def shell_python() -> Path:
    """Return an interpreter with p4runtime-shell, installed once: the shell needs an older protobuf than we do."""
    return interpreter_with("p4runtime-shell", "0.0.6", "p4runtime_sh.shell")


@asynccontextmanager
async def _emulator(folder: Path, *options: str | Path) -> AsyncIterator[dict[int, tuple[str, str]]]:
    """Run ``trainyard emulator`` on the dumbbell; yield the switches and addresses that it prints, by device id."""
    topology = folder / "fabric.yaml"
    topology.write_text(yaml.safe_dump({"topology": DUMBBELL.model_dump(mode="json")}))
    command = ("-m", "trainyard", "emulator", "--topology", str(topology), "--listen", "127.0.0.1:0")
    process = await asyncio.create_subprocess_exec(sys.executable, *command, *options, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    devices: dict[int, tuple[str, str]] = {}
    async with asyncio.timeout(PATIENCE_S):
        while len(devices) < len(DUMBBELL.build().switches) and (line := await process.stdout.readline()):
            if row := re.fullmatch(r"\s*(\d+)\s+(\S+)\s+(\S+:\d+)\s*", line.decode()):
                devices[int(row[1])] = row[2], row[3]
    yield devices
    process.terminate()
    assert await process.wait() == 0


async def _session(
    shell_python: Path,
    name: str,
    address: str,
    *more: str,
    ready: asyncio.Event | None = None,
    program: tuple[Path, Path] = (P4INFO, PROGRAM),
) -> tuple[dict[str, Any], str]:
    """Return what a session of the shell saw and printed; ``ready`` is set once it listens."""
    process = await asyncio.create_subprocess_exec(
        shell_python, _SESSION, name, address, *program, *more, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    printed = ""
    async for line in process.stdout:
        printed += line.decode()
        if ready and line.strip() == b"listening":
            ready.set()
    await process.wait()
    assert process.returncode == 0, printed
    return json.loads(printed.splitlines()[-1]), printed


async def _operated(shell_python: Path, folder: Path) -> dict[str, Any]:
    async with _emulator(folder) as devices:
        return (await _session(shell_python, "operate", devices[1][1]))[0]


def test_an_operator_works_on_a_switch_with_the_shell(shell_python: Path, tmp_path: Path) -> None:
    seen = asyncio.run(_operated(shell_python, tmp_path))
    assert "ALREADY_EXISTS" in seen.pop("inserted twice")
    assert "NOT_FOUND" in seen.pop("deleted twice")
    assert seen == {"inserted": [3], "counted": [[0, 0]], "modified": [5], "deleted": []}


async def _exchanged(shell_python: Path, folder: Path) -> tuple[dict[str, Any], dict[str, Any], int]:
    fabric = DUMBBELL.build()
    there = next(link for link in fabric.links if (link.source, link.destination) == ("t0", "t1"))
    async with _emulator(folder) as devices:
        listening = asyncio.Event()
        listener = asyncio.create_task(_session(shell_python, "listen", devices[2][1], ready=listening))
        await asyncio.wait({listener, asyncio.create_task(listening.wait())}, return_when=asyncio.FIRST_COMPLETED)
        sent = (await _session(shell_python, "send", devices[1][1], str(there.source_port), _DATA.hex(), _ARP.hex()))[0]
        return sent, (await listener)[0], there.destination_port


def test_two_shells_exchange_packets_and_count_them(shell_python: Path, tmp_path: Path) -> None:
    sent, seen, port = asyncio.run(_exchanged(shell_python, tmp_path))
    assert sent == {"sent": 2}
    # The second switch counts what the flow's entry has seen, and hands ARP, which came after it, to its controller.
    assert seen == {"counted": [[1, len(_DATA)]], "received": [_ARP.hex()], "ports": [port]}


async def _aged(shell_python: Path, folder: Path) -> dict[str, Any]:
    program = AGEING.p4info, AGEING.json
    async with _emulator(folder, "--p4info", program[0], "--json", program[1]) as devices:
        return (await _session(shell_python, "age", devices[1][1], program=program))[0]


def test_the_shell_hears_of_an_idle_entry_and_removes_it(shell_python: Path, tmp_path: Path) -> None:
    seen = asyncio.run(_aged(shell_python, tmp_path))
    assert seen == {"told": ["07"], "timeouts": [20_000_000], "has been idle": True, "left": 0}


async def _pipeline_is_set(address: str, device_id: int) -> None:
    """Wait until a controller has set a switch's pipeline."""
    request = p4r.GetForwardingPipelineConfigRequest(device_id=device_id)
    async with grpc.aio.insecure_channel(address) as channel, asyncio.timeout(PATIENCE_S):
        while await _code(p4r_grpc.P4RuntimeStub(channel), request) is grpc.StatusCode.FAILED_PRECONDITION:
            await asyncio.sleep(0.05)


async def _code(stub: Any, request: p4r.GetForwardingPipelineConfigRequest) -> grpc.StatusCode:
    return await stub.GetForwardingPipelineConfig(request).code()


async def _looked_on(shell_python: Path, folder: Path) -> tuple[dict[str, Any], str]:
    async with _emulator(folder) as devices:
        switches = tuple(
            SwitchAddress(name=name, address=address, device_id=device_id)
            for device_id, (name, address) in devices.items()
        )
        config = ControllerConfig(listen="127.0.0.1:0", topology=DUMBBELL, switches=switches)
        async with ControllerProcess(config):
            await _pipeline_is_set(devices[1][1], 1)
            return await _session(shell_python, "look_on", devices[1][1])


def test_beside_a_controller_the_shell_reads_only(shell_python: Path, tmp_path: Path) -> None:
    seen, printed = asyncio.run(_looked_on(shell_python, tmp_path))
    assert "You are not the primary client" in printed
    assert seen == {
        "routes": len(DUMBBELL.build().hosts),
        "insert": "PERMISSION_DENIED",
        "levels": [],
        "pipeline": "PERMISSION_DENIED",
    }
