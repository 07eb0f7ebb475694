"""Measures how soon flows move after a link failure, in virtual time, for ``benchmarks/telemetry.py``.

The flows of Figure 19's mix (n = 4) run on the testbed Clos under Crux. Every cable between two switches fails, one
after the other, under several hash seeds. A flow is affected where the dead cable carried it or its acknowledgements.

- By gNMI: switches report dead ports to the controller, which acts ``reaction_delay_s`` (its default) after the
  failure. All affected flows are under way when the cable dies. A flow moves again in the first millisecond in which
  everything that was in flight, and something sent later, is acknowledged. Its path works again in the first
  millisecond in which a test packet arrives, and one in the other direction.
- By probe loss alone, on a few cables: hosts probe, and the controller reads no ports. It plans ``reaction_delay_s``
  after reports that make a link silent. No flow is under way; the figure is when paths work again, to a hundredth of a
  second.
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
    """A failure: the flows that it affected, those whose path never worked again, and the controller's times.

    ``rerouted_s`` is when the last path worked again, ``moved_s`` when the last flow moved (0: none was under way).
    """

    affected: int
    unmoved: int
    rerouted_s: float
    moved_s: float
    withdrawal_s: float
    replanning_s: float


def switch_cables(routing: Routing) -> list[int]:
    """Return the cables between two switches."""
    fabric = routing.fabric
    return [number for number, cable in enumerate(fabric.cables) if fabric.switch_index.keys() >= set(cable.ends)]


def affected_flows(fabric: ControlledFabric, cable: int) -> list[FiveTuple]:
    """Return the flows that a cable carries, or whose acknowledgements it carries."""
    found = []
    for flow in fabric.flows:
        paths = fabric.path(flow) + fabric.routing.hashed_path(backwards(flow.five_tuple))
        if not {2 * cable, 2 * cable + 1}.isdisjoint(paths):
            found.append(flow.five_tuple)
    return found


def backwards(five_tuple: FiveTuple) -> FiveTuple:
    """Return the 5-tuple of a flow's acknowledgements."""
    return FiveTuple(
        five_tuple.destination_address,
        five_tuple.source_address,
        five_tuple.protocol,
        five_tuple.destination_port,
        five_tuple.source_port,
    )


class Waiting(ABC):
    """Affected flows that wait for something, from the creation of this object on."""

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
        """How long the last flow that no longer waits has waited."""
        return self._last_s - self._since_s

    @property
    def is_given_up(self) -> bool:
        """Whether they have waited for too long."""
        return self._fabric.now_s > self._since_s + PATIENCE_S

    def check(self) -> None:
        """Check which flows no longer wait."""
        now_s = self._fabric.now_s
        if done := self._done():
            self._flows = [flow for flow in self._flows if flow not in done]
            self._last_s = now_s

    @abstractmethod
    def _done(self) -> set[FiveTuple]:
        """Return the waiting flows that have what they wait for."""


class WaitingToMove(Waiting):
    """Flows under way that wait until everything in flight, and something newer, has arrived."""

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


class WaitingForPaths(Waiting):
    """Flows that wait until their test packets arrive, in both directions."""

    def _done(self) -> set[FiveTuple]:
        backs = {flow: backwards(flow) for flow in self._flows}
        carried = self._fabric.carried((*backs, *backs.values()))
        return {flow for flow, back in backs.items() if flow in carried and back in carried}


async def fail_by_gnmi(fabric: ControlledFabric, cable: int, reaction_s: float) -> Failover:
    """Take a cable down until its flows have moved, then bring it up."""
    affected = affected_flows(fabric, cable)
    flows = WaitingToMove(fabric, affected)
    paths = WaitingForPaths(fabric, affected)
    failed_s = fabric.now_s
    fabric.set_cable(cable, up=False)
    for step in range(round(reaction_s / STEP_S)):
        fabric.wait(failed_s + step * STEP_S)
        flows.check()
        paths.check()
    fabric.wait(failed_s + reaction_s)
    await fabric.report_ports()
    start_s = time.perf_counter()
    await fabric.leave_dead_links()
    withdrawal_s = time.perf_counter() - start_s
    await fabric.settle()
    replanning_s = time.perf_counter() - start_s
    while paths.count or flows.count:
        if paths.is_given_up:
            raise RuntimeError(f"{paths.count} paths and {flows.count} flows are stuck for {PATIENCE_S} s")
        flows.check()
        paths.check()
        fabric.wait(fabric.soon_s(STEP_S))
    fabric.set_cable(cable, up=True)
    await fabric.report_ports()
    await fabric.settle()
    fabric.wait(fabric.soon_s(REST_S))
    return Failover(len(affected), 0, paths.took_s, flows.took_s, withdrawal_s, replanning_s)


class ProbedFailures:
    """Failures without port reports: hosts probe, and their reports make the controller plan."""

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
        """Whether all paths are known and no planning is due."""
        pairs = self._telemetry.pairs(self._fabric.now_s)
        return self._acts_s == math.inf and len(pairs) > 0 and all(pair.is_complete for pair in pairs)

    async def fail(self, cable: int, settling_s: float) -> Failover:
        """Take a cable down until its flows have moved, once all paths are known and each port was probed again."""
        fabric = self._fabric
        while not self._is_ready:
            await self._wait(fabric.soon_s(10 * PROBED_STEP_S))
        await self._wait(fabric.soon_s(settling_s))
        affected = affected_flows(fabric, cable)
        paths = WaitingForPaths(fabric, affected)
        fabric.set_cable(cable, up=False)
        planning_s = 0.0
        while paths.count and not paths.is_given_up:
            paths.check()
            next_check_s = fabric.soon_s(PROBED_STEP_S)
            while fabric.now_s < next_check_s:
                planning_s = max(planning_s, await self._step(next_check_s))
        return Failover(len(affected), paths.count, paths.took_s, 0.0, 0.0, planning_s)

    async def _wait(self, until_s: float) -> None:
        while self._fabric.now_s < until_s:
            await self._step(until_s)

    async def _step(self, until_s: float) -> float:
        """Let the agents and the controller act, and time pass; return how long the controller planned."""
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
    """Fail every cable between two switches once under every seed."""
    found = []
    for seed in seeds:
        async with controlled(scenario, "crux", seed) as fabric:
            for cable in switch_cables(fabric.routing):
                found.append(await fail_by_gnmi(fabric, cable, scenario.reaction_delay_s))
    return found


async def by_probes(scenario: Scenario, seed: int) -> list[Failover]:
    """Fail a few cables that carry a flow, each in a new fabric: the controller uses a failed link again only later."""
    found = []
    for number in range(PROBED_CABLES):
        async with controlled(scenario, "crux", seed) as fabric:
            used = [cable for cable in switch_cables(fabric.routing) if affected_flows(fabric, cable)]
            cable = random.Random(seed).sample(used, PROBED_CABLES)[number]
            # Each failure comes at another moment of the second in which hosts probe all ports once.
            settling_s = PROBED_SETTLING_S + number / PROBED_CABLES
            found.append(await ProbedFailures(fabric, scenario.reaction_delay_s).fail(cable, settling_s))
    return found


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that this share of the values does not exceed."""
    return sorted(values)[math.ceil(share * len(values)) - 1]


def figures(seeds: Sequence[int]) -> dict[str, object]:
    """Measure failover both by gNMI and by probes."""
    scenario = load_scenario(SCENARIO)
    by_ports = [failover for failover in asyncio.run(by_gnmi(scenario, seeds)) if failover.affected]
    probed = asyncio.run(by_probes(scenario, seeds[0]))
    return {
        "failover_p99_s": round(percentile([failover.moved_s for failover in by_ports], 0.99), 4),
        "failover_median_s": round(percentile([failover.moved_s for failover in by_ports], 0.5), 4),
        "rerouting_p99_s": round(percentile([failover.rerouted_s for failover in by_ports], 0.99), 4),
        "rerouting_median_s": round(percentile([failover.rerouted_s for failover in by_ports], 0.5), 4),
        "failures": len(by_ports),
        "affected_flows": sum(failover.affected for failover in by_ports),
        "probed_failover_p99_s": round(percentile([failover.rerouted_s for failover in probed], 0.99), 3),
        "probed_failover_median_s": round(percentile([failover.rerouted_s for failover in probed], 0.5), 3),
        "probed_failures": len(probed),
        "probed_affected_flows": sum(failover.affected for failover in probed),
        "probed_unmoved_flows": sum(failover.unmoved for failover in probed),
        "withdrawal_p99_wall_s": round(percentile([failover.withdrawal_s for failover in by_ports], 0.99), 4),
        "replanning_p99_wall_s": round(percentile([failover.replanning_s for failover in by_ports], 0.99), 4),
    }
