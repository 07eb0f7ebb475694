"""Oracles: what must be true of a world without failures. Each returns the violations that it finds."""

import asyncio
import gc
import os
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from sqlalchemy import Connection

from controller.planning.failover_rules import best_effort_where_cut_off
from controller.record.lines import read_decisions, text_of
from controller.record.replay import Verdict, replay
from controller.registry.jobs import RegisteredJob
from controller.rules.flow_rules import flow_rules
from controller.southbound.p4runtime.switches import P4RuntimeSouthbound
from controller.store.database import Database
from controller.store.facts import LAST_PLAN_NUMBER, newest_plan, record_lines
from controller.telemetry.path_table import Freshness
from policies.policy import decide
from policies.registry import find_policy
from tests.chaos.jobs import LoopClock, TrainingJob, on_the_wire
from tests.chaos.switches import Switches
from tests.chaos.traffic import Traffic
from tests.chaos.world import World
from topologies.addressing import FiveTuple
from topologies.routing import Routing
from topologies.steering import Steering

_FEWEST_FOOTPRINTS = 6
_DECIDED_AGAIN = 50
_LOOK_S = 0.25

Held = Mapping[str, frozenset[bytes]]
"""What every switch holds."""


def other_five_tuples(jobs: Mapping[str, TrainingJob], registered: Mapping[str, RegisteredJob]) -> list[str]:
    """Return flow groups that a job sends on other 5-tuples than the controller has."""
    wrong = []
    for name, job in jobs.items():
        groups = registered[name].flow_groups if name in registered else ()
        believed = {group.name: tuple(flow.five_tuple for flow in group.flows) for group in groups}
        sent = {group: tuple(map(on_the_wire, five_tuples)) for group, five_tuples in job.five_tuples().items()}
        wrong += [
            f"{name}/{group} sends on {sent.get(group)}, and {believed.get(group)} is believed"
            for group in sorted(sent.keys() | believed.keys())
            if sent.get(group) != believed.get(group)
        ]
    return wrong


def strange_registrations(world: World) -> list[str]:
    """Return jobs that are registered but gone, and jobs that run but are not registered."""
    assert world.controller is not None
    registered = {job.request.name for job in world.controller.registry.jobs}
    return [f"{name} is registered and not there" for name in sorted(registered - world.jobs.keys())] + [
        f"{name} is there and not registered" for name in sorted(world.jobs.keys() - registered)
    ]


def unknown_links(world: World, believed: Set[int]) -> list[str]:
    """Return links whose state the controller has wrong, except those that no switch can report."""
    off = {name for name, switch in world.emulated.switches.items() if not switch.power.is_on}
    links = [world.fabric.links[index] for index in sorted(believed ^ world.dead_links)]
    return [
        f"{link.source}-{link.destination} is believed {'dead' if link.index in believed else 'alive'}, and is not"
        for link in links
        if not {link.source, link.destination} <= off.union(world.fabric.hosts)
    ]


@contextmanager
def silences_noted(world: World) -> Iterator[list[str]]:
    """Yield a list that gets every link that works and falls silent meanwhile."""
    noted = list[str]()
    watching = asyncio.ensure_future(_note_silences(world, noted))
    try:
        yield noted
    finally:
        watching.cancel()


async def _note_silences(world: World, noted: list[str]) -> None:
    assert world.controller is not None
    telemetry, links = world.controller.telemetry, world.fabric.links
    silent = telemetry.silent_links
    while True:
        await asyncio.sleep(_LOOK_S)
        before, silent = silent, telemetry.silent_links
        noted += [
            f"{links[index].source}-{links[index].destination} fell silent at {LoopClock().now_s():.1f} s, and works"
            for index in sorted(silent - before - world.dead_links)
        ]


async def strange_entries(world: World, reference: Switches, dead: Set[int]) -> list[str]:
    """Return the entries by which switches differ from those of an empty fabric with the same Snapshot's rules.

    ``dead`` are the links that the controller holds to be dead.
    """
    assert world.controller is not None
    routing = world.routing.without(dead)
    decision = world.controller.planner.decision
    rules = {}
    if decision is not None:
        # Where ports steer, the Snapshot in force is that after the ports have changed.
        if world.config.steering is Steering.RULE:
            plan = best_effort_where_cut_off(
                decide(find_policy(world.config.policy), decision.snapshot), decision.snapshot
            )
        else:
            plan = decision.plan
        rules = flow_rules(plan, decision.snapshot, routing)
    for name in reference.emulated.switches:
        reference.emulated.set_switch(name, up=False)
        reference.emulated.set_switch(name, up=True)
    config = world.config
    empty = P4RuntimeSouthbound(reference.addresses, routing, config.pipeline, config.election_id)
    async with empty:
        await empty.caught_up()
        await empty.write(rules)
    held, expected = await world.switches.held(), await reference.held()
    return different_entries(held, expected)


def different_entries(held: Held, expected: Held) -> list[str]:
    """Return how many entries of each switch are unexpected, and how many are missing."""
    return [
        f"{name} holds {len(held[name] - expected[name])} entries that it should not"
        f" and lacks {len(expected[name] - held[name])}"
        for name in sorted(held.keys())
        if held[name] != expected[name]
    ]


def rules_without_jobs(world: World) -> list[str]:
    """Return flow rules on switches for 5-tuples that no registered job has."""
    assert world.controller is not None
    owned = {
        flow.five_tuple for job in world.controller.registry.jobs for group in job.flow_groups for flow in group.flows
    }
    return [
        f"{name} has a rule for {five_tuple}, which no job has"
        for name, switch in world.emulated.switches.items()
        for key, _ in switch.entries("ingress.flow")
        if (five_tuple := FiveTuple(*(field.value for field in key.match))) not in owned
    ]


def silent_agents(world: World) -> list[str]:
    """Return agents that do not run, or that the controller does not answer."""
    wrong = [f"{host} has no agent" for host in world.fabric.hosts if host not in world.agents]
    for host, agent in world.agents.items():
        if agent.status is None or agent.status.problem is not None:
            wrong.append(f"the agent of {host} is not answered: {agent.status}")
    return wrong


def other_candidates(world: World, registered: Mapping[str, RegisteredJob], now_s: float) -> list[str]:
    """Return paths whose freshness contradicts the fabric, and ports that lead elsewhere.

    Of the ports that jobs' flows have, rules may lead probes too.
    """
    assert world.controller is not None
    routing = world.routing.without(world.dead_links)
    owned = {flow.five_tuple for job in registered.values() for group in job.flow_groups for flow in group.flows}
    wrong = []
    for pair in world.controller.telemetry.pairs(now_s):
        ends = f"{pair.source.host} to {pair.destination.host}"
        alive = {one.path for one in pair.candidates if world.dead_links.isdisjoint(one.path)}
        fresh = {one.path: one.source_ports for one in pair.candidates if one.freshness is Freshness.FRESH}
        wrong += [f"{ends}: {path} is {'dead' if path in fresh else 'not seen'}" for path in alive ^ fresh.keys()]
        for path, ports in fresh.items():
            addresses = pair.source.address, pair.destination.address
            flows = [FiveTuple(*addresses, pair.protocol, port, pair.destination_port) for port in ports]
            wrong += [
                f"{flow} is believed to take {path}"
                for flow in flows
                if flow not in owned and path in alive and routing.hashed_path(flow) != path
            ]
    return wrong


def not_arrived(traffic: Traffic, routing: Routing) -> list[str]:
    """Return transfers that have not arrived although they have a path."""
    return [f"{transfer} has not arrived" for transfer in traffic.unfinished if traffic.has_path(transfer, routing)]


def decided_otherwise(database: str) -> list[str]:
    """Return the latest Plans of the record that differ when they are decided again."""

    def read(connection: Connection) -> list[str]:
        newest = newest_plan(connection)
        return (
            []
            if newest is None
            else list(text_of(record_lines(newest.number - _DECIDED_AGAIN + 1, LAST_PLAN_NUMBER, connection)))
        )

    opened = Database.open(database)
    try:
        lines = opened.read(read)
    finally:
        opened.close()
    if not lines:
        return ["no plan is in the record"]
    return [
        f"plan {replayed.recorded.number} is decided otherwise for {', '.join(replayed.differs_in)}"
        for replayed in replay(read_decisions("record", lines))
        if replayed.verdict is Verdict.DIFFERENT
    ]


@dataclass(frozen=True)
class Footprint:
    """The size of this process: Python objects, resident memory and open files."""

    num_objects: int
    resident_bytes: int
    num_files: int

    @classmethod
    def now(cls) -> "Footprint":
        """Return the size now, after garbage collection."""
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return cls(
            len(gc.get_objects()), pages * os.sysconf("SC_PAGE_SIZE"), sum(1 for _ in Path("/proc/self/fd").iterdir())
        )


def grown(footprints: Sequence[Footprint]) -> list[str]:
    """Return how this process grew from the first half of these sizes to the second; the very first is warm-up."""
    settled = footprints[1:]
    if len(settled) < _FEWEST_FOOTPRINTS:
        return []
    earlier, later = settled[: len(settled) // 2], settled[len(settled) // 2 :]
    wrong = []
    for what, limit in (("num_objects", 1.1), ("resident_bytes", 1.05), ("num_files", 1.0)):
        before, after = (median(getattr(footprint, what) for footprint in part) for part in (earlier, later))
        if after > limit * before:
            wrong.append(f"{what} has grown from {before:,.0f} to {after:,.0f}")
    return wrong
