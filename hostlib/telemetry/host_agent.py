"""Agent of a real host: sends and receives probes on its NICs and reports to the controller, on one event loop.

``ProbeAgent`` decides; this module does the I/O.
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
from hostlib.telemetry.probe_agent import ProbeAgent, ProbeAnswer
from hostlib.telemetry.probes import Probe

_LOG = logging.getLogger(__name__)

_BATCHING_S = 0.002
"""Probes due within this time are sent together."""

_FIRST_RETRY_S = 0.1
_LAST_RETRY_S = 5.0

_SENDING, _RECEIVING = "sending probes", "receiving probes"
_EXCHANGING = "exchanges with the controller"

_NO_ROOM = "no room at the packet socket"


class ProbeNic(Protocol):
    """One NIC that sends and receives probes; ``ProbeSockets`` on a real host."""

    sent: int
    received: int

    @property
    def address(self) -> IPv4Address:
        """Address of the NIC."""

    @property
    def unsent(self) -> Mapping[str, int]:
        """Probes that the kernel refused, by the name of its error."""

    @property
    def lost(self) -> int:
        """Probes that arrived while the socket was full."""

    def listen(self, on_arrival: Callable[[], None]) -> None:
        """Call this from the running loop whenever probes have arrived."""

    def stop_listening(self) -> None:
        """Stop calling."""

    def send(self, probe: Probe) -> None:
        """Send a probe. Raises OSError where the interface is gone."""

    def receive(self) -> Iterable[bytes]:
        """Return some of the IPv4 packets that have arrived."""


@dataclass(frozen=True, slots=True)
class AgentStatus:
    """Counters of an agent since its start.

    ``unsent`` counts probes that the kernel refused, by the name of its error. ``received`` counts packets that passed
    the kernel's filter, ``dropped`` those that were not reported, by reason, and those for which the socket had no
    room. ``waiting`` reports are not sent yet. ``problem`` is why the last exchange failed or what was wrong with it;
    else None.
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
    """Runs the agent of one host by its loop's clock. The caller owns ``agent``, ``nics`` and ``connection``."""

    def __init__(self, agent: ProbeAgent, nics: Sequence[ProbeNic], connection: Connection) -> None:
        self._agent = agent
        self._nics = {nic.address: nic for nic in nics}
        self._connection = connection
        self._exchanges = 0
        self._problem: str | None = "the controller has not answered yet"
        self._failures: dict[str, str] = {}
        """Errors of the agent itself, by what it was doing, until that succeeds."""
        self._is_full = asyncio.Event()
        self._send_timer: asyncio.TimerHandle | None = None
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        """Probe and report until cancelled; keep trying while the controller is away or refuses.

        Raises OSError if an interface is gone.
        """
        for nic in self._nics.values():
            nic.listen(partial(self._guarded, _RECEIVING, partial(self._receive, nic)))
        exchanging = asyncio.create_task(self._exchange())
        try:
            await asyncio.wait((exchanging, self._failed), return_when=asyncio.FIRST_COMPLETED)
            for ended in (self._failed, exchanging):
                if ended.done():
                    ended.result()
        finally:
            exchanging.cancel()
            await asyncio.gather(exchanging, return_exceptions=True)
            for nic in self._nics.values():
                nic.stop_listening()
            if self._send_timer is not None:
                self._send_timer.cancel()

    def status(self) -> AgentStatus:
        """Return the counters."""
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

    def _guarded(self, job: str, work: Callable[[], None]) -> None:
        """Do a job of the loop; nobody else would notice an error of it."""
        try:
            work()
        except Exception as error:
            self._note_failure(job, error)
        else:
            self._failures.pop(job, None)

    def _send(self) -> None:
        """Send the probes that are due and schedule the next ones."""
        try:
            for probe in self._agent.probes(_now_s()):
                self._nics[probe.five_tuple.source_address].send(probe)
        except OSError as error:
            if not self._failed.done():
                self._failed.set_exception(error)
        except Exception as error:
            self._note_failure(_SENDING, error)
            self._send_timer = asyncio.get_running_loop().call_later(_LAST_RETRY_S, self._send)
        else:
            self._failures.pop(_SENDING, None)
            self._send_when_due()

    def _send_when_due(self) -> None:
        if self._send_timer is not None:
            self._send_timer.cancel()
        due_s = self._agent.next_probe_s
        if due_s is not None:
            wait_s = max(_BATCHING_S, due_s - _now_s())
            self._send_timer = asyncio.get_running_loop().call_later(wait_s, self._send)

    def _receive(self, nic: ProbeNic) -> None:
        now_s = _now_s()
        for packet in nic.receive():
            self._agent.receive(packet, now_s)
        if self._agent.is_full:
            self._is_full.set()

    async def _exchange(self) -> None:
        retry_s = _FIRST_RETRY_S
        while True:
            self._is_full.clear()
            exchange = self._agent.exchange(_now_s())
            if exchange is None:
                await self._until_due()
                continue
            try:
                self._take(await self._connection.exchange_probes(exchange))
            except ControllerError as error:
                self._note(f"still probing, and trying again: {error}")
                await asyncio.sleep(retry_s)
                retry_s = min(2 * retry_s, _LAST_RETRY_S)
            except Exception as error:
                self._note_failure(_EXCHANGING, error)
                await asyncio.sleep(_LAST_RETRY_S)
            else:
                retry_s = _FIRST_RETRY_S

    def _take(self, answer: ProbeAnswer) -> None:
        """Act by the controller's answer to an exchange."""
        self._exchanges += 1
        self._agent.answered(answer, _now_s())
        self._failures.pop(_EXCHANGING, None)
        self._note(self._mismatch() or next(iter(self._failures.values()), None))
        self._send_when_due()

    async def _until_due(self) -> None:
        """Return when the next exchange is due."""
        wait_s = self._agent.next_exchange_s - _now_s()
        if wait_s > 0:
            try:
                async with asyncio.timeout(wait_s):
                    await self._is_full.wait()
            except TimeoutError:
                pass

    def _mismatch(self) -> str | None:
        """Describe targets that do not fit this host's NICs; None if all fit."""
        unknown = self._agent.unknown_addresses
        if not unknown:
            return None
        theirs, ours = (", ".join(map(str, addresses)) for addresses in (unknown, self._nics))
        return (
            f"the controller would have it probe from {theirs}, which no NIC of it has ({ours}):"
            f" look at --host {self._agent.host}, at --nic, and at the topology"
        )

    def _note_failure(self, job: str, error: Exception) -> None:
        """Log an error that nobody expected, once, and show it until the job succeeds."""
        failure = f"{job} failed, and is tried again: {type(error).__name__}: {error}"
        if failure != self._failures.get(job):
            _LOG.error("%s: %s", self._agent.host, failure, exc_info=error)
        self._failures[job] = self._problem = failure

    def _note(self, problem: str | None) -> None:
        """Log a change of the problem between controller and host, once."""
        if problem != self._problem:
            if problem is None:
                _LOG.warning("%s: the controller answers", self._agent.host)
            else:
                _LOG.warning("%s: %s", self._agent.host, problem)
        self._problem = problem


def _now_s() -> float:
    return asyncio.get_running_loop().time()
