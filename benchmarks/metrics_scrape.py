"""What Prometheus costs a controller: ``python benchmarks/metrics_scrape.py [--jobs 200] [--tors 40] [--scrapes 20]``.

Jobs with a flow each are planned on a fabric whose switches merely remember their rules, and all metrics are made again
and again, as for Prometheus. For each case:

- ``on_loop_ms``: reading the states, in which nobody else is answered; the median and the longest.
- ``cpu_ms``: processor time of a scrape, without HTTP and TLS; the median.
- ``core_share``: that, every 15 seconds.
- ``answer_bytes``: the length of the answer.
"""

import argparse
import asyncio
import statistics
import sys
from functools import partial
from pathlib import Path
from time import perf_counter, process_time

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from prometheus_client.openmetrics.exposition import generate_latest

from benchmarks.provenance import print_figures, provenance
from controller.clock import WallClock
from controller.config import ControllerConfig
from controller.process.core import ControllerCore
from controller.registry.requests import FlowGroupRequest, FlowRequest, JobRequest, NicReference
from controller.southbound.counting import count_write
from controller.southbound.recording import RecordingSouthbound
from controller.southbound.write_outcomes import SwitchWrite, WriteOutcome
from controller.switch_addresses import SwitchAddress
from controller.web.metric_states import StateCounter, read_states
from controller.web.metrics import Scrape
from policies.job import Profile
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from topologies.specification import ClosSpecification

_EVERY_S = 15.0
_AGGS, _HOSTS_PER_TOR = 10, 2


async def planned(num_tors: int, num_jobs: int) -> ControllerCore:
    """A controller with a Plan for so many jobs."""
    topology = ClosSpecification(
        kind="clos", tors=num_tors, aggs=_AGGS, hosts_per_tor=_HOSTS_PER_TOR, host_link_gbps=100, uplink_gbps=100
    )
    fabric = topology.build()
    switches = tuple(SwitchAddress(name=name, address="127.0.0.1:1") for name in fabric.switches)
    config = ControllerConfig(topology=topology, switches=switches, policy="ecmp")
    routing = Routing(fabric, hash_multipliers(fabric.switches, config.hash_seed))
    core = ControllerCore(config, routing, RecordingSouthbound(fabric.switches), WallClock())
    for number in range(num_jobs):
        ends = [fabric.hosts[(number + step) % len(fabric.hosts)] for step in (0, _HOSTS_PER_TOR)]
        name, (source, destination) = f"job-{number}", (NicReference(host, 0) for host in ends)
        core.registry.register_job(JobRequest(name, tuple(ends), 1, Profile(1.0, 0.5, 1.0)), WallClock().now_s())
        flows = (FlowRequest(source, destination, 1_000_000, 0.0),)
        core.registry.register_flow_groups(name, [FlowGroupRequest("ring", flows)])
    for switch in fabric.switches:
        count_write(SwitchWrite(switch, 1, 1, 1, WriteOutcome.ACKNOWLEDGED))
    core.planner.mark_changed()
    await core.planner.settle()
    return core


async def figures(num_tors: int, num_jobs: int, num_scrapes: int) -> dict[str, float]:
    """Return the figures of a case."""
    core = await planned(num_tors, num_jobs)
    counter, on_loop_s, cpu_s, body = StateCounter(), list[float](), list[float](), b""
    for _ in range(num_scrapes):
        start_s, cpu_start_s = perf_counter(), process_time()
        states = read_states(core.context)
        on_loop_s.append(perf_counter() - start_s)
        body = await asyncio.to_thread(partial(generate_latest, Scrape(counter, states)))
        cpu_s.append(process_time() - cpu_start_s)
    return {
        "switches": len(core.registry.fabric.switches),
        "links": len(core.registry.fabric.links),
        "jobs": num_jobs,
        "on_loop_ms": round(statistics.median(on_loop_s) * 1e3, 2),
        "longest_on_loop_ms": round(max(on_loop_s) * 1e3, 2),
        "cpu_ms": round(statistics.median(cpu_s) * 1e3, 1),
        "core_share": round(statistics.median(cpu_s) / _EVERY_S, 5),
        "answer_bytes": len(body),
    }


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--tors", type=int, default=40)
    parser.add_argument("--scrapes", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = asyncio.run(figures(options.tors, options.jobs, options.scrapes))
    print_figures({**found, **provenance(("prometheus-client",))}, as_json=options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
