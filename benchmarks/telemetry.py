"""Measures probing: ``python benchmarks/telemetry.py [--json]``.

The fabric is the paper's testbed Clos, unscaled and otherwise idle, in virtual time. Every NIC has a flow to the NIC of
the same number of every other host: 1,056 pairs with 32 candidate paths each, except under the same ToR.

- ``table_complete_s``: the time until all candidate paths of all pairs are known;
- ``probe_share``: over the second after, the share of its rate that the fullest link spends on probes, plus the share
  that the busiest host's NICs spend on messages with the controller; ``start_share``: the mean share until the table is
  complete;
- ``reports_per_s``: how many reports a fresh controller processes in a second of processor time, from the bytes of
  requests to those of responses; the median of three; ``reports_per_s_by_grpc``: the same for the whole process of a
  server (``benchmarks/exchanges.py``);
- ``period_error``: the largest relative error of the mean period of 30 iterations found from a counter, over workloads
  and seeds (``benchmarks/period_error.py``);
- ``failover_p99_s``: the time from the failure of a link until the last affected flow moves again, with the figures of
  ``benchmarks/failover.py``.
"""

import argparse
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import failover
from benchmarks.exchanges import Exchanges, reports_per_s, reports_per_s_by_grpc
from benchmarks.period_error import period_errors
from benchmarks.provenance import print_figures, provenance
from controller.api.messages import probe_answer, probe_exchange
from controller.process.latency import tune_for_latency
from controller.telemetry.telemetry import Telemetry
from emulator.base_entries import install_routing
from emulator.compiler.program import compile_program
from emulator.entries import ActionCall
from emulator.fabric import PS_PER_S, EmulatedFabric
from experiments.scenarios.probing import Probing, agents_of
from hostlib.telemetry.messages import answer_from_wire, exchange_to_wire
from p4src import PROGRAM
from topologies.addressing import FIRST_SOURCE_PORT, FLOW_DESTINATION_PORT, UDP_PROTOCOL, FiveTuple
from topologies.ecmp import hash_multipliers
from topologies.fabric import Fabric
from topologies.routing import Routing
from topologies.specification import ClosSpecification

SEED = 1
FAILOVER_SEEDS = (1, 2, 3)
LEASE_S = 30.0
TICK_S = 0.002
SETTLING_S = 0.3
STEADY_S = 1.0
CALL_BYTES = 500
"""An upper bound for the bytes of gRPC, TCP and IP in a call and its response, besides the messages."""

TESTBED = ClosSpecification(
    kind="clos",
    tors=6,
    aggs=8,
    hosts_per_tor=2,
    nics_per_host=8,
    host_link_gbps=800,
    uplink_gbps=100,
    uplinks_per_pair=2,
)


def flows_of(fabric: Fabric) -> list[FiveTuple]:
    """Return a flow from every NIC to the NIC of the same number of every other host."""
    return [
        FiveTuple(one.address, other.address, UDP_PROTOCOL, FIRST_SOURCE_PORT, FLOW_DESTINATION_PORT)
        for source in fabric.hosts
        for destination in fabric.hosts
        if source != destination
        for one, other in zip(fabric.nics[source], fabric.nics[destination], strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Traffic:
    """The bytes that links have sent, and that hosts and controller have exchanged, up to a time."""

    time_s: float
    sent_bytes: NDArray[np.int64]
    exchanged_bytes: dict[str, int]


class Probed:
    """The testbed with agents on its hosts, and the telemetry that they report to."""

    def __init__(self, routing: Routing) -> None:
        self.fabric = routing.fabric
        self.emulated = EmulatedFabric(self.fabric, compile_program(PROGRAM.read_text()))
        install_routing(self.emulated, routing)
        for name, identity in self.fabric.identity.items():
            switch = self.emulated.switches[name]
            switch.set_default("egress.node_id", ActionCall("egress.set_node_id", (identity.node_id,)))
        self.telemetry = Telemetry(routing, LEASE_S)
        self.telemetry.set_probe_targets(flows_of(self.fabric))
        self.exchanges: Exchanges = []
        self.exchanged_bytes = dict.fromkeys(self.fabric.hosts, 0)
        self._probing = Probing(self.emulated, agents_of(self.fabric))
        self._tick = 0

    @property
    def now_s(self) -> float:
        """Virtual time."""
        return self.emulated.now_ps / PS_PER_S

    def run(self, until_s: float) -> None:
        """Advance time."""
        while self.now_s < until_s:
            self._tick += 1
            self.emulated.run(round(self._tick * TICK_S * PS_PER_S))
            self._probing.receive()
            now_s = self.now_s
            for host, agent in self._probing.agents.items():
                exchange = agent.exchange(now_s)
                if exchange is not None:
                    request = exchange_to_wire(exchange, "token")
                    self.exchanges.append((now_s, request.SerializeToString()))
                    self.telemetry.reporters.authorise(host, request.owner_token, now_s)
                    answer = probe_answer(self.telemetry.exchange(probe_exchange(request), now_s))
                    self.exchanged_bytes[host] += len(self.exchanges[-1][1]) + answer.ByteSize() + CALL_BYTES
                    agent.answered(answer_from_wire(answer), now_s)
            self._probing.send()

    def run_until_complete(self) -> float:
        """Advance time until every candidate path is known; return when that was."""
        while not all(pair.is_complete for pair in self.telemetry.pairs(self.now_s)):
            self.run(self.now_s + 0.01)
        return self.now_s

    def traffic(self) -> Traffic:
        """Return the traffic up to now."""
        return Traffic(self.now_s, self.emulated.sent_bytes().sum(axis=1), dict(self.exchanged_bytes))

    def share_since(self, before: Traffic) -> float:
        """Return the share that the fullest link spent on probes since, plus that of the busiest host on messages."""
        taken_s = self.now_s - before.time_s
        sent_bytes = self.emulated.sent_bytes().sum(axis=1) - before.sent_bytes
        probes = max(8 * sent_bytes[link.index] / (link.rate_bps * taken_s) for link in self.fabric.links)
        messages = max(
            8 * (self.exchanged_bytes[host] - before.exchanged_bytes[host]) / (self._rate_bps(host) * taken_s)
            for host in self.fabric.hosts
        )
        return float(probes) + messages

    def _rate_bps(self, host: str) -> float:
        return sum(self.fabric.links[nic.link].rate_bps for nic in self.fabric.nics[host])


def fresh_telemetry(routing: Routing) -> Telemetry:
    """Return the telemetry of a controller that has just started and has the same flows."""
    telemetry = Telemetry(routing, LEASE_S)
    telemetry.set_probe_targets(flows_of(routing.fabric))
    return telemetry


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    fabric = TESTBED.build()
    routing = Routing(fabric, hash_multipliers(fabric.switches, SEED))
    probed = Probed(routing)
    start = probed.traffic()
    table_complete_s = probed.run_until_complete()
    start_share = probed.share_since(start)
    probed.run(probed.now_s + SETTLING_S)
    steady = probed.traffic()
    probed.run(probed.now_s + STEADY_S)
    probe_share = probed.share_since(steady)
    tune_for_latency()  # as the controller's process does
    speeds = [reports_per_s(fresh_telemetry(routing), probed.exchanges) for _ in range(3)]
    by_grpc = [reports_per_s_by_grpc(fresh_telemetry(routing), probed.exchanges) for _ in range(3)]
    figures = {
        "table_complete_s": round(table_complete_s, 3),
        "probe_share": round(probe_share, 7),
        "start_share": round(start_share, 6),
        "reports_per_s": round(statistics.median(speeds)),
        "reports_per_s_runs": [round(speed) for speed in speeds],
        "reports_per_s_by_grpc": round(statistics.median(by_grpc)),
        "reports": sum(pair.received for pair in probed.telemetry.pairs(probed.now_s)),
        "period_error": round(max(max(errors) for errors in period_errors().values()), 4),
        **failover.figures(FAILOVER_SEEDS),
        "seed": SEED,
        **provenance(("finsy", "grpcio", "numba", "numpy", "protobuf")),
    }
    print_figures(figures, as_json=arguments.json)


if __name__ == "__main__":
    main()
