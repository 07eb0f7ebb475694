"""A controller goes over to other configurations under traffic: packets flow between any two writes; none is lost."""

from contextlib import nullcontext, suppress
from typing import Any

import pytest

from controller.errors import StoreError
from controller.links.drains import DrainKind
from controller.metrics import DRIFTED, REGISTRY
from controller.planning.intervening import Intervening
from controller.planning.interventions import HandPin
from controller.process import changing
from controller.process.active_controller import ActiveController
from controller.process.core import ControllerCore
from controller.reload.errors import ReloadError
from controller.southbound.p4runtime.entries import flow_entry, key_of
from controller.southbound.p4runtime.switches import P4RuntimeSouthbound
from controller.southbound.states import EntryKey, EntryKind, UpdateKind
from controller.switch_addresses import SwitchAddress
from policies.policy import Policy
from tests.integration.reloading import ReloadedFabric, entities, part
from tests.integration.reloads import CLOS, WHOLE, WITHOUT, tried
from tests.patience import until
from topologies.fabric_match import FabricMatch


@pytest.mark.parametrize("policy", ["crux", "ecmp"])
@pytest.mark.parametrize("name", WITHOUT)
def test_no_packet_is_lost_where_a_part_is_removed_and_added_again(name: str, policy: str) -> None:
    async def change(found: ReloadedFabric) -> None:
        before, state = found.core, entities(found)
        lines = await found.change(topology=WITHOUT[name])
        assert found.core is not before
        assert lines
        gone = FabricMatch(CLOS.build(), found.core.registry.fabric).leaving
        links = [2 * cable + way for cable in gone for way in (0, 1)]
        found.traffic.run(0.002)
        sent = found.emulated.sent_bytes()[links].sum()
        found.traffic.run(0.002)
        assert found.emulated.sent_bytes()[links].sum() == sent
        await found.change(topology=WHOLE)
        # As if nothing had been, but for entries that nobody refers to.
        assert entities(found) == state

    tried(WHOLE, change, policy=policy)


def test_two_hosts_change_places_without_a_packet_of_others_being_lost() -> None:
    """Hosts that no job uses, each with its only cable, of which the switches have both ends all along."""
    swapped = {"h2": "h5", "h5": "h2"}

    def moved(cable: dict[str, Any]) -> dict[str, Any]:
        host, port = cable["ends"][0].split(":")
        return {**cable, "ends": [f"{swapped.get(host, host)}:{port}", cable["ends"][1]]}

    async def change(found: ReloadedFabric) -> None:
        state = entities(found)
        lines = await found.change(topology={**WHOLE, "cables": [moved(cable) for cable in WHOLE["cables"]]})
        assert [line.partition(": ")[2].partition(":")[0] for line in lines] == ["cables removed", "cables added"]
        assert {link.destination for link in found.core.registry.fabric.links_from["h2"]} == {"t1"}
        assert entities(found) != state
        found.traffic.run(0.002)
        await found.change(topology=WHOLE)
        assert entities(found) == state

    tried(WHOLE, change)


def test_only_what_the_change_needs_is_written() -> None:
    """A host that nobody sends to is removed: its next hop and its routes go, and no rule is touched."""

    async def change(found: ReloadedFabric) -> None:
        await found.change(topology=WITHOUT["host"])
        keys = {(switch, key_of(update.entity).kind) for switch, updates in found.written for update in updates}
        assert {kind for _, kind in keys} == {
            EntryKind.NEXT_HOP,
            EntryKind.MEMBER,
            EntryKind.GROUP,
            EntryKind.ROUTING,
        }
        assert {switch for switch, kind in keys if kind is not EntryKind.ROUTING} == {"t0"}
        assert {update.kind for _, updates in found.written for update in updates} == {UpdateKind.DELETE}

    tried(WHOLE, change)


def test_a_cable_that_carries_nothing_is_removed_from_its_ends_alone() -> None:
    """Two cables beside each other lead to a switch where no job sends: the others keep every entry."""

    async def change(found: ReloadedFabric) -> None:
        await found.change(topology=part(WHOLE, cables=[("t2", "a2")]))
        rules = [
            update
            for _, updates in found.written
            for update in updates
            if key_of(update.entity).kind in (EntryKind.FLOW, EntryKind.JOB)
        ]
        known = {key for state in entities(found).values() for key in state if key.kind is EntryKind.FLOW}
        assert {key_of(update.entity) for update in rules if update.kind is UpdateKind.DELETE}.isdisjoint(known)

    tried(WHOLE, change)


SMALL = {
    "policy": ({"policy": "ecmp"}, "policy: crux, now ecmp"),
    "levels": ({"num_levels": 2}, "num_levels: 8, now 2"),
    "tenants": ({"tenants": {"a": {"jobs": 1}}}, "tenants.a"),
    "damping": ({"damping": {"half_life_s": 3.0}}, "damping: nothing, now half_life_s 3.0"),
    "time limit": ({"policy_time_limit_s": None}, "policy_time_limit_s: 1000000.0, now nothing"),
}


@pytest.mark.parametrize("name", SMALL)
def test_small_keys_change_at_once_and_lose_nothing(name: str) -> None:
    keys, words = SMALL[name]

    async def change(found: ReloadedFabric) -> None:
        before = found.core
        number = before.planner.decision.number if before.planner.decision else 0
        lines = await found.change(**keys)
        assert lines[0].startswith(words)
        assert found.core is before
        decision = before.planner.decision
        assert decision is not None
        assert decision.number == number + 1
        if name == "policy":
            assert decision.plan.policy == before.planner.policy.name == "ecmp"
        if name == "levels":
            assert decision.snapshot.num_levels == 2
            assert {job.level for job in decision.plan.jobs} <= {0, 1}
        if name in ("tenants", "damping", "time limit"):
            assert found.written == []

    tried(WHOLE, change)


def test_drains_stay_with_what_stays_and_end_with_what_goes() -> None:
    async def change(found: ReloadedFabric) -> None:
        draining = found.core.draining
        for kind, names in ((DrainKind.LINK, ("t0", "a1")), (DrainKind.LINK, ("t1", "a2")), (DrainKind.HOST, ("h2",))):
            target = draining.targets.find(kind, names[0], *names[1:])
            assert await draining.drain(target, "test", is_forced=True)
        await found.settle()
        lines = await found.change(topology=part(WHOLE, cables=[("t0", "a1")]))
        assert any("the drain of link a1:1 - t0:5 has ended" in line for line in lines)
        assert [drain.target.name for drain in found.core.draining.drains] == ["a2:2 - t1:6", "h2"]
        targets, drains = found.core.draining.targets, found.core.draining.drains
        drained = {cable for drain in drains for cable in targets.cables(drain.target)}
        assert {link // 2 for link in found.core.planner.routing.drained} == drained
        with pytest.raises(StoreError, match="the fabric is another one by now"):
            await draining.undrain(target)

    tried(WHOLE, change)


def test_flows_use_a_new_switch_only_once_it_has_its_entries() -> None:
    async def change(found: ReloadedFabric) -> None:
        await found.change(topology=WHOLE)
        first = next(at for at, (switch, _) in enumerate(found.written) if switch == "a2")
        assert first < max(at for at, (switch, _) in enumerate(found.written) if switch.startswith("t"))
        decision = found.core.planner.decision
        assert decision is not None
        links = found.core.registry.fabric.links
        paths = [plan.path for plan in decision.plan.flows.values() if plan.path]
        assert any(links[link].source == "a2" for path in paths for link in path)

    tried(part(WHOLE, switches=["a2"]), change)


@pytest.mark.parametrize("topology", [WITHOUT["cable"], WHOLE], ids=["a cable goes", "nothing does"])
def test_a_cable_that_dies_before_the_first_plan_takes_only_its_own_rules_along(topology: dict[str, Any]) -> None:
    async def change(found: ReloadedFabric) -> None:
        before = found.core.planner
        if topology is WHOLE:  # twice, and no Plan between them: rules stand over two fabrics
            await found.change(is_whole=False, topology=WITHOUT["host"])
        await found.change(is_whole=False, topology=topology)
        fabric, decision = found.core.registry.fabric, before.decision
        assert found.core.planner.decision is None
        assert decision is not None
        (dying,) = (link for link in fabric.links_from["t1"] if link.destination == "a2")
        states = {
            switch: {link.source_port: link.index != dying.index for link in fabric.links_from[switch]}
            for switch in fabric.switches
        }
        found.written.clear()
        found.core.planner.links.set_port_states(states, 0.0)
        await found.core.planner.leave_dead_links()
        touched = _flow_keys(found)
        cable = FabricMatch(before.routing.fabric, fabric).links
        crossing = {
            flow.five_tuple
            for job in decision.snapshot.jobs
            for flow in job.flows
            if {cable[link] // 2 for link in decision.plan.flows[flow.key].path or flow.hashed_path}
            >= {dying.index // 2}
        }
        rules = [rule for some in decision.rules.values() for rule in some if rule.five_tuple in crossing]
        assert touched <= {(rule.switch, key_of(flow_entry(rule, before.routing.fabric))) for rule in rules}
        assert touched

    tried(WHOLE, change)


def _flow_keys(found: ReloadedFabric) -> set[tuple[str, EntryKey]]:
    """The rules of flows that have been written since."""
    updates = [(switch, key_of(update.entity)) for switch, some in found.written for update in some]
    return {(switch, key) for switch, key in updates if key.kind is EntryKind.FLOW}


def test_without_the_steps_the_same_change_loses_packets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of the writes is what keeps packets: the tests above would notice."""

    async def nothing(_: object) -> None:
        pass

    monkeypatch.setattr("controller.process.changing._FabricChange._leave_cables", nothing)
    monkeypatch.setattr("controller.process.changing._FabricChange._require_left", lambda _: None)

    async def change(found: ReloadedFabric) -> None:
        await found.change(topology=WITHOUT["cable"])

    tried(WHOLE, change, loses_packets=True)


@pytest.mark.parametrize("is_refused", [False, True])
def test_a_controller_is_ready_all_the_while(monkeypatch: pytest.MonkeyPatch, *, is_refused: bool) -> None:
    take_over = ControllerCore.take_over

    async def change(found: ReloadedFabric) -> None:
        presence, seen = found.active._presence, list[tuple[bool, bool]]()

        def seeing(core: ControllerCore, *arguments: Any) -> None:
            seen.append((presence.context is None, presence.is_ready))
            if is_refused:
                raise ReloadError("not now")
            take_over(core, *arguments)

        monkeypatch.setattr(ControllerCore, "take_over", seeing)
        with pytest.raises(ReloadError, match="not now") if is_refused else nullcontext():
            await found.change(topology=WITHOUT["cable"])
        assert seen == [(True, True)]
        assert presence.context is await presence.settled() is found.core.context
        found.active.end()
        assert not presence.is_ready
        assert await presence.settled() is None

    tried(WHOLE, change)


def test_a_switch_that_comes_has_a_count_of_drift_from_the_start() -> None:
    async def change(found: ReloadedFabric) -> None:
        with suppress(KeyError):
            DRIFTED.remove("a2")  # of the tests before
        await found.change(topology=WHOLE)
        assert REGISTRY.get_sample_value("trainyard_switch_drifted_entries_total", {"switch": "a2"}) == 0

    tried(part(WHOLE, switches=["a2"]), change)


async def _nobody_looks_again_and_again(active: ActiveController, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits for switches is told, and asks for nothing until then."""
    asked, statuses = list[None](), P4RuntimeSouthbound.statuses

    def counted(southbound: P4RuntimeSouthbound) -> Any:
        asked.append(None)
        return statuses(southbound)

    with monkeypatch.context() as patched:
        patched.setattr(P4RuntimeSouthbound, "statuses", counted)
        patched.setattr(active, "_plans_by_itself", True)
        assert not await active.in_force(0.5)
    assert len(asked) < 5


def test_cables_to_a_switch_that_is_away_wait_for_it_and_no_others_do(monkeypatch: pytest.MonkeyPatch) -> None:
    async def change(found: ReloadedFabric) -> None:
        nowhere = [SwitchAddress(name="a2", address="127.0.0.1:1", device_id=6)]
        known = [address for address in found.addresses if address.name != "a2"]
        await found.change(is_whole=False, topology=WHOLE, switches=(*known, *nowhere))
        fabric = found.core.registry.fabric
        to_a2 = {link.index // 2 for link in fabric.links_from["a2"]}
        await until(lambda: found.core.draining.aside == to_a2)
        await _nobody_looks_again_and_again(found.active, monkeypatch)
        await found.core.planner.settle()
        found.traffic.run(0.002)
        links = [link.index for link in fabric.links_from["a1"]]
        sent = found.emulated.sent_bytes()[links].sum()
        found.traffic.run(0.002)
        assert found.emulated.sent_bytes()[links].sum() > sent
        assert found.core.planner.routing.drained == {2 * cable + way for cable in to_a2 for way in (0, 1)}

    tried(part(WHOLE, switches=["a1", "a2"]), change)


def test_pins_go_on_and_a_pause_keeps_the_fabric_as_it_is() -> None:
    async def change(found: ReloadedFabric) -> None:
        interventions = found.core.planner.interventions
        await interventions.pin(HandPin("even", 3, None, 0.0, 1e6, "test"))
        assert await interventions.begin_pause("test", "", is_released=False)
        with pytest.raises(ReloadError, match="planning is paused"):
            await found.change(topology=WITHOUT["cable"])
        lines = await found.change(topology=WHOLE, num_levels=4)
        assert lines == ["num_levels: 8, now 4", "planning is paused: the first Plan goes by this once it is resumed"]
        assert found.written == []
        assert await interventions.end_pause()
        await found.change(topology=WITHOUT["cable"])
        decision = found.core.planner.decision
        assert decision is not None
        assert {flow.level for key, flow in decision.plan.flows.items() if key.job == "even"} == {3}
        assert decision.snapshot.num_levels == found.core.planner.num_levels == 4

    tried(WHOLE, change)


def test_who_releases_while_a_reload_begins_keeps_the_fabric_and_gets_all_back(monkeypatch: pytest.MonkeyPatch) -> None:
    ready_policy = changing.ready_policy

    async def change(found: ReloadedFabric) -> None:
        before = found.core
        context = before.context
        hands = Intervening(before.planner, before.registry, before.southbound, context.clock, context.profiling)

        async def released_meanwhile(*arguments: Any) -> Policy:
            await hands.release("test")
            return await ready_policy(*arguments)

        monkeypatch.setattr(changing, "ready_policy", released_meanwhile)
        with pytest.raises(ReloadError, match="planning is paused"):
            await found.change(topology=WHOLE)
        monkeypatch.undo()
        assert found.core is before
        assert await hands.resume()
        await found.change(topology=WHOLE)
        assert all(writer.serves_levels for writer in found.active.southbound._writers.values())
        levels = {key for held in entities(found).values() for key in held if key.kind is EntryKind.LEVEL}
        assert levels

    tried(WITHOUT["cable"], change)
