"""Visit switches once, for a controller that does not run: read them, and write to them or note what would be written.

A visitor first looks who is primary, without an election id of its own, so that it never becomes primary by that
(P4Runtime 1.4.1, section 5). It bids for a switch only to write to it, and only where nobody has it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from finsy import P4ClientError, Switch
from finsy.proto import U128, p4r, rpc_code, stratum

from controller.config import ControllerConfig
from controller.links.port_states import PortStateTable
from controller.southbound.p4runtime.entries import Entity
from controller.southbound.p4runtime.held_program import NO_PROGRAM, held_config
from controller.southbound.p4runtime.reconnecting import ConnectionLostError, reason_of
from controller.southbound.p4runtime.roles import RoleArbitrator
from controller.southbound.p4runtime.states import MEANING
from controller.southbound.p4runtime.switches import P4RuntimeSouthbound
from controller.southbound.visit import Visit, VisitedSwitches, Visitor
from controller.southbound.write_outcomes import SwitchWrite
from topologies.routing import Routing

_CONNECT_S = 10.0
_LOAD_S = 60.0
"""A chip takes longer to load a program than a switch in software."""


class VisitingSouthbound(VisitedSwitches[Entity], P4RuntimeSouthbound):
    """A southbound whose switches stay unconnected while a Plan is made, and are visited once then.

        southbound = VisitingSouthbound(config, routing, config.election_id)
        async with southbound.connected(None):
            await southbound.write(rules)
            await southbound.bid()
            await southbound.visit_all()

    It writes, and loads its program, only after ``bid``.
    """

    def __init__(
        self,
        config: ControllerConfig,
        routing: Routing,
        election_id: int,
        on_write: Callable[[SwitchWrite], None] | None = None,
    ) -> None:
        super().__init__(
            config.p4runtime_addresses,
            routing,
            config.pipeline,
            election_id,
            on_write=on_write,
            tls=config.switch_tls,
            base_routing=config.base_routing,
            device_config=config.device_config,
        )
        self.visits = {each.name: Visit(each.name, each.place) for each in config.p4runtime_addresses}
        self._visitors: dict[str, Visitor[Entity]] = {}
        self._election_id = election_id

    @asynccontextmanager
    async def connected(self, ports: PortStateTable | None) -> AsyncIterator[None]:  # noqa: ARG002
        """Be connected to all switches that can be reached, as primary of none; see VisitingFabric."""
        async with AsyncExitStack() as stack:
            stack.callback(self._worker.close)
            await asyncio.gather(*(self._connect(switch, stack) for switch in self._switches.values()))
            yield

    async def bid(self) -> None:
        """Become primary of all connected switches, and load the program where another one runs."""
        await asyncio.gather(
            *(self._bid(switch) for switch in self._switches.values() if switch.name in self._visitors)
        )

    async def read_given(self) -> None:
        """Read base routing of others, where it is theirs."""
        if self.given is not None:
            await asyncio.gather(*(visitor.to_its_end(visitor.read({})) for visitor in self._visitors.values()))

    async def _connect(self, switch: Switch, stack: AsyncExitStack) -> None:
        visit = self.visits[switch.name]
        arbitrator = VisitorArbitrator(self._election_id, self._finsy.role_config(switch.name))
        switch._arbitrator = arbitrator  # finsy has no parameter for an arbitrator
        on_base = None if self.given is None else partial(self.given.take, switch.name)
        access = self._finsy.access(switch, on_base)
        try:
            async with asyncio.timeout(_CONNECT_S):
                await stack.enter_async_context(switch)
                visit.is_held = arbitrator.has_primary
                held = await held_config(switch)
        except (P4ClientError, TimeoutError) as error:
            visit.problem = f"unreachable: {_reason(error, _CONNECT_S)}"
            return
        program = self._programs.of(self._target(switch.name))
        may_load = switch.p4info.is_authoritative
        difference = NO_PROGRAM if held is None else program.difference_from(held.p4info)
        if difference and (not may_load or (held is not None and program.is_for_another_target(held.p4info))):
            visit.problem = difference
            return
        is_same_build = held is not None and held.cookie.cookie == switch.p4info.p4cookie
        visit.loads_program = bool(difference) or (may_load and not is_same_build)
        self._visitors[switch.name] = Visitor(access, visit, MEANING)

    async def _bid(self, switch: Switch) -> None:
        visitor, arbitrator = self._visitors[switch.name], switch._arbitrator
        assert isinstance(arbitrator, VisitorArbitrator)
        patience_s = _LOAD_S if visitor.visit.loads_program else _CONNECT_S
        try:
            async with asyncio.timeout(patience_s):
                await arbitrator.bid(switch)
                if visitor.visit.loads_program:
                    await switch._set_pipeline()  # type: ignore[no-untyped-call]
        except (P4ClientError, TimeoutError, ConnectionLostError) as error:
            visitor.visit.problem = f"unreachable: {_reason(error, patience_s)}"
            del self._visitors[switch.name]
            return
        visitor.may_write = True

    async def _on_ready(self, switch: Switch) -> None:
        """Do nothing: who visits a switch waits for the connection itself."""


class VisitorArbitrator(RoleArbitrator):
    """Arbitration of a visitor: it asks who is primary, and bids only when told to.

    Attributes:
        has_primary: Whether somebody was primary when it asked.
    """

    def __init__(self, election_id: int, config: stratum.P4RoleConfig | None) -> None:
        super().__init__(election_id, config)
        self.has_primary = False
        self._answer: asyncio.Future[p4r.MasterArbitrationUpdate] | None = None

    async def handshake(self, switch: Switch, *, conflict: bool = False) -> None:
        """Ask who is primary, without an election id. Raises ConnectionLostError where another stream has our id."""
        if conflict:
            lost = ConnectionLostError("a controller has taken it, with the same election id")
            if self._answer is not None and not self._answer.done():
                self._answer.set_exception(lost)
            raise lost
        assert switch._p4client is not None
        asked = p4r.MasterArbitrationUpdate(role=self.role, device_id=switch.device_id)
        await switch._p4client.send(p4r.StreamMessageRequest(arbitration=asked))
        response = await self._receive(switch)
        self.has_primary = response is not None and response.status.code != rpc_code.NOT_FOUND
        self.is_primary = False

    async def bid(self, switch: Switch) -> None:
        """Become primary, where nobody is. Raises P4ClientError, and ConnectionLostError where somebody else is."""
        while not self.is_primary:
            self._answer = asyncio.get_running_loop().create_future()
            await self._send(switch)
            answer = await self._answer
            self.primary_id = U128.decode(answer.election_id)
            self.is_primary = answer.status.code == rpc_code.OK
            if not self.is_primary and answer.status.code != rpc_code.NOT_FOUND:
                raise ConnectionLostError(f"a controller has taken it, with election id {self.primary_id}")
            # Nobody is primary, and the last one had this id.
            self.election_id = max(self.election_id, self.primary_id)

    async def update(self, switch: Switch, msg: p4r.MasterArbitrationUpdate) -> None:  # noqa: ARG002
        """Take note of the answer to a bid."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(msg)

    def reset(self) -> None:
        """Forget that it was primary."""
        self.is_primary = False


def _reason(error: Exception, patience_s: float) -> str:
    return f"no answer within {patience_s:g} s" if isinstance(error, TimeoutError) else reason_of(error)
