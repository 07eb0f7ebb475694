"""The emulator of a run as a process, which is started again where it ends by itself."""

import asyncio
import logging
import sys
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

import grpc
from finsy.proto import gnmi_grpc

from controller.switch_addresses import SwitchAddress
from emulator.p4runtime.port_requests import port_request
from experiments.scenarios.real_hosts import emulator_program
from experiments.scenarios.real_hosts.emulator_program import EmulatorPlan
from experiments.scenarios.real_hosts.laboratory import Laboratory
from experiments.scenarios.real_hosts.p4_counters import P4Counters
from experiments.scenarios.real_hosts.switches import SwitchesError, SwitchPlaces
from experiments.scenarios.reserved_address import ReservedAddress
from topologies.fabric import Fabric

_LOG = logging.getLogger(__name__)

_STARTS_WITHIN_S = 300.0
"""The first start compiles the P4 program."""
_STOPS_WITHIN_S = 10.0
_DEADLINE_S = 10.0
_STARTS_AGAIN_AFTER_S = 1.0
_MOST_FAILURES = 3
"""In a row."""


class EmulatorProcessError(SwitchesError):
    """The emulator did not start; the message has its standard error."""


class EmulatorProcess:
    """The switches of a fabric, with real hosts, as an async context manager.

    Its P4Runtime ``address``, with device ids from 1, stays when it is started again. Its switches are empty then, as
    after a loss of power, and their controller fills them.

    Args:
        fabric: The fabric, at rates that the machine carries.
        laboratory: The hosts.
        is_real_time: Whether to ask for real-time priority.
        on_loss: Called with the reason where it cannot be started again.
    """

    def __init__(
        self, fabric: Fabric, laboratory: Laboratory, *, is_real_time: bool, on_loss: Callable[[str], None]
    ) -> None:
        self.restarts = 0
        self._fabric = fabric
        self._laboratory = laboratory
        self._is_real_time = is_real_time
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._on_loss = on_loss
        self._links_down: frozenset[int] = frozenset()
        self._wanted_down: frozenset[int] = frozenset()
        self._has_wish = asyncio.Event()
        self._setting: asyncio.Task[None] | None = None
        self._reserved: ReservedAddress | None = None

    async def __aenter__(self) -> Self:
        self._reserved = ReservedAddress("127.0.0.1:0")
        try:
            await self._start()
        except BaseException:
            await self._stop()
            self._reserved.close()
            raise
        self._watching = asyncio.create_task(self._watch())
        self._setting = asyncio.create_task(self._set_links())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for task in (self._watching, self._setting):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        await self._stop()
        if self._reserved is not None:
            self._reserved.close()

    @property
    def address(self) -> str:
        """Where it is asked to listen."""
        assert self._reserved is not None
        return self._reserved.address

    @property
    def pid(self) -> int:
        """The number of the process."""
        assert self._process is not None
        return self._process.pid

    def places(self) -> SwitchPlaces:
        """See ``Switches``."""
        addresses = tuple(
            SwitchAddress(name=name, address=self.address, device_id=device_id)
            for name, device_id in self._fabric.device_ids.items()
        )
        return SwitchPlaces(addresses)

    def counters(self) -> P4Counters:
        """See ``Switches``."""
        return P4Counters(self._fabric, self.address)

    def want_links_down(self, links: frozenset[int]) -> None:
        """Take these links down, and bring all others up, as soon as the emulator answers."""
        self._wanted_down = links
        self._has_wish.set()

    async def _set_links(self) -> None:
        """Set links as they are wanted, whenever that changes."""
        while True:
            await self._has_wish.wait()
            self._has_wish.clear()
            wanted = self._wanted_down
            try:
                async with grpc.aio.insecure_channel(self.address) as channel:
                    stub = gnmi_grpc.gNMIStub(channel)
                    for link in wanted ^ self._links_down:
                        found = self._fabric.links[link]
                        if found.source in self._fabric.switch_index:
                            is_enabled = link not in wanted
                            request = port_request(found.source, found.source_port, is_enabled=is_enabled)
                            await stub.Set(request, timeout=_DEADLINE_S)
                self._links_down = wanted
            except grpc.RpcError as error:
                _LOG.warning("the emulator does not set links: %s", error)
                await asyncio.sleep(_STARTS_AGAIN_AFTER_S)
                self._has_wish.set()

    async def _start(self) -> None:
        plan = EmulatorPlan.of(
            self._fabric,
            dict(self._laboratory.wires),
            self._laboratory.fabric_file,
            self.address,
            is_real_time=self._is_real_time,
        )
        self._process = process = await asyncio.create_subprocess_exec(
            *self._laboratory.outside(sys.executable, "-P", "-m", emulator_program.__name__),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(plan.to_json().encode() + b"\n")
        said: list[str] = []
        self._reading = asyncio.create_task(_log_lines(process.stderr, said))
        try:
            async with asyncio.timeout(_STARTS_WITHIN_S):
                for _ in range(1 + len(self._fabric.switches)):
                    if not await process.stdout.readline():
                        await process.wait()
                        await self._reading
                        raise EmulatorProcessError(f"the emulator did not start: {' '.join(said)}")
        except TimeoutError:
            what = f"the emulator did not start within {_STARTS_WITHIN_S:g} s"
            raise EmulatorProcessError(f"{what}: {' '.join(said)}") from None

    async def _watch(self) -> None:
        """Start the emulator again wherever it ends by itself."""
        failures = 0
        while failures < _MOST_FAILURES:
            assert self._process is not None
            status = await self._process.wait()
            _LOG.warning("the emulator has ended (status %s): it is started again with empty switches", status)
            self.restarts += 1
            try:
                await self._start()
                failures = 0
                self._links_down = frozenset()
                self._has_wish.set()
            except (EmulatorProcessError, OSError) as error:  # it may have ended while it started
                failures += 1
                _LOG.warning("the emulator has not been started again: %s", error)
                reason = str(error)
                await self._stop()
                await asyncio.sleep(_STARTS_AGAIN_AFTER_S)
        self._on_loss(reason)

    async def _stop(self) -> None:
        process = self._process
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError):
                process.terminate()
            try:
                await asyncio.wait_for(process.wait(), _STOPS_WITHIN_S)
            except TimeoutError:
                process.kill()
                await process.wait()
        if self._reading is not None:
            await self._reading


async def _log_lines(stream: asyncio.StreamReader, said: list[str]) -> None:
    while line := await stream.readline():
        text = line.decode(errors="replace").rstrip()
        said.append(text)
        _LOG.warning("emulator: %s", text)
