"""A real host's agent: its probes go out of its NICs and come into them, and the controller is told, for ever.

``ProbeAgent`` decides; here is what carries its decisions out, on one event loop.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Address
from typing import Protocol

from hostlib.connection import Connection
from hostlib.errors import ControllerError
from hostlib.telemetry.agent import ProbeAgent
from hostlib.telemetry.probes import Probe

_LOG = logging.getLogger(__name__)

_TURN_S = 0.002
"""Probes that are due within so long are sent together."""

_FIRST_RETRY_S = 0.1
_LAST_RETRY_S = 5.0

_NO_ROOM = "no room at the packet socket"


class ProbeNic(Protocol):
    """Probes out of one NIC and into it: ``ProbeSockets`` on a real host, whose words these are."""

    sent: int
    received: int

    @property
    def address(self) -> IPv4Address: ...
    @property
    def unsent(self) -> Mapping[str, int]: ...
    @property
    def lost(self) -> int: ...
    def listen(self, on_arrival: Callable[[], None]) -> None: ...
    def deafen(self) -> None: ...
    def send(self, probe: Probe) -> None: ...
    def receive(self) -> Iterable[bytes]: ...


@dataclass(frozen=True, slots=True)
class AgentStatus:
    """What an agent has done since it began.

    ``unsent`` are probes that the kernel did not take, by the name of its error; ``received`` what its filters let
    through, ``dropped`` what of that was not reported, by reason, and what the kernel had no room for. ``waiting`` are
    reports that are still to be told. ``problem`` is why the last exchange failed, or what was strange
    about it; None where nothing was.
    """

    host: str
    targets: int
    sent: int
    unsent: Mapping[str, int]
    received: int
    dropped: Mapping[str, int]
    waiting: int
    exchanges: int
    problem: str | None


class HostAgent:
    """One host's agent at work, by its loop's clock. ``agent`` has the NICs' addresses; all are the caller's."""

    def __init__(self, agent: ProbeAgent, nics: Sequence[ProbeNic], connection: Connection) -> None:
        self._agent = agent
        self._nics = {nic.address: nic for nic in nics}
        self._connection = connection
        self._exchanges = 0
        self._problem: str | None = "the controller has not answered yet"
        self._is_full = asyncio.Event()
        self._turn: asyncio.TimerHandle | None = None
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        """Probe and report, until cancelled. A controller that is away or refuses is tried again.

        Raises OSError where an interface is gone.
        """
        for nic in self._nics.values():
            nic.listen(partial(self._receive, nic))
        speaking = asyncio.create_task(self._speak())
        try:
            await asyncio.wait((speaking, self._failed), return_when=asyncio.FIRST_COMPLETED)
            for ended in (self._failed, speaking):
                if ended.done():
                    ended.result()
        finally:
            speaking.cancel()
            await asyncio.gather(speaking, return_exceptions=True)
            for nic in self._nics.values():
                nic.deafen()
            if self._turn is not None:
                self._turn.cancel()

    def status(self) -> AgentStatus:
        """What it has done so far."""
        agent, nics = self._agent, self._nics.values()
        unsent: Counter[str] = Counter()
        for nic in nics:
            unsent.update(nic.unsent)
        lost = sum(nic.lost for nic in nics)
        return AgentStatus(
            agent.host,
            agent.num_targets,
            sum(nic.sent for nic in nics),
            dict(unsent),
            sum(nic.received for nic in nics),
            agent.dropped | ({_NO_ROOM: lost} if lost else {}),
            agent.waiting,
            self._exchanges,
            self._problem,
        )

    def _send(self) -> None:
        """Send what is due, and come again for what is due next."""
        try:
            for probe in self._agent.probes(_now_s()):
                self._nics[probe.five_tuple.source_address].send(probe)
        except OSError as error:
            self._failed.set_exception(error)
        else:
            self._send_when_due()

    def _send_when_due(self) -> None:
        if self._turn is not None:
            self._turn.cancel()
        due_s = self._agent.next_probe_s
        if due_s is not None:
            wait_s = max(_TURN_S, due_s - _now_s())
            self._turn = asyncio.get_running_loop().call_later(wait_s, self._send)

    def _receive(self, nic: ProbeNic) -> None:
        now_s = _now_s()
        for packet in nic.receive():
            self._agent.receive(packet, now_s)
        if self._agent.is_full:
            self._is_full.set()

    async def _speak(self) -> None:
        retry_s = _FIRST_RETRY_S
        while True:
            self._is_full.clear()
            exchange = self._agent.exchange(_now_s())
            if exchange is None:
                await self._until_due()
                continue
            try:
                answer = await self._connection.exchange_probes(exchange)
            except ControllerError as error:
                self._note(f"still probing, and trying again: {error}")
                await asyncio.sleep(retry_s)
                retry_s = min(2 * retry_s, _LAST_RETRY_S)
            else:
                retry_s = _FIRST_RETRY_S
                self._exchanges += 1
                self._agent.answered(answer, _now_s())
                self._note(self._strangeness())
                self._send_when_due()

    async def _until_due(self) -> None:
        """Return when it is time to speak to the controller."""
        wait_s = self._agent.next_exchange_s - _now_s()
        if wait_s > 0:
            try:
                async with asyncio.timeout(wait_s):
                    await self._is_full.wait()
            except TimeoutError:
                pass

    def _strangeness(self) -> str | None:
        """What is wrong where the controller takes the host for another than it is."""
        strange = self._agent.strange_addresses
        if not strange:
            return None
        theirs, ours = (", ".join(map(str, addresses)) for addresses in (strange, self._nics))
        return (
            f"the controller would have it probe from {theirs}, which no NIC of it has ({ours}):"
            f" look at --host {self._agent.host}, at --nic, and at the topology"
        )

    def _note(self, problem: str | None) -> None:
        """Say once that something is wrong between controller and host, what it is, and that it is over."""
        if problem != self._problem:
            if problem is None:
                _LOG.warning("%s: the controller answers", self._agent.host)
            else:
                _LOG.warning("%s: %s", self._agent.host, problem)
        self._problem = problem


def _now_s() -> float:
    return asyncio.get_running_loop().time()
