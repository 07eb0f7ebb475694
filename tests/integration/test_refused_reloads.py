"""Reloads that cannot be: jobs, switches or the policy refuse, by name, and nothing changes."""

from collections.abc import Sequence
from contextlib import suppress

import pytest

from controller.process.active_controller import ActiveController
from controller.reload.errors import ReloadError
from controller.southbound.p4runtime.access import SwitchAccess
from controller.southbound.p4runtime.entries import key_of
from controller.southbound.p4runtime.states import Update
from controller.southbound.p4runtime.switches import P4RuntimeSouthbound
from controller.southbound.southbound import SouthboundError
from controller.southbound.states import EntryKind, UpdateKind
from controller.southbound.switch_access import SwitchRefusalError
from policies.plan import Plan
from policies.policy import Policy
from policies.registry import find_policy
from policies.snapshot import Snapshot
from tests.integration.reloading import ReloadedFabric, configuration, entities, part
from tests.integration.reloads import JOBS, WHOLE, WITHOUT, settled, tried

REFUSED = {
    "a host of a job": (part(WHOLE, hosts=["h3"]), ["job 'all' would not fit: hosts[2]: unknown host 'h3'"]),
    "a switch in the middle": (part(WHOLE, switches=["a1"]), ["topology: a2 would have other numbers or MACs"]),
    "all uplinks of a switch": (
        {
            **part(WHOLE, cables=[("t0", "a0"), ("t0", "a1"), ("t0", "a2")]),
            "cables": [
                *part(WHOLE, cables=[("t0", "a0"), ("t0", "a1"), ("t0", "a2")])["cables"],
                {"ends": ["t0:11", "a0:11"], "gbps": 10},
            ],
        },
        ["h0, h1, h2, h3, h4, h5, h6, h7 and 1 more would lose other hosts while flows move"],
    ),
    "the cable of a job's NIC": (
        {
            **WHOLE,
            "cables": [
                {**cable, "ends": ["h0:eth0", "t1:12"]} if cable["ends"][0] == "h0:eth0" else cable
                for cable in WHOLE["cables"]
            ],
        },
        ["job 'all' sends or receives by h0:eth0, whose cable would go"],
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_running_jobs_cannot_bear_is_refused_by_name_and_changes_nothing(name: str) -> None:
    topology, messages = REFUSED[name]

    async def change(found: ReloadedFabric) -> None:
        before, number = found.core, found.core.planner._number
        with pytest.raises(ReloadError) as refused:
            await found.change(topology=topology)
        for message in messages:
            assert any(message in problem for problem in refused.value.problems), refused.value.problems
        await found.settle()
        assert found.written == []
        assert found.core is before
        assert before.planner._number == number

    tried(WHOLE, change)


def test_a_policy_that_cannot_be_made_ready_is_refused() -> None:
    async def change(found: ReloadedFabric) -> None:
        with pytest.raises(ReloadError, match="policy: "):
            await found.change(policy="tests.nowhere:policy")
        assert found.core.planner.policy.name == "crux"
        assert found.written == []

    tried(WHOLE, change)


@pytest.mark.parametrize(
    ("kind", "is_tried"), [(EntryKind.GROUP, True), (EntryKind.GROUP, False), (EntryKind.ROUTING, True)]
)
@pytest.mark.parametrize("name", ["host", "cable"])
def test_a_switch_that_refuses_what_comes_keeps_the_fabric_and_all_packets(
    name: str, kind: EntryKind, is_tried: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups are tried before. What is refused once the new fabric is there has the controller go back."""

    async def nothing(*_: object) -> None:
        pass

    if not is_tried:
        monkeypatch.setattr(P4RuntimeSouthbound, "try_fabric", nothing)

    async def change(found: ReloadedFabric) -> None:
        known = {switch: set(state) for switch, state in entities(found).items()}
        state = entities(found)

        async def refusing(access: SwitchAccess, updates: Sequence[Update]) -> None:
            switch = access._switch.name
            for update in updates:
                key = key_of(update.entity)
                is_new = key not in known[switch] or update.entity not in state[switch].values()
                if switch == "t0" and key.kind is kind and is_new and update.kind is not UpdateKind.DELETE:
                    raise SwitchRefusalError("it has no room")
            await noting(access, updates)

        noting = SwitchAccess.write
        monkeypatch.setattr(SwitchAccess, "write", refusing)
        monkeypatch.setattr(ActiveController, "in_force", settled)
        with pytest.raises(ReloadError, match="topology: switch 't0': it has no room"):
            await found.change(topology=WHOLE)
        assert found.active.config.topology == configuration({**found._config, "topology": WITHOUT[name]}).topology
        await found.settle()
        assert entities(found) == state
        assert found.core.planner.decision is not None
        monkeypatch.setattr(SwitchAccess, "write", noting)
        await found.change(topology=WHOLE)

    tried(WITHOUT[name], change)


@pytest.mark.parametrize("name", ["host", "cable"])
def test_an_operator_goes_back_to_an_older_file_by_hand_though_a_switch_refuses_the_newer_one(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controller has not gone back by itself, as if the switch had refused before the reload."""

    async def change(found: ReloadedFabric) -> None:
        state, noting, refusals = entities(found), SwitchAccess.write, ActiveController.refusals

        async def refusing(access: SwitchAccess, updates: Sequence[Update]) -> None:
            for update in updates:
                is_new = update.entity not in state["t0"].values() and update.kind is not UpdateKind.DELETE
                if access._switch.name == "t0" and key_of(update.entity).kind is EntryKind.ROUTING and is_new:
                    raise SwitchRefusalError("it has no room")
            await noting(access, updates)

        monkeypatch.setattr(SwitchAccess, "write", refusing)
        monkeypatch.setattr(ActiveController, "in_force", settled)
        monkeypatch.setattr(ActiveController, "refusals", {})
        await found.change(is_whole=False, topology=WHOLE)
        monkeypatch.setattr(ActiveController, "refusals", refusals)
        assert found.active.refusals.keys() == {"t0"}
        with suppress(SouthboundError):
            await found.settle()
        lines = await found.change(topology=WITHOUT[name])
        assert any("removed" in line for line in lines)
        assert found.active.refusals == {}
        assert entities(found) == state

    tried(WITHOUT[name], change)


def decide_for_strangers(snapshot: Snapshot) -> Plan:
    if any(job.name in JOBS for job in snapshot.jobs):
        raise RuntimeError("not today")
    return find_policy("ecmp").decide(snapshot)


MOODY = Policy("moody", "plans for the jobs of a warm-up alone", decide_for_strangers)


def test_a_policy_that_makes_no_plan_is_named_in_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def planned(active: ActiveController, *_: object) -> bool:
        await active.core.planner.settle()
        return True

    monkeypatch.setattr(ActiveController, "in_force", planned)

    async def change(found: ReloadedFabric) -> None:
        lines = await found.change(policy=f"{__name__}:MOODY")
        assert lines[1:] == ["policy: moody has made no Plan of it, and the one before stays: RuntimeError: not today"]
        # A key that is not about the policy needs none that works.
        assert (await found.change(quotas={"jobs": 3}))[0].startswith("quotas")

    tried(WHOLE, change)
