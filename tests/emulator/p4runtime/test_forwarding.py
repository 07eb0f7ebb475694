"""What is written through P4Runtime decides where packets of Trainyard's program go."""

import asyncio
from collections.abc import Callable
from dataclasses import asdict

import pytest
from finsy.p4client import P4Client
from finsy.proto import p4r

from emulator.entries import ActionCall
from emulator.fabric import EmulatedFabric
from emulator.observations import Capture
from emulator.p4runtime.bytestrings import encode_value
from emulator.p4runtime.pipeline import Pipeline, compiled_pipeline
from emulator.p4runtime.server import serve
from emulator.p4runtime.service import P4RuntimeService
from emulator.p4runtime.target import Target
from emulator.p4runtime.write import write_batch
from emulator.ports import CPU_PORT
from p4src import P4INFO, PROGRAM
from tests.emulator.fabrics import advance, emulated, exact, five_tuple, routing_of, star, write_entries
from tests.emulator.p4runtime.clients import advice, bid, run, set_pipeline
from tests.emulator.packets import ipv4_packet
from tests.patience import PATIENCE_S
from topologies.addressing import UDP_PROTOCOL, FiveTuple
from topologies.ecmp import flow_hash

INSERT, MODIFY, DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE
ELSEWHERE = 0x63000001
WEIGHTS = {"h1": 2, "h2": 1, "h3": 3}
NEXT_PS = 10**9


@pytest.fixture(scope="module")
def trainyard_pipeline() -> Pipeline:
    return compiled_pipeline(P4INFO.read_text(), PROGRAM.read_bytes())


class Sender:
    """A star whose host h0 sends to an address that only the default route has an answer for."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.result = emulated(star(4))
        self.fabric = self.result.fabric
        self.links = {link.destination: link for link in self.fabric.links_from["s"]}
        self.target = Target(self.result.switches["s"], pipeline)
        self.schema = pipeline.schema
        (self.table,) = (table for table in pipeline.schema.tables.values() if table.name == "ingress.routing")

    def write(self, kind: p4r.Update.Type.ValueType, **entity: object) -> None:
        write_batch(self.target, [p4r.Update(type=kind, entity=p4r.Entity(**entity))])  # type: ignore[arg-type]

    def route(self, kind: p4r.Update.Type.ValueType, **action: object) -> None:
        """Write the default route."""
        entry = p4r.TableEntry(table_id=self.table.id)
        if action:
            entry.action.CopyFrom(p4r.TableAction(**action))  # type: ignore[arg-type]
        self.write(kind, table_entry=entry)

    def to(self, host: str) -> p4r.Action:
        """The action that leads to a host; next hop n is port n."""
        action = self.schema.actions_by_name["ingress.set_next_hop"]
        message = p4r.Action(action_id=action.id)
        message.params.add(param_id=action.parameters[0].id, value=self.port(host))
        return message

    def port(self, host: str) -> bytes:
        return encode_value(self.links[host].source_port)

    def received(self) -> dict[int, str]:
        """By source port, which host gets each of a few packets."""
        found = {}
        for source_port in range(49152, 49152 + 40):
            self.result.inject(self.fabric.nics["h0"][0].link, ipv4_packet(flow(source_port)))
            assert advance(self.result, self.result.now_ps + NEXT_PS) == []
            for capture in self.result.captured():
                found[source_port] = self.fabric.links[capture.link].destination
        return found

    def expected(self, *live: str) -> dict[int, str]:
        """The same by the rule: the hash modulo the number of live candidates, each as often as it weighs."""
        candidates = [host for host, weight in WEIGHTS.items() if host in live for _ in range(weight)]
        multiplier = routing_of(self.fabric).hash_multipliers["s"]
        return {
            source_port: candidates[flow_hash(flow(source_port), multiplier) % len(candidates)]
            for source_port in range(49152, 49152 + 40)
        }


def flow(source_port: int) -> FiveTuple:
    return FiveTuple(five_tuple(star(1), "h0", "h0").source_address, ELSEWHERE, UDP_PROTOCOL, source_port, 4791)


def by_group(sender: Sender) -> None:
    assert sender.table.profile is not None
    group = p4r.ActionProfileGroup(action_profile_id=sender.table.profile.id, group_id=77, max_size=16)
    for member_id, (host, weight) in enumerate(WEIGHTS.items(), start=100):
        member = p4r.ActionProfileMember(
            action_profile_id=sender.table.profile.id, member_id=member_id, action=sender.to(host)
        )
        sender.write(INSERT, action_profile_member=member)
        group.members.add(member_id=member_id, weight=weight, watch_port=sender.port(host))
    sender.write(INSERT, action_profile_group=group)
    sender.route(INSERT, action_profile_group_id=77)


def by_action_set(sender: Sender) -> None:
    # Entries of one style only.
    for key, _ in sender.target.switch.entries(sender.table.name):
        sender.target.switch.delete(sender.table.name, key)
    sender.route(INSERT, action_profile_action_set=action_set(sender))


def action_set(sender: Sender) -> p4r.ActionProfileActionSet:
    message = p4r.ActionProfileActionSet()
    for host, weight in WEIGHTS.items():
        message.action_profile_actions.add(action=sender.to(host), weight=weight, watch_port=sender.port(host))
    return message


@pytest.mark.parametrize("install", [by_group, by_action_set])
def test_candidates_are_passed_over_while_their_port_is_down(
    trainyard_pipeline: Pipeline, install: Callable[[Sender], None]
) -> None:
    sender = Sender(trainyard_pipeline)
    sender.result.set_link(sender.links["h2"].index, up=False)
    install(sender)
    assert sender.received() == sender.expected("h1", "h3")
    sender.result.set_link(sender.links["h2"].index, up=True)
    assert sender.received() == sender.expected("h1", "h2", "h3")
    sender.result.set_link(sender.links["h1"].index, up=False)
    sender.result.set_link(sender.fabric.reverse(sender.links["h3"].index), up=False)
    assert sender.received() == sender.expected("h2", "h3")
    for host in ("h2", "h3"):
        sender.result.set_link(sender.links[host].index, up=False)
    before = asdict(sender.result.drops("s"))
    assert sender.received() == {}
    assert asdict(sender.result.drops("s")) == before | {"by_program": before["by_program"] + 40}


def test_an_action_set_is_replaced_removed_and_gives_its_room_back(trainyard_pipeline: Pipeline) -> None:
    sender = Sender(trainyard_pipeline)
    by_action_set(sender)
    only_h2 = p4r.ActionProfileActionSet()
    only_h2.action_profile_actions.add(action=sender.to("h2"), weight=1)
    for _ in range(500):
        sender.route(MODIFY, action_profile_action_set=action_set(sender))
        sender.route(MODIFY, action_profile_action_set=only_h2)
    assert set(sender.received().values()) == {"h2"}
    sender.route(DELETE)
    assert sender.received() == {}


def committed(result: EmulatedFabric) -> None:
    """What a controller would write after it has committed the pipeline, and a next hop that is the CPU port."""
    switch = result.switches["s"]
    write_entries(switch, routing_of(result.fabric))
    switch.insert("ingress.next_hop", exact((99, 16)), ActionCall("ingress.forward", (CPU_PORT, 0, 0)))


def test_packets_go_to_and_come_from_the_cpu_port(trainyard_pipeline: Pipeline) -> None:
    result = emulated(star(2))
    connection = five_tuple(result.fabric, "h0", "h1")
    to_h1 = result.fabric.reverse(result.fabric.nics["h1"][0].link)

    async def test() -> None:
        exclusive = asyncio.Lock()
        service = P4RuntimeService(result.switches.values(), trainyard_pipeline, exclusive, result.packet_out)
        async with serve(service) as port, P4Client(f"127.0.0.1:{port}") as client:
            await bid(client, 5)
            await advice(client)
            commit = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
            await client.request(set_pipeline(commit, trainyard_pipeline.message))
            committed(result)
            message = p4r.PacketOut(payload=ipv4_packet(connection, payload=b"from the controller"))
            for field in trainyard_pipeline.schema.packet_out.fields:
                out_port = result.fabric.links[to_h1].source_port if "port" in field.name else 0
                message.metadata.add(metadata_id=field.id, value=encode_value(out_port))
            await client.send(p4r.StreamMessageRequest(packet=message))
            long = p4r.PacketOut(payload=bytes(range(1, 151)) * 4, metadata=message.metadata)
            await client.send(p4r.StreamMessageRequest(packet=long))
            captures: list[Capture] = []
            async with asyncio.timeout(PATIENCE_S):
                while len(captures) < 2:
                    await asyncio.sleep(0.01)
                    advance(result, result.now_ps + NEXT_PS)
                    captures += result.captured()
            assert [capture.link for capture in captures] == [to_h1, to_h1]
            assert captures[0].octets.endswith(b"from the controller")
            assert captures[1].octets == long.payload  # longer than what the engine stores
            key = exact(*((getattr(connection, name), bits) for name, bits in FLOW_KEY.items()))
            result.switches["s"].insert("ingress.flow", key, ActionCall("ingress.steer", (99,)))
            result.inject(result.fabric.nics["h0"][0].link, ipv4_packet(connection, payload=b"to the controller"))
            advance(result, result.now_ps + NEXT_PS)
            service.deliver(result.packets_in())
            assert (await client.receive()).packet.payload.endswith(b"to the controller")

    run(test())


FLOW_KEY = {"source_address": 32, "destination_address": 32, "protocol": 8, "source_port": 16, "destination_port": 16}
