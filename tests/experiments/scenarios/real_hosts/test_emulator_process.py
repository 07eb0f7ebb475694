"""The emulator of a run is started again at its address, its links are set again, and its end for good is told."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from finsy.proto import gnmi, gnmi_grpc

from experiments.scenarios.real_hosts import emulator_process
from experiments.scenarios.real_hosts.emulator_process import EmulatorProcess, EmulatorProcessError
from tests.experiments.scenarios.real_hosts.here import Here
from tests.patience import until
from topologies.specification import DumbbellSpecification

FABRIC = DumbbellSpecification(
    kind="dumbbell", hosts_per_side=1, gpus_per_host=1, nics_per_host=1, host_link_gbps=0.1, bottleneck_gbps=0.1
).build()


class Pretended(Here):
    """A laboratory whose emulator is a shell script, which notes its plan as a line of a file first."""

    def __init__(self, plans: Path, script: str) -> None:
        self._plans = plans
        self._script = script

    def outside(self, *_arguments: str) -> list[str]:
        """Return the script in place of any program."""
        return ["sh", "-c", f'read -r plan; printf "%s\\n" "$plan" >>{self._plans}; {self._script}']

    @property
    def listened(self) -> list[str]:
        """Where emulators were to listen, one after the other."""
        return [json.loads(line)["listen"] for line in self._plans.read_text().splitlines()]


class Ports(gnmi_grpc.gNMIServicer):
    """Takes what is set, by interface."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, bool]] = []

    async def Set(self, request: gnmi.SetRequest, _context: Any) -> gnmi.SetResponse:  # noqa: N802
        for update in request.update:
            self.asked.append((update.path.elem[1].key["name"], update.val.bool_val))
        return gnmi.SetResponse()


@asynccontextmanager
async def _served(address: str) -> AsyncIterator[Ports]:
    server, ports = grpc.aio.server(), Ports()
    gnmi_grpc.add_gNMIServicer_to_server(ports, server)
    server.add_insecure_port(address)
    await server.start()
    try:
        yield ports
    finally:
        await server.stop(None)


_LINES = "; ".join(f"echo '{number} {name} ADDRESS'" for number, name in enumerate(FABRIC.switches))
_SERVING = f"echo heading; {_LINES}; exec sleep 1000"
"""A script that says what an emulator with all switches of the fabric says, and goes on."""


@pytest.fixture(autouse=True)
def _starts_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulator_process, "_STARTS_AGAIN_AFTER_S", 0.01)


def _emulator(laboratory: Pretended, losses: list[str]) -> EmulatorProcess:
    return EmulatorProcess(FABRIC, laboratory, is_real_time=False, on_loss=losses.append)


def test_an_emulator_that_does_not_start_is_named_with_its_complaint(tmp_path: Path) -> None:
    async def start() -> None:
        async with _emulator(Pretended(tmp_path / "plans", "echo heading; echo no veth1 >&2; exit 1"), []):
            pass

    with pytest.raises(EmulatorProcessError, match=r"^the emulator did not start: no veth1$"):
        asyncio.run(start())


def test_it_is_started_again_at_its_address_and_links_are_set_again(tmp_path: Path) -> None:
    one, other = FABRIC.switches
    down = next(link for link in FABRIC.links if (link.source, link.destination) == (one, other))
    from_host = next(link for link in FABRIC.links if link.source == "h0")
    disabled = (f"{one}-eth{down.source_port}", False)

    async def kill() -> None:
        laboratory, losses = Pretended(tmp_path / "plans", _SERVING), list[str]()
        async with _emulator(laboratory, losses) as emulator:
            async with _served(emulator.address) as ports:
                emulator.want_links_down(frozenset({down.index, from_host.index}))
                await until(lambda: ports.asked == [disabled])
                for asked in ([disabled] * 2, [disabled] * 3):
                    os.kill(emulator.pid, signal.SIGKILL)
                    await until(lambda asked=asked: ports.asked == asked)
                emulator.want_links_down(frozenset())
                await until(lambda: ports.asked == [disabled] * 3 + [(disabled[0], True)])
                assert (emulator.restarts, losses) == (2, [])
                pid = emulator.pid
            assert laboratory.listened == [emulator.address] * 3
        assert not Path("/proc", str(pid)).exists()

    asyncio.run(kill())


def test_the_last_of_three_failures_in_a_row_is_told(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    script = f"if [ -e {begun} ]; then echo no veth1 >&2; exit 1; fi; touch {begun}; {_SERVING}"

    async def lose() -> None:
        laboratory, losses = Pretended(tmp_path / "plans", script), list[str]()
        async with _emulator(laboratory, losses) as emulator:
            os.kill(emulator.pid, signal.SIGKILL)
            await until(lambda: bool(losses))
        assert losses == ["the emulator did not start: no veth1"]
        assert len(laboratory.listened) == 4

    asyncio.run(lose())
