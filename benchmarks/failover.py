"""How soon flows move when a link fails, in virtual time: for ``benchmarks/telemetry.py``.

The flows of Figure 19's mix (n = 4) on the testbed Clos under Crux, one failure after the other: every cable between
two switches, under several hash seeds. A flow is affected where the dead cable carried it or its acknowledgements.

- By gNMI: the controller hears of dead ports, and acts ``reaction_delay_s`` (its default) after the failure. All
  affected flows are under way when the cable dies. A flow moves again at the first millisecond at which all that it had
  in flight then is acknowledged, and something that was sent later; its way is there again at the first one at which a
  test packet that is sent then arrives, and one back.
- By probe loss alone, on a few cables: hosts probe, ports are not read; the controller plans ``reaction_delay_s`` after
  hosts have told it what makes a link silent. No flow is under way; looked for is when ways are there again, to a
  hundredth of a second.
"""

import asyncio
import math
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.controlled_fabric import ControlledFabric, controlled
from controller.api.messages import probe_answer, probe_exchange
from controller.planning.decision import Decision
from experiments.scenarios.probing import Probing, agents_of
from hostlib.telemetry.messages import answer_from_wire, exchange_to_wire
from topologies.addressing import FiveTuple
from topologies.routing import Routing
from workloads.loading import load_scenario
from workloads.scenario import Scenario

SCENARIO = Path(__file__).resolve().parent.parent / "workloads" / "scenarios" / "fig19-n4.yaml"
STEP_S = 0.001
PATIENCE_S = 30.0
TRANSFER_BYTES = 25_000_000
UNDER_WAY_S = 0.001  # of the two milliseconds that such a transfer takes alone
REST_S = 0.05  # until what is left of all transfers has arrived
PROBED_STEP_S = 0.01
PROBED_CABLES = 6
PROBED_SETTLING_S = 1.5


@dataclass(frozen=True, slots=True)
class Failover:
    """A failure: flows that it affected, those whose way was never there again, and how long was worked for it.

    ``rerouted_s`` is when the last way was there again, ``moved_s`` when the last flow moved (0: none was under way).
    """

    affected: int
    unmoved: int
    rerouted_s: float
    moved_s: float
    withdrawal_s: float
    replanning_s: float


def switch_cables(routing: Routing) -> list[int]:
    """The cables between two switches."""
    fabric = routing.fabric
    return [number for number, cable in enumerate(fabric.cables) if fabric.switch_index.keys() >= set(cable.ends)]


def affected_flows(fabric: ControlledFabric, cable: int) -> list[FiveTuple]:
    """Flows that a cable carries, or whose acknowledgements it does."""
    found = []
    for flow in fabric.flows:
        ways = fabric.path(flow) + fabric.routing.hashed_path(backwards(flow.five_tuple))
        if not {2 * cable, 2 * cable + 1}.isdisjoint(ways):
            found.append(flow.five_tuple)
    return found


def backwards(five_tuple: FiveTuple) -> FiveTuple:
    """The 5-tuple of a flow's acknowledgements."""
    return FiveTuple(
        five_tuple.destination_address,
        five_tuple.source_address,
        five_tuple.protocol,
        five_tuple.destination_port,
        five_tuple.source_port,
    )


class Waiting(ABC):
    """Affected flows that wait for something since the moment at which this is made."""

    def __init__(self, fabric: ControlledFabric, flows: Iterable[FiveTuple]) -> None:
        self._fabric = fabric
        self._flows = list(flows)
        self._since_s = self._last_s = fabric.now_s

    @property
    def count(self) -> int:
        """How many still wait."""
        return len(self._flows)

    @property
    def took_s(self) -> float:
        """How long the last one that no longer waits did."""
        return self._last_s - self._since_s

    @property
    def is_given_up(self) -> bool:
        """Whether they have waited for too long."""
        return self._fabric.now_s > self._since_s + PATIENCE_S

    def look(self) -> None:
        """See which wait no longer."""
        now_s = self._fabric.now_s
        if done := self._done():
            self._flows = [flow for flow in self._flows if flow not in done]
            self._last_s = now_s

    @abstractmethod
    def _done(self) -> set[FiveTuple]:
        """Those of the waiting flows that have what they wait for."""


class WaitingToMove(Waiting):
    """They are under way, and wait until all that they have in flight has arrived, and something newer."""

    def __init__(self, fabric: ControlledFabric, flows: Sequence[FiveTuple]) -> None:
        self._senders = {five_tuple: fabric.sender(five_tuple) for five_tuple in flows}
        for sender in self._senders.values():
            fabric.emulated.start_transfer(sender, TRANSFER_BYTES)
        fabric.wait(fabric.soon_s(UNDER_WAY_S))
        self._sent = {flow: fabric.emulated.progress(sender).sent for flow, sender in self._senders.items()}
        super().__init__(fabric, flows)

    def _done(self) -> set[FiveTuple]:
        progress = self._fabric.emulated.progress
        return {flow for flow in self._flows if progress(self._senders[flow]).acknowledged > self._sent[flow]}


class WaitingForWays(Waiting):
    """They wait until test packets of theirs arrive, and those of their acknowledgements."""

    def _done(self) -> set[FiveTuple]:
        backs = {flow: backwards(flow) for flow in self._flows}
        carried = self._fabric.carried((*backs, *backs.values()))
        return {flow for flow, back in backs.items() if flow in carried and back in carried}


async def fail_by_gnmi(fabric: ControlledFabric, cable: int, reaction_s: float) -> Failover:
    """Take a cable down until its flows have moved, then bring it back."""
    affected = affected_flows(fabric, cable)
    flows = WaitingToMove(fabric, affected)
    ways = WaitingForWays(fabric, affected)
    failed_s = fabric.now_s
    fabric.set_cable(cable, up=False)
    for step in range(round(reaction_s / STEP_S)):
        fabric.wait(failed_s + step * STEP_S)
        flows.look()
        ways.look()
    fabric.wait(failed_s + reaction_s)
    await fabric.hear_ports()
    start_s = time.perf_counter()
    await fabric.leave_dead_links()
    withdrawal_s = time.perf_counter() - start_s
    await fabric.settle()
    replanning_s = time.perf_counter() - start_s
    while ways.count or flows.count:
        if ways.is_given_up:
            raise RuntimeError(f"{ways.count} ways and {flows.count} flows are stuck for {PATIENCE_S} s")
        flows.look()
        ways.look()
        fabric.wait(fabric.soon_s(STEP_S))
    fabric.set_cable(cable, up=True)
    await fabric.hear_ports()
    await fabric.settle()
    fabric.wait(fabric.soon_s(REST_S))
    return Failover(len(affected), 0, ways.took_s, flows.took_s, withdrawal_s, replanning_s)


class ProbedFailures:
    """The same without port states: hosts probe, and what they tell has the controller plan."""

    def __init__(self, fabric: ControlledFabric, reaction_s: float) -> None:
        self._fabric = fabric
        self._reaction_s = reaction_s
        self._probing = Probing(fabric.emulated, agents_of(fabric.emulated.fabric))
        fabric.take = self._probing.take
        self._telemetry = fabric.controller.telemetry
        self._watched: Decision | None = None
        self._acts_s = math.inf

    @property
    def _is_ready(self) -> bool:
        """Whether all paths are known, and nothing is to be planned."""
        pairs = self._telemetry.pairs(self._fabric.now_s)
        return self._acts_s == math.inf and len(pairs) > 0 and all(pair.is_complete for pair in pairs)

    async def fail(self, cable: int, settling_s: float) -> Failover:
        """Take a cable down until its flows have moved, once all paths are known and each port was probed again."""
        fabric = self._fabric
        while not self._is_ready:
            await self._wait(fabric.soon_s(10 * PROBED_STEP_S))
        await self._wait(fabric.soon_s(settling_s))
        affected = affected_flows(fabric, cable)
        ways = WaitingForWays(fabric, affected)
        fabric.set_cable(cable, up=False)
        planning_s = 0.0
        while ways.count and not ways.is_given_up:
            ways.look()
            next_look_s = fabric.soon_s(PROBED_STEP_S)
            while fabric.now_s < next_look_s:
                planning_s = max(planning_s, await self._turn(next_look_s))
        return Failover(len(affected), ways.count, ways.took_s, 0.0, 0.0, planning_s)

    async def _wait(self, until_s: float) -> None:
        while self._fabric.now_s < until_s:
            await self._turn(until_s)

    async def _turn(self, until_s: float) -> float:
        """Let the agents and the controller have theirs, and time pass; returns how long the latter planned."""
        fabric, telemetry = self._fabric, self._telemetry
        decision = fabric.controller.planner.decision
        if decision is not self._watched:
            telemetry.set_probe_targets(flow.five_tuple for flow in fabric.flows)
            self._watched = decision
        version = telemetry.version
        for agent, exchange in self._probing.exchanges():
            request = exchange_to_wire(exchange, "token")
            telemetry.reporters.authorise(agent.host, request.owner_token, fabric.now_s)
            answer = probe_answer(telemetry.exchange(probe_exchange(request), fabric.now_s))
            agent.answered(answer_from_wire(answer), fabric.now_s)
        if telemetry.version != version:
            fabric.controller.planner.links.set_silent_links(telemetry.silent_links, fabric.now_s)
            self._acts_s = min(self._acts_s, fabric.soon_s(self._reaction_s))
        planning_s = 0.0
        if fabric.now_s >= self._acts_s:
            self._acts_s = math.inf
            start_s = time.perf_counter()
            fabric.controller.planner.mark_changed()
            await fabric.settle()
            planning_s = time.perf_counter() - start_s
        self._probing.send()
        fabric.wait(min(self._probing.next_round_s, self._acts_s, until_s))
        self._probing.receive()
        return planning_s


async def by_gnmi(scenario: Scenario, seeds: Sequence[int]) -> list[Failover]:
    """Every cable between two switches fails once under every seed."""
    found = []
    for seed in seeds:
        async with controlled(scenario, "crux", seed) as fabric:
            for cable in switch_cables(fabric.routing):
                found.append(await fail_by_gnmi(fabric, cable, scenario.reaction_delay_s))
    return found


async def by_probes(scenario: Scenario, seed: int) -> list[Failover]:
    """A few cables that carry a flow fail, each of a fabric of its own: one is tried again only after a while."""
    found = []
    for number in range(PROBED_CABLES):
        async with controlled(scenario, "crux", seed) as fabric:
            used = [cable for cable in switch_cables(fabric.routing) if affected_flows(fabric, cable)]
            cable = random.Random(seed).sample(used, PROBED_CABLES)[number]
            # At another moment of the second in which hosts probe all ports once.
            settling_s = PROBED_SETTLING_S + number / PROBED_CABLES
            found.append(await ProbedFailures(fabric, scenario.reaction_delay_s).fail(cable, settling_s))
    return found


def percentile(values: Sequence[float], share: float) -> float:
    """The least of the values that so large a share of them does not exceed."""
    return sorted(values)[math.ceil(share * len(values)) - 1]


def figures(seeds: Sequence[int]) -> dict[str, object]:
    """Both measured."""
    scenario = load_scenario(SCENARIO)
    told = [failover for failover in asyncio.run(by_gnmi(scenario, seeds)) if failover.affected]
    probed = asyncio.run(by_probes(scenario, seeds[0]))
    return {
        "failover_p99_s": round(percentile([failover.moved_s for failover in told], 0.99), 4),
        "failover_median_s": round(percentile([failover.moved_s for failover in told], 0.5), 4),
        "rerouting_p99_s": round(percentile([failover.rerouted_s for failover in told], 0.99), 4),
        "rerouting_median_s": round(percentile([failover.rerouted_s for failover in told], 0.5), 4),
        "failures": len(told),
        "affected_flows": sum(failover.affected for failover in told),
        "probed_failover_p99_s": round(percentile([failover.rerouted_s for failover in probed], 0.99), 3),
        "probed_failover_median_s": round(percentile([failover.rerouted_s for failover in probed], 0.5), 3),
        "probed_failures": len(probed),
        "probed_affected_flows": sum(failover.affected for failover in probed),
        "probed_unmoved_flows": sum(failover.unmoved for failover in probed),
        "withdrawal_p99_wall_s": round(percentile([failover.withdrawal_s for failover in told], 0.99), 4),
        "replanning_p99_wall_s": round(percentile([failover.replanning_s for failover in told], 0.99), 4),
    }
