"""The controller as a process: it answers while switches are away, and stops cleanly."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from hostlib.connection import Connection
from hostlib.types import Job, Profile, Settled

PROGRAM = """
import asyncio
from controller.config import ControllerConfig
from controller.daemon import serve

topology = {"kind": "dumbbell", "hosts_per_side": 1, "host_link_gbps": 100, "bottleneck_gbps": 100}
switches = [{"name": name, "address": "127.0.0.1:1"} for name in ("t0", "t1")]
config = {"listen": "127.0.0.1:0", "topology": topology, "switches": switches}
asyncio.run(serve(ControllerConfig.model_validate(config)))
"""


@pytest.fixture
def process() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        yield running
        running.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_plans_and_stops_when_told(process: subprocess.Popen[str], number: signal.Signals) -> None:
    async def register(address: str) -> Settled:
        async with Connection(address) as client:
            await client.register_job(Job("gpt", ("h0", "h1"), 16, Profile(1.0, 0.5, 16.0)))
            return await client.settle(deadline_s=10.0)

    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("listening on 127.0.0.1:")
    settled = asyncio.run(register(line.split()[-1]))
    assert settled.plan_number == 1
    process.send_signal(number)
    assert process.wait(timeout=20) == 0
