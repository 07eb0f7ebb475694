"""Program the switches of a fabric over OpenFlow: connections, roles, settings of bridges, and writes."""

import asyncio
import logging
from collections.abc import Collection, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from types import TracebackType
from typing import Any, Self

from controller.background import Worker
from controller.errors import DaemonError
from controller.events import BurstLog, EventKind
from controller.links.port_states import PortStateTable
from controller.southbound.connection import OnChange, nothing_waits
from controller.southbound.fencing import Grant, TakeoverBarrier
from controller.southbound.openflow.access import OpenFlowAccess
from controller.southbound.openflow.bridge_settings import require_safe
from controller.southbound.openflow.channel import OpenFlowChannel
from controller.southbound.openflow.channel_errors import AwayError, StaleError
from controller.southbound.openflow.claims import Claims
from controller.southbound.openflow.connections import OpenFlowConnections
from controller.southbound.openflow.control_messages import Role
from controller.southbound.openflow.counters import OpenFlowCounters
from controller.southbound.openflow.fabric_states import FabricStates
from controller.southbound.openflow.packets import OpenFlowPackets
from controller.southbound.openflow.states import MEANING, SwitchEntry
from controller.southbound.southbound import SouthboundError, SwitchCondition
from controller.southbound.trying_again import TryingAgain
from controller.southbound.write_outcomes import OnWrite
from controller.southbound.written_switches import WrittenSwitches
from controller.switch_addresses import OpenFlowConfig, SwitchAddress
from topologies.routing import Routing

_LOG = logging.getLogger(__name__)

_PATIENCE_S = 5.0
"""How long a Plan waits for a slow switch."""


class OpenFlowSouthbound(WrittenSwitches[SwitchEntry]):
    """A Southbound over OpenFlow: connected within ``hearing_ports``, and writing while its own context is entered.

        southbound = OpenFlowSouthbound(addresses, routing, OpenFlowConfig())
        async with southbound.hearing_ports(ports), southbound:
            await southbound.write(rules)

    With a ``grant`` it is the master of its switches by the generation id of the grant's term, and writes only while
    the grant lasts, once it has taken over all switches of ``barrier``. Without one it is their master by
    ``election_id``, and claims again what another controller takes; see Claims. Every
    ``read_back_s`` it reads each switch back and repairs what somebody else has changed; None: it does not.

    Attributes:
        packets: The frames from and to the ports of switches.
    """

    def __init__(
        self,
        addresses: Sequence[SwitchAddress],
        routing: Routing,
        config: OpenFlowConfig,
        on_write: OnWrite | None = None,
        grant: Grant | None = None,
        read_back_s: float | None = None,
        barrier: TakeoverBarrier | None = None,
        on_change: OnChange = nothing_waits,
        election_id: int = 1,
    ) -> None:
        super().__init__(addresses, routing, MEANING, Worker("openflow"), on_write, on_change, _PATIENCE_S)
        self._config = config
        self._grant = grant
        barrier = barrier or TakeoverBarrier(address.name for address in addresses)
        self._claims = Claims(election_id, grant, barrier)
        self._read_back_s = read_back_s
        self._log = BurstLog(_LOG)
        self.packets = OpenFlowPackets()
        self._accesses: dict[str, OpenFlowAccess] = {}
        self._counters = OpenFlowCounters(self._writers.keys(), self._accesses)
        self._connections = OpenFlowConnections(addresses, config)
        self._is_writing = False
        self._reading: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._trying_again = TryingAgain(self._writers, self._on_tried)
        self._add(addresses)

    def _states_of(self, addresses: Sequence[SwitchAddress], routing: Routing) -> FabricStates:
        return FabricStates(addresses, routing)

    def hearing_ports(self, ports: PortStateTable | None) -> AbstractAsyncContextManager[None]:
        """Be connected to switches while the context lasts; ``ports`` then has the states of their ports.

        Raises:
            OSError: The address for switches cannot be bound.
            UnusableFileError: The files for TLS cannot be used.
        """
        self._connections.on_channel = self._on_channel
        self._connections.on_closed = self._on_closed
        self._connections.on_failed = self._reachability.away
        return self._connections.connected(ports)

    async def __aenter__(self) -> Self:
        self._is_writing = True
        self._run(self._reachability.run())
        self._run(self._claims.keep_claiming(self._on_channel))
        self._run(self._trying_again.run())
        for number, name in enumerate(self._writers, start=1):
            self._read_back(name, number / len(self._writers))
        for name, channel in self._connections.channels.items():
            self._program(name, channel)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_writing = False
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._trying_again.stop()
        await self._writers.stop()
        self._worker.close()

    async def job_bytes(self, switches: Collection[str]) -> Mapping[tuple[int, str], int] | None:
        """See Counters."""
        return await self._counters.job_bytes(switches, self._states.fabric)

    async def level_bytes(self, level: int) -> Mapping[int, int] | None:
        """See Counters."""
        return await self._counters.level_bytes(level, self._states.fabric)

    async def link_bytes(self, links: Collection[int]) -> Mapping[int, int]:
        """See LinkCounters."""
        return await self._counters.link_bytes(links, self._states.fabric)

    async def use_fabric(self, addresses: Sequence[SwitchAddress], routing: Routing) -> None:
        """See FabricSouthbound."""
        await super().use_fabric(addresses, routing)
        await self._connections.follow(addresses)

    def _add(self, addresses: Sequence[SwitchAddress]) -> None:
        for name in (address.name for address in addresses):
            self._writers[name] = self._writer(name)
            if self._is_writing:
                self._read_back(name, 1.0)

    def _remove(self, name: str) -> None:
        del self._writers[name]
        if (task := self._reading.pop(name, None)) is not None:
            task.cancel()
        self._accesses.pop(name, None)
        self.packets.disconnect(name)

    def _run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _read_back(self, name: str, share: float) -> None:
        """Read a switch back, first after this share of the period."""
        if (period_s := self._read_back_s) is not None:
            work = self._reading_back.keep_reading(self._writers[name], share * period_s, period_s)
            self._reading[name] = self._run(work)

    def _on_channel(self, name: str, channel: OpenFlowChannel) -> None:
        if self._is_writing and self._is_current(name, channel):
            self._program(name, channel)

    def _program(self, name: str, channel: OpenFlowChannel) -> None:
        channel.on_role = partial(self._on_role, name, channel)
        self._run(self._take_over(name, channel))

    async def _take_over(self, name: str, channel: OpenFlowChannel) -> None:
        """Become the switch's master, and give it what it lacks."""
        writer = self._writers[name]
        try:
            await self._require_safe(name)
            await self._claims.claim(name, channel)
            if not self._is_current(name, channel):
                return  # it has ended meanwhile, and the switch may be connected anew
            access = OpenFlowAccess(channel, self._grant, self._worker, partial(self._on_stale, name, channel))
            self._accesses[name] = access
            await writer.connect(access)
        except StaleError as error:
            self._on_stale(name, channel, str(error))
            return
        except AwayError:
            return  # on_closed says why
        except SouthboundError as error:
            self._log.tell(EventKind.SWITCH_REFUSES, "%s", error, switch=name)
        except DaemonError as error:
            channel.close(str(error))
            return
        if not self._is_current(name, channel) or writer.condition is SwitchCondition.LOST:
            return
        self.packets.connect(name, channel)
        self._on_tried(name)

    def _on_tried(self, name: str) -> None:
        """Note that a switch has been given all that it lacks, unless it refuses it."""
        if name in self._writers and self._writers[name].condition is SwitchCondition.CAUGHT_UP:
            self._reachability.reached(name)

    async def _require_safe(self, name: str) -> None:
        """Check the settings of a switch's bridge, or set them. Raises DaemonError where it forwards by itself."""
        (address,) = (each for each in self._addresses if each.name == name)
        if address.openflow is None or address.openflow.ovsdb is None:
            return
        for words in await require_safe(address.openflow.ovsdb, address.device, configure=self._config.configure):
            _LOG.info("switch %s: %s", name, words)

    def _is_current(self, name: str, channel: OpenFlowChannel) -> bool:
        """Whether a switch of the fabric is connected by this channel."""
        return name in self._writers and self._connections.channels.get(name) is channel

    def _on_role(self, name: str, channel: OpenFlowChannel, role: Role) -> None:
        if role is Role.SLAVE:
            self._on_stale(name, channel, "another controller is the master of the switch")
        else:
            self._claims.regain(name, channel)

    def _on_stale(self, name: str, channel: OpenFlowChannel, reason: str) -> None:
        if not self._is_current(name, channel):
            return
        self._claims.lose(name, channel)
        words = f"lost to another controller: {reason}"
        self._accesses.pop(name, None)
        self.packets.disconnect(name)
        self._writers[name].mark_lost(words)
        self._reachability.taken(name, words)
        if self._grant is not None:
            self._grant.doubt()

    def _on_closed(self, name: str, reason: str) -> None:
        if name not in self._writers:
            return  # the fabric does not have it any longer
        self._accesses.pop(name, None)
        self.packets.disconnect(name)
        self._writers[name].disconnect()
        self._reachability.away(name, reason)
