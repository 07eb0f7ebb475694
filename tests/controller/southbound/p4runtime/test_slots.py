"""Routes of a Tofino: the slots lead packets as the fabric's routing says, at every step of a change."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from finsy import P4Schema, P4TableAction, P4TableEntry

from controller.southbound.difference import difference
from controller.southbound.p4runtime.encoding import Encoder
from controller.southbound.p4runtime.entries import (
    Entity,
    base_entries,
    fixed_entries,
    holds_same,
    is_base,
    key_of,
    route_entries,
)
from controller.southbound.p4runtime.fabric_states import FabricStates
from controller.southbound.p4runtime.given_routes import interpret
from controller.southbound.p4runtime.slots import MAX_GROUPS, GroupNumbers
from controller.southbound.p4runtime.states import Update, state_of
from controller.southbound.states import EntryKey, EntryKind, UpdateKind
from tests.tna_p4info import tna_p4info
from tests.topologies.mixing import with_tofinos
from topologies.addressing import UDP_PROTOCOL, FiveTuple
from topologies.ecmp import TabulatedHash, flow_crc, hash_multipliers, num_slots
from topologies.fabric import Fabric
from topologies.given_routing import GivenRouting
from topologies.routing import Routing
from topologies.specification import ClosSpecification
from topologies.targets import PACKET_BYTES

CLOS = ClosSpecification(
    kind="clos", tors=3, aggs=3, hosts_per_tor=2, host_link_gbps=100, uplink_gbps=100, uplinks_per_pair=1
).build()
FABRIC = with_tofinos(CLOS, {"t0"})
ROUTING = Routing(FABRIC, hash_multipliers(FABRIC.switches, seed=1))
UPLINKS = [link.index for link in FABRIC.links_from["t0"] if link.destination in FABRIC.switch_index]


def flows(fabric: Fabric) -> list[FiveTuple]:
    source, destination = fabric.nics["h0"][0], fabric.nics["h5"][0]
    return [
        FiveTuple(source.address, destination.address, UDP_PROTOCOL, port, 4791) for port in range(49152, 49152 + 400)
    ]


def action_of(held: Mapping[EntryKey, Entity], kind: EntryKind, identity: object) -> P4TableAction | None:
    entry = held.get(EntryKey(kind, identity))  # type: ignore[arg-type]
    assert entry is None or isinstance(entry, P4TableEntry)
    assert entry is None or isinstance(entry.action, P4TableAction)
    return None if entry is None else entry.action


def port_of(held: Mapping[EntryKey, Entity], flow: FiveTuple) -> int | None:
    """The port that a Tofino with these entries sends a flow by, as its program reads them; None: it is dropped."""
    for length in range(32, -1, -1):
        address = flow.destination_address >> 32 - length << 32 - length
        route = action_of(held, EntryKind.ROUTING, (("destination_address", (address, length)),))
        if route is not None:
            break
    else:
        return None
    node = action_of(held, EntryKind.SETTING, "node")
    assert node is not None
    if route.name == "set_ecmp_group":
        slot = TabulatedHash(node.args["hash_salt"]).hash_of_crc(flow_crc(flow)) & route.args["slot_mask"]
        found = action_of(held, EntryKind.GROUP, (("group", route.args["group"]), ("slot", slot)))
        if found is None:
            return None
        route = found
    assert route.name == "set_next_hop"
    forward = action_of(held, EntryKind.NEXT_HOP, (("next_hop", route.args["next_hop"]),))
    return None if forward is None else int(forward.args["port"])


def expected_port(routing: Routing, flow: FiveTuple) -> int:
    links = routing.next_links("t0", routing.fabric.nic_by_address[flow.destination_address])
    return routing.fabric.links[routing.hashed_link("t0", flow_crc(flow), links)].source_port


@pytest.mark.parametrize("dead", [set(), {UPLINKS[0]}, {UPLINKS[0], UPLINKS[2]}])
def test_the_entries_send_every_flow_by_the_link_that_routing_predicts(dead: set[int]) -> None:
    routing = ROUTING.without(frozenset(dead))
    held = state_of(base_entries("t0", routing))
    ports = [port_of(held, flow) for flow in flows(FABRIC)]
    assert ports == [expected_port(routing, flow) for flow in flows(FABRIC)]
    assert len(set(ports)) == 3 - len(dead)
    (route,) = {
        (entry.action.name, entry.action.args.get("slot_mask"))
        for key, entry in held.items()
        if key.kind is EntryKind.ROUTING
        and isinstance(entry, P4TableEntry)
        and isinstance(entry.action, P4TableAction)
        and entry.action.args.get("next_hop") not in {1, 2}  # the switch's own hosts
    }
    assert route == (("set_next_hop", None) if len(dead) == 2 else ("set_ecmp_group", num_slots(3 - len(dead)) - 1))


def test_units_and_names_are_those_of_the_target() -> None:
    def settings(switch: str) -> dict[str, Mapping[str, Any]]:
        found = {}
        for entry in fixed_entries(switch, ROUTING):
            if isinstance(entry, P4TableEntry) and entry.is_default_action:
                assert isinstance(entry.action, P4TableAction)
                found[entry.table_id] = entry.action.args
        return found

    assert PACKET_BYTES == 1500
    assert settings("t0")["ecn"] == {"depth_cells": 12 * 19}
    assert settings("t0")["node"] == {"hash_salt": ROUTING.hash_multipliers["t0"]}
    assert settings("t1")["ecn"] == {"depth_packets": 12}
    assert settings("t1")["node"] == {"hash_multiplier": ROUTING.hash_multipliers["t1"]}


def test_every_entry_is_one_of_the_program() -> None:
    encoder = Encoder(P4Schema(tna_p4info()))
    for routing in (ROUTING, ROUTING.without(frozenset({UPLINKS[0]}))):
        for entity in base_entries("t0", routing):
            encoder.update(Update(UpdateKind.INSERT, entity))


def _steps(before: Routing, after: Routing, states: FabricStates) -> list[Update]:
    return [
        update
        for stage in difference(states.base("t0", before), states.base("t0", after), holds_same)
        for update in stage
    ]


@pytest.mark.parametrize(
    ("before", "after"), [(set(), {UPLINKS[0]}), ({UPLINKS[0]}, set()), ({UPLINKS[0]}, {UPLINKS[1], UPLINKS[2]})]
)
def test_no_flow_is_dropped_or_sent_elsewhere_while_links_die_and_come_back(before: set[int], after: set[int]) -> None:
    states = FabricStates(["t0"], ROUTING, None)
    one, other = (ROUTING.without(frozenset(dead)) for dead in (before, after))
    held = dict(states.base("t0", one))
    allowed = {flow: {expected_port(one, flow), expected_port(other, flow)} for flow in flows(FABRIC)[:40]}
    updates = _steps(one, other, states)
    kinds = [update.kind for update in updates]
    assert UpdateKind.DELETE not in kinds[: len(kinds) - kinds[::-1].index(UpdateKind.MODIFY)]
    for update in updates:
        key = key_of(update.entity)
        if update.kind is UpdateKind.DELETE:
            del held[key]
        else:
            held[key] = update.entity
        for flow, ports in allowed.items():
            assert port_of(held, flow) in ports
    assert held == states.base("t0", other)


def test_a_group_keeps_its_number_as_long_as_numbers_last() -> None:
    numbers = GroupNumbers()
    first = numbers.of([(1, 2), (3, 4), (1, 2, 3)])
    assert first == GroupNumbers().of([(3, 4), (1, 2, 3), (1, 2)])
    for port in range(5, 200):
        assert numbers.of([(1, 2), (port, port + 1)])[1, 2] == first[1, 2]
    assert numbers.of([(3, 4)])[3, 4] == first[3, 4]
    many = [(port, 400) for port in range(1, 1 + MAX_GROUPS)]
    assert sorted(numbers.of(many).values()) == list(range(MAX_GROUPS))
    too_many = numbers.of([*many, (401, 402), (403, 404)])
    assert sorted(too_many.values())[-2:] == [MAX_GROUPS, MAX_GROUPS + 1]
    assert max(numbers.of([(401, 402), (403, 404)]).values()) < MAX_GROUPS


def test_our_own_slots_mean_our_own_routing_to_who_reads_them() -> None:
    base = [entity for entity in base_entries("t0", ROUTING) if is_base(key_of(entity))]
    found = interpret("t0", state_of(base), FABRIC)
    assert found.problems == ()
    given = GivenRouting(FABRIC, {"t0": found.routes})
    destination = FABRIC.nics["h5"][0]
    choices = given.hash_choices("t0", destination)
    assert choices is not None
    assert [given.hashed_link("t0", flow_crc(flow), choices) for flow in flows(FABRIC)] == [
        ROUTING.hashed_link("t0", flow_crc(flow), ROUTING.next_links("t0", destination)) for flow in flows(FABRIC)
    ]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda action: action | {"slot_mask": 5}, "slot mask 0x5, which is not one less than a power of two"),
        (lambda action: action | {"slot_mask": 511}, "has a member without a next hop"),
    ],
)
def test_slots_of_others_without_sense_are_named(
    change: Callable[[dict[str, int]], dict[str, int]], problem: str
) -> None:
    entities = []
    for entity in base_entries("t0", ROUTING):
        match entity:
            case P4TableEntry(action=P4TableAction(name="set_ecmp_group") as action):
                changed = P4TableAction("set_ecmp_group", **change(dict(action.args)))
                entities.append(P4TableEntry("routing", match=entity.match, action=changed))
            case _:
                entities.append(entity)
    assert any(problem in each for each in interpret("t0", state_of(entities), FABRIC).problems)


def test_a_switch_of_v1model_keeps_its_selector() -> None:
    kinds = {key_of(entity).kind for entity in route_entries("t1", ROUTING)}
    assert kinds == {EntryKind.GROUP, EntryKind.ROUTING}
    plain = Routing(CLOS, hash_multipliers(CLOS.switches, seed=1))
    assert base_entries("t1", ROUTING) == base_entries("t1", plain)
