"""Controllers for tests: finsy, which nobody here wrote, as a whole and by its bare P4Runtime client."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass

from finsy.p4client import P4Client
from finsy.proto import U128, p4r, rpc_code

from emulator.p4runtime.pipeline import Pipeline
from emulator.p4runtime.server import serve
from emulator.p4runtime.service import P4RuntimeService
from tests.emulator.p4runtime.fake_switch import FakeSwitch
from tests.patience import PATIENCE_S

LONGEST_PACKET_BYTES = 64


@dataclass(frozen=True)
class Served:
    """Two switches, with device ids 1 and 2, on one address; ``exclusive`` is what a fabric's clock would hold.

    ``sent`` has what came to the CPU ports, by name of the switch.
    """

    address: str
    switches: dict[int, FakeSwitch]
    exclusive: asyncio.Lock
    service: P4RuntimeService
    sent: list[tuple[str, bytes]]


@asynccontextmanager
async def serving(program: Pipeline) -> AsyncIterator[Served]:
    """Serve two switches that were compiled for a program and have not been given it yet."""
    switches = {device_id: FakeSwitch(device_id) for device_id in (1, 2)}
    exclusive = asyncio.Lock()
    sent: list[tuple[str, bytes]] = []

    def send_packet(switch: str, octets: bytes) -> None:
        assert exclusive.locked()
        if len(octets) > LONGEST_PACKET_BYTES:
            raise ValueError(f"a packet of {len(octets)} bytes keeps {LONGEST_PACKET_BYTES}")
        sent.append((switch, octets))

    service = P4RuntimeService(switches.values(), program, exclusive, send_packet)
    async with serve(service) as port:
        yield Served(f"127.0.0.1:{port}", switches, exclusive, service, sent)


def run(test: Coroutine[None, None, None]) -> None:
    """Run a test that talks to a server; it must end."""
    asyncio.run(asyncio.wait_for(test, PATIENCE_S))


async def bid(client: P4Client, election_id: int | None, device_id: int = 1, role: p4r.Role | None = None) -> None:
    """Send a bid."""
    update = p4r.MasterArbitrationUpdate(device_id=device_id, role=role)
    if election_id is not None:
        update.election_id.CopyFrom(U128.encode(election_id))
    await client.send(p4r.StreamMessageRequest(arbitration=update))


async def advice(client: P4Client) -> tuple[str, int | None]:
    """The status and the highest id of the next advisory message."""
    update = (await client.receive()).arbitration
    highest_id = U128.decode(update.election_id) if update.HasField("election_id") else None
    return rpc_code.Code.Name(rpc_code.Code.ValueType(update.status.code)), highest_id


@asynccontextmanager
async def primary(served: Served, election_id: int = 5) -> AsyncIterator[P4Client]:
    """A client that has become primary of device 1."""
    async with P4Client(served.address) as client:
        await bid(client, election_id)
        assert await advice(client) == ("OK", election_id)
        yield client


def set_pipeline(
    action: p4r.SetForwardingPipelineConfigRequest.Action.ValueType,
    config: p4r.ForwardingPipelineConfig | None,
    election_id: int = 5,
) -> p4r.SetForwardingPipelineConfigRequest:
    """A request for device 1."""
    return p4r.SetForwardingPipelineConfigRequest(
        device_id=1, election_id=U128.encode(election_id), action=action, config=config
    )


def write(*updates: p4r.Update, election_id: int = 5) -> p4r.WriteRequest:
    """A batch for device 1."""
    return p4r.WriteRequest(device_id=1, election_id=U128.encode(election_id), updates=updates)
