"""Controllers push programs of their own to the switches of one fabric."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from finsy.grpcutil import GRPCStatusCode
from finsy.p4client import P4Client, P4ClientError
from finsy.proto import U128, p4r

from emulator.fabric import EmulatedFabric
from emulator.p4runtime.programs import ProgramsOfFabric
from emulator.p4runtime.server import serve
from emulator.p4runtime.service import P4RuntimeService
from tests.bmv2.replication_sessions import GROUP, MULTICAST, group_entry, request
from tests.bmv2.small_programs import DIGESTS, LOOPS, REPLICATION, SmallProgram
from tests.emulator.mixed_fabrics import COPIES, LEARNS, SUMS, Seen, compiled, emulate, interpret, lone, row
from tests.emulator.p4runtime.clients import advice, bid, run

Set = p4r.SetForwardingPipelineConfigRequest
ASK = 7


@dataclass
class Controlled:
    """A served fabric, and a primary client of each switch."""

    emulated: EmulatedFabric
    exclusive: asyncio.Lock
    clients: dict[str, P4Client]

    async def push(
        self,
        switch: str,
        program: SmallProgram,
        action: Set.Action.ValueType = Set.VERIFY_AND_COMMIT,
        **changed: bytes,
    ) -> None:
        """Set a switch's pipeline."""
        config = p4r.ForwardingPipelineConfig()
        config.CopyFrom(program.pipeline.message)
        for name, value in changed.items():
            setattr(config, name, value)
        await self.clients[switch].request(
            Set(device_id=self.id_of(switch), election_id=U128.encode(ASK), action=action, config=config)
        )

    def id_of(self, switch: str) -> int:
        return self.emulated.switches[switch].device_id

    async def send(self, switch: str, port: int, octets: bytes) -> Seen:
        """Let a packet arrive by a port."""
        async with self.exclusive:
            return emulate(self.emulated, switch, port, octets)


@asynccontextmanager
async def controlled() -> AsyncIterator[Controlled]:
    """The row of switches, all made for DIGESTS, and without a pipeline yet."""
    emulated = EmulatedFabric(row(), compiled(DIGESTS))
    for program in (DIGESTS, LOOPS, REPLICATION):  # else clients may not wait for so long
        emulated.prepare_program(compiled(program))
    exclusive = asyncio.Lock()
    programs = ProgramsOfFabric(emulated, drop_port=511, is_wired=False)
    service = P4RuntimeService(
        emulated.switches.values(), DIGESTS.pipeline, exclusive, emulated.packet_out, programs=programs
    )
    async with serve(service) as port:
        clients = {switch: P4Client(f"127.0.0.1:{port}") for switch in emulated.switches}
        for switch, client in clients.items():
            await client.open()
            await bid(client, ASK, emulated.switches[switch].device_id)
            assert await advice(client) == ("OK", ASK)
        try:
            yield Controlled(emulated, exclusive, clients)
        finally:
            for client in clients.values():
                await client.close()


def test_each_switch_takes_the_program_that_is_pushed_to_it() -> None:
    async def test() -> None:
        async with controlled() as found:
            pushed = {COPIES: REPLICATION, LEARNS: DIGESTS, SUMS: LOOPS}
            for switch, program in pushed.items():
                await found.push(switch, program)
            octets = request(MULTICAST, group=GROUP, payload=bytes(30))
            write = p4r.WriteRequest(device_id=found.id_of(COPIES), election_id=U128.encode(ASK))
            write.updates.add(type=p4r.Update.INSERT, entity=group_entry(GROUP))
            await found.clients[COPIES].request(write)
            references = {switch: lone(program) for switch, program in pushed.items()}
            seen = await found.send(COPIES, 1, octets)
            assert len(seen.at_hosts) == 3
            assert seen.at_hosts.keys() >= {("b", octets) for _, octets in seen.at_hosts if _ == "b"}
            sums = bytes([0, 5, 2]) + bytes(30)
            assert await found.send(SUMS, 2, sums) == interpret(row(), references, SUMS, 2, sums)
            # Another switch's program does not know this object.
            write.device_id = found.id_of(SUMS)
            write.updates[0].entity.CopyFrom(p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=1)))
            write.updates[0].type = p4r.Update.MODIFY
            with pytest.raises(P4ClientError):
                await found.clients[SUMS].request(write)

    run(test())


def test_a_switch_changes_its_program_while_others_forward() -> None:
    async def test() -> None:
        async with controlled() as found:
            for switch in (LEARNS, SUMS):
                await found.push(switch, DIGESTS)
            learned = bytes([1]) + bytes(40)
            push = asyncio.create_task(found.push(SUMS, LOOPS))
            sent = 0
            while not push.done():
                seen = await found.send(LEARNS, 1, learned)
                assert seen.digests == {(LEARNS, 1): 1}
                sent += 1
                await asyncio.sleep(0)
            await push
            assert sent
            sums = bytes([0, 5, 2]) + bytes(30)
            assert await found.send(SUMS, 2, sums) == interpret(row(), {SUMS: lone(LOOPS)}, SUMS, 2, sums)
            await found.push(SUMS, DIGESTS)
            assert (await found.send(SUMS, 1, learned)).digests == {(SUMS, 1): 1}

    run(test())


def test_what_cannot_run_is_refused_by_name_and_the_switch_keeps_its_program() -> None:
    async def test() -> None:
        async with controlled() as found:
            await found.push(SUMS, LOOPS)
            other = LOOPS.json.read_bytes().replace(b'"match_type" : "exact"', b'"match_type" : "ternary"')
            with pytest.raises(P4ClientError, match=r"table ingress\.work") as error:
                await found.push(SUMS, LOOPS, p4_device_config=other)
            assert error.value.code is GRPCStatusCode.INVALID_ARGUMENT
            broken = LOOPS.json.read_bytes().replace(b'"init_table"', b'"init_tables"')
            with pytest.raises(P4ClientError, match="init_table") as error:
                await found.push(SUMS, LOOPS, p4_device_config=broken)
            assert error.value.code is GRPCStatusCode.INVALID_ARGUMENT
            extern = LOOPS.json.read_bytes().replace(
                b'"extern_instances" : []', b'"extern_instances" : [{"name": "own", "id": 0, "type": "Own"}]'
            )
            with pytest.raises(P4ClientError, match="'own', an instance of the extern 'Own'") as error:
                await found.push(SUMS, LOOPS, p4_device_config=extern)
            assert error.value.code is GRPCStatusCode.UNIMPLEMENTED
            await found.push(SUMS, REPLICATION, Set.VERIFY)
            sums = bytes([0, 5, 2]) + bytes(30)
            assert await found.send(SUMS, 2, sums) == interpret(row(), {SUMS: lone(LOOPS)}, SUMS, 2, sums)

    run(test())
