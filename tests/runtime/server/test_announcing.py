"""What a server tells a real controller of programs whose hosts are made up."""

import asyncio
import logging
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest

from controller.clock import WallClock
from runtime import messages
from runtime.server import announcements, flow_connections
from runtime.server.accounts import Account, Ledger
from runtime.server.announcements import Announcements
from runtime.server.hosts import Host
from runtime.server.plans import PlannedProgram
from runtime.server.settings import ClientSettings
from runtime.substrates.interface import NetworkHost
from tests.hostlib.served import Served, served
from tests.patience import PATIENCE_S, until
from tests.runtime.server.test_plans import planned
from topologies.addressing import TCP_PROTOCOL

PORT = 40_000
"""At which host 0 listens, and host 2 two further."""
THERE_AND_BACK = [0, 2, 0]
"""Slices of calls: on host 0, on host 2 of another island, and on host 0 again."""


@dataclass
class Sent:
    """A connection to a host that does not exist."""

    messages: list[Any] = field(default_factory=list)

    def send(self, message: Any) -> None:
        self.messages.append(message)

    def of(self, kind: type) -> list[Any]:
        return [each for each in self.messages if isinstance(each, kind)]


@dataclass(frozen=True)
class Execution:
    number: int
    account: Account
    plan: PlannedProgram


class World:
    """Announcements for two hosts."""

    def __init__(self, address: str) -> None:
        self.sent = {0: Sent(), 2: Sent()}
        channels: dict[int, Any] = dict(self.sent)
        islands = {0: "west", 2: "east"}
        self.hosts = {
            number: Host(
                number,
                islands[number],
                channel,
                messages.Place(),
                NetworkHost(f"h{number}", f"10.0.{number}.1"),
                f"10.0.{number}.1:{PORT + number}",
            )
            for number, channel in channels.items()
        }
        self.told = Announcements([address], self.hosts)
        nowhere: Any = None
        self.account = Account(1, Ledger(ClientSettings("alice", "token")), nowhere)
        self._numbers = count()

    def start(self, plan: PlannedProgram, epoch: int = 0) -> int:
        """Start a run."""
        number = next(self._numbers)
        self.told.start(Execution(number, self.account, plan), epoch)
        return number

    def run(self, plan: PlannedProgram, epoch: int = 0) -> int:
        """Start a run, and end it."""
        number = self.start(plan, epoch)
        self.told.end(number)
        return number

    @property
    def jobs(self) -> list[str]:
        return [job["job"] for job in self.told.shown(trace=False)["jobs"]]


def play(scenario: Any) -> None:
    """Play a scenario with announcements and the controller that they reach."""

    async def played() -> None:
        async with served(clock=WallClock()) as serving:
            world = World(serving.address)
            await world.told.open()
            try:
                await scenario(world, serving)
            finally:
                await world.told.close()

    asyncio.run(asyncio.wait_for(played(), PATIENCE_S))


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announcements, "_LOOKS_EVERY_S", 0.05)


def test_a_run_is_announced_once_its_program_is_registered_and_over_when_it_has_ended() -> None:
    async def scenario(world: World, serving: Served) -> None:
        plan = planned(THERE_AND_BACK, [0.01] * 3, [3])
        number = world.start(plan)
        await until(lambda: len(serving.registry.jobs) == 1)
        (job,) = serving.registry.jobs
        name = job.request.name
        assert (name, job.request.hosts) == (world.jobs[0], ("h0", "h2"))
        assert job.request.profile is not None
        assert job.request.profile.compute_s == pytest.approx(0.03)
        groups = {"west to east", "east to west"}
        await until(lambda: {each.iteration for each in serving.registry.instances(name).values()} == {number})
        assert serving.registry.instances(name).keys() == groups
        world.told.end(number)
        await until(lambda: all(each.has_ended for each in serving.registry.instances(name).values()))
        assert [each[:2] for each in world.told.shown(trace=True)["announced"]] == [(number, name)]

    play(scenario)


def test_levels_and_source_ports_go_to_the_hosts_that_send() -> None:
    async def scenario(world: World, serving: Served) -> None:
        world.start(planned(THERE_AND_BACK, [0.01] * 3, [3]))
        await until(lambda: all(sent.of(messages.RankFlows) for sent in world.sent.values()))
        (job,) = serving.registry.jobs
        flows = {flow.source.host: flow for group in job.flow_groups for flow in group.flows}
        assert {host: flow.five_tuple.service for host, flow in flows.items()} == {
            "h0": (TCP_PROTOCOL, PORT + 2),
            "h2": (TCP_PROTOCOL, PORT),
        }
        for host, sent in world.sent.items():
            (rank,) = sent.of(messages.RankFlows)[-1].flows
            assert rank.source_port == flows[f"h{host}"].five_tuple.source_port
        for sent in world.sent.values():
            opened = {flow.number for each in sent.of(messages.OpenFlows) for flow in each.flows}
            assert {rank.number for rank in sent.of(messages.RankFlows)[0].flows} == opened

    play(scenario)


def test_what_was_announced_is_cancelled_while_all_runs_wait_and_announced_again_when_one_goes_on() -> None:
    async def scenario(world: World, serving: Served) -> None:
        plan = planned(THERE_AND_BACK, [0.01] * 3, [3])
        first = world.start(plan)
        await until(lambda: len(serving.registry.jobs) == 1)

        def seen() -> set[tuple[int, bool]]:
            instances = serving.registry.instances(world.jobs[0])
            return {(each.iteration, each.has_ended) for each in instances.values()}

        await until(lambda: seen() == {(0, False)})
        world.told.stall(2, messages.RunStalled(first, True))
        await until(lambda: seen() == {(0, True)})
        world.told.stall(0, messages.RunStalled(first, True))
        world.told.stall(2, messages.RunStalled(first, False))
        second = world.start(plan)
        await until(lambda: seen() == {(1, False)})
        world.told.stall(0, messages.RunStalled(second, True))
        await until(lambda: seen() == {(1, True)})
        world.told.stall(0, messages.RunStalled(first, False))
        await until(lambda: seen() == {(2, False)})
        world.told.end(first)
        await until(lambda: seen() == {(2, True)})
        world.told.stall(0, messages.RunStalled(second, False))
        await until(lambda: seen() == {(3, False)})
        world.told.end(second)
        await until(lambda: seen() == {(3, True)})
        assert [each[0] for each in world.told.shown(trace=True)["announced"]] == [first, second]

    play(scenario)


def test_runs_on_slices_that_have_moved_are_over_for_the_controller_and_announced_with_the_next_job() -> None:
    async def scenario(world: World, serving: Served) -> None:
        plan, moved = (planned(THERE_AND_BACK, [0.01] * 3, [3]) for _ in range(2))
        world.start(plan)
        await until(lambda: len(serving.registry.jobs) == 1)
        (before,) = world.jobs
        await until(lambda: len(serving.registry.instances(before)) == 2)
        world.start(moved, epoch=1)
        (after,) = world.jobs
        await until(lambda: len(serving.registry.instances(after)) == 2)
        await until(lambda: [job.request.name for job in serving.registry.jobs] == [after])
        assert not serving.registry.instances(before)

    play(scenario)


def test_ports_that_hosts_cannot_have_are_shown_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World, serving: Served) -> None:
        world.start(planned(THERE_AND_BACK, [0.01] * 3, [3]))
        await until(lambda: len(serving.registry.jobs) == 1)
        flows = [
            flow.number for sent in world.sent.values() for each in sent.of(messages.OpenFlows) for flow in each.flows
        ]
        with caplog.at_level(logging.WARNING):
            for number in flows:
                world.told.take(0, messages.FlowSteered(number, 50_000, "Address already in use"))
        what = "sends on another path than planned for now: port 50000 of host 0: Address already in use"
        assert caplog.messages == [f"chain {what}"]
        assert [job["unsteered"] for job in world.told.shown(trace=False)["jobs"]] == [2]
        world.told.take(0, messages.FlowSteered(flows[0], 50_000, ""))
        assert [job["unsteered"] for job in world.told.shown(trace=False)["jobs"]] == [1]

    play(scenario)


def test_times_that_differ_by_a_tenth_are_reported_and_twice_the_time_registers_anew() -> None:
    async def scenario(world: World, serving: Served) -> None:
        plan = planned(THERE_AND_BACK, [0.01] * 3, [3])
        world.run(plan)
        await until(lambda: len(serving.registry.jobs) == 1)
        (name,) = world.jobs
        for function in plan.functions:
            function.seconds = 0.013
        await until(lambda: profile_s(serving) == pytest.approx(0.039))
        assert world.jobs == [name]
        for function in plan.functions:
            function.seconds = 0.1
        await until(lambda: not world.jobs)
        assert len(world.sent[0].of(messages.CloseFlows)) == 1
        world.run(plan)
        await until(lambda: profile_s(serving) == pytest.approx(0.3))
        assert len(world.jobs) == 1
        assert world.jobs != [name]

    play(scenario)


def profile_s(serving: Served) -> float:
    """How long the only job computes; 0 where there is none."""
    jobs = serving.registry.jobs
    return jobs[0].request.profile.compute_s if len(jobs) == 1 and jobs[0].request.profile is not None else 0.0


def test_what_has_not_run_for_a_while_is_withdrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(world: World, serving: Served) -> None:
        plan = planned(THERE_AND_BACK, [0.01] * 3, [3])
        number = world.start(plan)
        await until(lambda: len(serving.registry.jobs) == 1)
        monkeypatch.setattr(announcements, "_IDLE_S", 0.0)
        await asyncio.sleep(0.2)
        assert len(world.jobs) == 1, "it runs"
        world.told.end(number)
        await until(lambda: not serving.registry.jobs)
        assert world.sent[0].of(messages.CloseFlows)

    play(scenario)


def test_connections_of_programs_that_run_on_are_closed_when_their_last_run_has_ended() -> None:
    async def scenario(world: World, serving: Served) -> None:
        plan, moved = (planned(THERE_AND_BACK, [0.01] * 3, [3]) for _ in range(2))
        number = world.start(plan)
        await until(lambda: len(serving.registry.jobs) == 1)
        before = world.jobs
        world.run(moved, epoch=1)
        await until(lambda: [job.request.name for job in serving.registry.jobs] == world.jobs != before)
        assert not world.sent[0].of(messages.CloseFlows)
        world.told.end(number)
        assert len(world.sent[0].of(messages.CloseFlows)) == 1

    play(scenario)


def test_programs_that_do_not_run_make_room_for_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(flow_connections, "_MOST_CONNECTIONS", 4)

    async def scenario(world: World, _serving: Served) -> None:
        plans = [planned(THERE_AND_BACK, [0.01] * 3, [3]) for _ in range(4)]
        world.run(plans[0])
        first = world.jobs
        running = world.start(plans[1])
        world.start(plans[2])
        assert len(world.jobs) == 2
        assert first[0] not in world.jobs
        with caplog.at_level(logging.WARNING):
            third = world.start(plans[3])
            world.told.end(third)
            world.run(plans[3])
        assert caplog.messages == ["chain is not ranked: it has 2 flows"]
        assert len(world.sent[0].of(messages.OpenFlows)) == 3
        world.told.end(running)
        world.run(planned(THERE_AND_BACK, [0.01] * 3, [3]))
        world.run(plans[3])
        assert len(world.sent[0].of(messages.OpenFlows)) == 5, "it has room by now"

    play(scenario)


def test_a_program_that_never_fits_takes_the_room_of_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_connections, "_MOST_CONNECTIONS", 2)

    async def scenario(world: World, _serving: Served) -> None:
        world.run(planned(THERE_AND_BACK, [0.01] * 3, [3]))
        before = world.jobs
        world.run(planned([*THERE_AND_BACK, 2], [0.01] * 4, [4]))
        assert world.jobs == before

    play(scenario)


def test_times_that_drift_slowly_register_anew_too() -> None:
    async def scenario(world: World, serving: Served) -> None:
        plan = planned(THERE_AND_BACK, [0.01] * 3, [3])
        world.run(plan)
        await until(lambda: len(serving.registry.jobs) == 1)
        for seconds in (0.015, 0.019):
            for function in plan.functions:
                function.seconds = seconds
            await until(lambda seconds=seconds: profile_s(serving) == pytest.approx(3 * seconds))
        for function in plan.functions:
            function.seconds = 0.022
        await until(lambda: not world.jobs)

    play(scenario)


def test_a_program_that_cannot_be_reported_is_withdrawn_and_others_are_looked_after(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(world: World, serving: Served) -> None:
        plan, other = (planned(THERE_AND_BACK, [0.01] * 3, [3]) for _ in range(2))
        world.run(plan)
        await until(lambda: len(serving.registry.jobs) == 1)
        with monkeypatch.context() as broken:
            broken.setattr(announcements, "template", _refuses)
            for function in plan.functions:
                function.seconds = 0.013
            await until(lambda: not serving.registry.jobs)
        world.run(other)
        await until(lambda: len(serving.registry.jobs) == 1)
        for function in other.functions:
            function.seconds = 0.013
        await until(lambda: profile_s(serving) == pytest.approx(0.039))

    play(scenario)


def _refuses(*_: object) -> None:
    raise ValueError("there is no room")


def test_runs_that_end_or_start_while_the_server_ends_register_nothing() -> None:
    async def scenario(world: World, serving: Served) -> None:
        plan = planned(THERE_AND_BACK, [0.01] * 3, [3])
        number = world.start(plan)
        await until(lambda: len(serving.registry.jobs) == 1)
        closing = asyncio.get_running_loop().create_task(world.told.close())
        await asyncio.sleep(0)
        world.told.end(number)
        world.run(plan)
        assert not world.jobs
        await closing
        assert not serving.registry.jobs

    play(scenario)


def test_servers_that_name_programs_likewise_share_a_controller() -> None:
    async def scenario(world: World, serving: Served) -> None:
        other = World(serving.address)
        await other.told.open()
        try:
            for each in (world, other):
                each.run(planned(THERE_AND_BACK, [0.01] * 3, [3]))
            await until(lambda: len(serving.registry.jobs) == 2)
        finally:
            await other.told.close()

    play(scenario)


def test_programs_of_one_island_or_of_hosts_off_the_network_are_not_told() -> None:
    async def scenario(world: World, _serving: Served) -> None:
        world.run(planned([0, 0], [0.01] * 2, [2]))
        world.hosts[2].network_host = None
        world.run(planned(THERE_AND_BACK, [0.01] * 3, [3]))
        assert not any(sent.messages for sent in world.sent.values())

    play(scenario)
