"""How many flow mods a second a Plan becomes, from its decisions until all switches have carried them out.

For ``benchmarks/openflow.py``.
"""

import asyncio
import statistics
from random import Random
from time import perf_counter, process_time

from controller.rules.flow_rules import flow_rules
from tests.controller.southbound.openflow.planned import Decided, route
from tests.controller.southbound.openflow.switched import Programmed, add_bridges, addresses_of
from topologies.clos import ClosSpecification
from topologies.ecmp import FabricHash
from topologies.openvswitch.daemons import OpenVSwitch

CLOS = ClosSpecification(kind="clos", tors=4, aggs=4, hosts_per_tor=8, host_link_gbps=100, uplink_gbps=100)


async def plan_figures(num_flows: int, rounds: int, seed: int = 1) -> dict[str, float]:
    """Return medians of so many rounds, each with other paths for flows between the hosts of a Clos of 8 switches.

    Rules are made of a Plan, and entries of rules; the southbound finds the difference from what switches hold, encodes
    and writes it, and waits until every switch has carried it out. Before each round the switches have no rules.

    Raises:
        NetworkError: Open vSwitch is not installed, or does not start.
    """
    routing = route(CLOS.build())
    switches = routing.fabric.switches
    random = Random(seed)
    rates, costs_us = [], []
    with OpenVSwitch(has_dummies=True) as openvswitch:
        await asyncio.to_thread(add_bridges, openvswitch, routing.fabric)
        programmed = Programmed(routing, addresses_of(switches))
        async with programmed.running(openvswitch, switches) as southbound:
            await southbound.caught_up()
            for _ in range(rounds):
                decided = Decided(routing, random, num_flows)
                await southbound.write({})
                num_before, began_s, cpu_began_s = programmed.num_written, perf_counter(), process_time()
                await southbound.write(flow_rules(decided.plan, decided.snapshot, routing, FabricHash.UNKNOWN))
                num_written = programmed.num_written - num_before
                rates.append(num_written / (perf_counter() - began_s))
                costs_us.append(1e6 * (process_time() - cpu_began_s) / num_written)
    return {
        "flow_mods_end_to_end_per_s": round(statistics.median(rates)),
        "flow_mod_end_to_end_cpu_us": round(statistics.median(costs_us), 1),
    }
