"""Every oracle of chaos finds its violation, in runs of controllers and worlds with one defect each."""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import pytest

from controller.planning.planner import Planner
from controller.record import changes
from controller.record.codec import encode_order
from controller.record.facts import Body
from controller.registry.errors import NotOwnerError
from controller.registry.journal import Change, InstanceChange
from controller.registry.registry import Registry
from controller.southbound import desired_state
from controller.southbound.p4runtime.access import SwitchAccess
from controller.southbound.p4runtime.entries import key_of
from controller.southbound.p4runtime.states import Stage, State, Update, difference
from controller.southbound.states import EntryKind, UpdateKind
from controller.store.store import Store
from controller.telemetry.link_failures import LinkFailureDetector
from controller.telemetry.pair_monitor import PairMonitor
from controller.telemetry.path_table import PathTable
from controller.telemetry.report_checks import Reporters
from emulator.fabric import EmulatedFabric
from policies.job import Profile
from policies.plan import FlowPlan, JobPlan
from tests.chaos.fate import Fate
from tests.chaos.oracles import Footprint, grown
from tests.chaos.run import ChaosError, play
from tests.chaos.world import TOPOLOGY

_SEED, _NUM_EVENTS = 3, 25
_SEED_OF_KILLS = 8
"""Of a run in which a job reports another profile, and then the controller is killed."""
_UPLINK = next(link.index for link in TOPOLOGY.build().links if link.source == "t0" and link.destination == "a0")


def test_a_write_that_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The controller takes the write for acknowledged."""
    write = SwitchAccess.write

    async def forgetful(self: Any, updates: Sequence[Update]) -> None:
        flows = [update for update in updates if key_of(update.entity).kind is EntryKind.FLOW]
        await write(self, [update for update in updates if update not in flows[:1]])

    monkeypatch.setattr(SwitchAccess, "write", forgetful)
    with pytest.raises(ChaosError, match=r"holds \d+ entries that it should not and lacks [1-9]|plan is not in force"):
        play(_SEED, _NUM_EVENTS)


def test_rules_that_are_never_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    def hoarding(held: State, desired: State, _: object) -> tuple[Stage, ...]:
        stages = difference(held, desired)
        return tuple(tuple(update for update in stage if update.kind is not UpdateKind.DELETE) for stage in stages)

    monkeypatch.setattr(desired_state, "difference", hoarding)
    with pytest.raises(ChaosError, match="which no job has"):
        play(_SEED, _NUM_EVENTS)


def test_a_registration_that_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A registration is acknowledged, and never stored."""

    async def forgetful(_self: Store, _of_jobs: Sequence[Change]) -> None:
        pass

    monkeypatch.setattr(Store, "_write", forgetful)
    with pytest.raises(ChaosError, match=r"after a restart j\d+ was acknowledged and is not registered"):
        play(_SEED_OF_KILLS, _NUM_EVENTS)


def test_a_profile_that_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(_self: Registry, _name: str, _profile: Profile) -> bool:
        return True

    monkeypatch.setattr(Registry, "report_profile", forgetful)
    with pytest.raises(ChaosError, match="was acknowledged Profile"):
        play(_SEED_OF_KILLS, _NUM_EVENTS)


def test_an_instance_that_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """An instance is planned with, acknowledged, and never stored."""
    write = Store._write

    async def forgetful(self: Store, of_jobs: Sequence[Change]) -> None:
        await write(self, [change for change in of_jobs if not isinstance(change, InstanceChange)])

    monkeypatch.setattr(Store, "_write", forgetful)
    with pytest.raises(ChaosError, match=r"after a restart j\d+/g\d+ was acknowledged GroupInstance"):
        play(_SEED_OF_KILLS, _NUM_EVENTS)


def test_a_transfer_that_does_not_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EmulatedFabric, "start_transfer", lambda _self, _flow, _size_bytes: None)
    with pytest.raises(ChaosError, match="has not arrived"):
        play(_SEED, _NUM_EVENTS)


def test_a_controller_that_ends_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    async def tired(_self: Planner) -> None:
        await asyncio.sleep(1)

    monkeypatch.setattr(Planner, "run", tired)
    with pytest.raises(ChaosError, match="controller ended by itself"):
        play(_SEED, _NUM_EVENTS)


def test_an_error_that_nobody_hears_of(monkeypatch: pytest.MonkeyPatch) -> None:
    mark_changed = Planner.mark_changed

    def careless(self: Planner) -> None:
        asyncio.get_running_loop().call_soon(int, "unheard of")
        mark_changed(self)

    monkeypatch.setattr(Planner, "mark_changed", careless)
    with pytest.raises(ChaosError, match="unheard of"):
        play(_SEED, _NUM_EVENTS)


def test_a_table_of_paths_that_nothing_makes_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PathTable, "is_fresh", lambda *_: True)
    with pytest.raises(ChaosError, match=r"h\d to h\d: .* is dead"):
        play(_SEED, _NUM_EVENTS)


def test_a_link_that_works_and_falls_silent_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    update = LinkFailureDetector.update

    def nervous(self: LinkFailureDetector, pairs: Collection[PairMonitor], now_s: float) -> bool:
        before = self.silent_links
        update(self, pairs, now_s)
        self.silent_links = frozenset({_UPLINK} if now_s % 10 > 5 else ())
        return self.silent_links != before

    monkeypatch.setattr(LinkFailureDetector, "update", nervous)
    with pytest.raises(ChaosError, match=r"t0-a0 fell silent at [\d.]+ s, and works"):
        play(_SEED, _NUM_EVENTS)


def test_an_agent_that_is_refused_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    def unforgiving(_self: Reporters, host: str, _owner_token: str, _now_s: float) -> None:
        raise NotOwnerError(f"{host} is nobody's")

    monkeypatch.setattr(Reporters, "authorise", unforgiving)
    with pytest.raises(ChaosError, match="the agent of h0 is not answered"):
        play(_SEED, _NUM_EVENTS)


def test_a_record_that_is_not_what_was_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreasonable(plan: JobPlan, flows: Sequence[FlowPlan]) -> Body:
        return encode_order(replace(plan, reason="It was so."), flows)

    monkeypatch.setattr(changes, "encode_order", unreasonable)
    with pytest.raises(ChaosError, match=r"plan \d+ is decided otherwise for j\d+"):
        play(_SEED, _NUM_EVENTS)


def test_whatever_goes_wrong_is_told_with_what_has_it_happen_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def confused(_self: Fate) -> None:
        raise KeyError("j0")

    monkeypatch.setattr(Fate, "happen", confused)
    with pytest.raises(ChaosError, match=r"(?s)KeyError: 'j0'.*again: make chaos SEED=3 EVENTS=1"):
        play(_SEED, _NUM_EVENTS)


def test_a_process_that_grows() -> None:
    steady = [Footprint(30_000 + number % 3 * 1_000, 260 << 20, 9) for number in range(10)]
    assert grown(steady) == []
    leaking = [Footprint(30_000 + 1_000 * number, (260 + 5 * number) << 20, 9 + number) for number in range(10)]
    assert [wrong.partition(" ")[0] for wrong in grown(leaking)] == ["num_objects", "resident_bytes", "num_files"]
