"""Measures what the page costs a controller: ``python benchmarks/page.py [--json] [options]``.

A controller of 32 switches and 1,024 cables has 200 jobs with 50 flows each. Five times a second, all links have other
loads, and a fifth of the jobs begin an iteration; every few seconds a new Plan is made. The controller, without
processes of switches, has one core for itself; browsers are a process on the other. Periods without and with browsers
follow one another in pairs, so that what else the machine does falls on both.

- ``page_cpu_share``: the processor time that one browser costs, as a share of a core: the median over the pairs.
- ``pages_cpu_share``: the same for ``--clients`` browsers; ``stuck_cpu_share``: for as many that never read.
- ``without_cpu_share``: what the controller takes while nobody looks.
- ``messages_per_s`` and ``bytes_per_s``: what a browser gets.
- ``loop_stall_max_s``: the worst delay of a timer of 10 ms in the event loop; ``loop_stall_without_s``: that while
  nobody looks, with the same changes; ``machine_stall_max_s``: that of an idle process on the same core.
"""

import argparse
import asyncio
import os
import random
import statistics
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.budgets import Budget, budget_rows, print_budget_rows
from benchmarks.pinned_controller import CLIENT_CORE, CONTROLLER_CORE, idle_timer_worst_s, started_on
from benchmarks.provenance import print_figures, provenance
from controller.access.authenticator import Anybody
from controller.clock import WallClock
from controller.config import ControllerConfig
from controller.events import RecentEvents
from controller.process.core import ControllerCore
from controller.process.latency import tune_for_latency
from controller.registry.requests import FlowGroupRequest, FlowRequest, InstanceRequest, JobRequest, NicReference
from controller.southbound.recording import RecordingSouthbound
from controller.switch_addresses import SwitchAddress
from controller.telemetry.int_reports import HopSamples
from controller.watchdog import Watchdog
from controller.web.application import application
from controller.web.page.routes import page_routes
from controller.web.presence import Presence
from controller.web.server import serving
from hostlib.wire.int_md import UTILISATION_WINDOW_US
from policies.job import Profile
from topologies.ecmp import hash_multipliers
from topologies.routing import Routing
from topologies.specification import ClosSpecification

SEED = 1
CLOS = ClosSpecification(
    kind="clos",
    tors=16,
    aggs=16,
    hosts_per_tor=4,
    nics_per_host=8,
    host_link_gbps=800,
    uplink_gbps=100,
    uplinks_per_pair=2,
)
JOBS, GROUPS_PER_JOB, HOSTS_PER_JOB = 200, 50, 4
CHANGES_PER_S = 5.0
PLAN_EVERY_S = 4.0
BUDGETS = (Budget("page_cpu_share", 0.10, is_least=False),)
_SETTLING_S = 3.0

_BROWSERS = """
import socket, sys, time
host, port, clients, reads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "reads"
connections = []
for _ in range(clients):
    connection = socket.create_connection((host, port))
    if not reads:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.sendall(b"GET /page/events HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
    connections.append(connection)
import selectors
selector = selectors.DefaultSelector()
for connection in connections:
    selector.register(connection, selectors.EVENT_READ)
octets = messages = 0
print("open", flush=True)
sys.stdin = open(0, closefd=False)
selector.register(0, selectors.EVENT_READ)
while True:
    for key, _ in selector.select() if reads else [(None, None)]:
        if not reads:
            sys.stdin.readline()
            sys.exit()
        if key.fd == 0:
            print(octets, messages, flush=True)
            sys.exit()
        part = key.fileobj.recv(1 << 20)
        octets += len(part)
        messages += part.count(b"event: state")
"""


class Changes:
    """What changes in a controller by itself: loads of links, iterations of jobs, and Plans."""

    def __init__(self, core: ControllerCore) -> None:
        self._core = core
        self._chance = np.random.default_rng(SEED)
        self._fabric = core.registry.fabric
        self._iteration = 0

    def change(self) -> None:
        """Change the loads of all links, and begin an iteration of a fifth of the jobs."""
        now_s, links = self._core.context.clock.now_s(), np.arange(len(self._fabric.links))
        rates = np.array([link.rate_bps for link in self._fabric.links])
        window_bytes = self._chance.uniform(0, 1, len(links)) * rates / 8 * UTILISATION_WINDOW_US / 1e6
        unknown = np.full(len(links), -1)
        samples = HopSamples(
            links=links,
            came_s=np.full(len(links), now_s),
            level=unknown,
            latency_us=unknown,
            queue_packets=unknown,
            window_bytes=window_bytes.astype(np.int64),
        )
        self._core.telemetry.links.record(samples, "h0")
        self._iteration += 1
        for number in range(self._iteration % 5, JOBS, 5):
            instances = {"group-0": InstanceRequest(self._iteration, has_ended=False)}
            self._core.registry.update_instances(f"job-{number}", instances, now_s)

    async def run(self) -> None:
        """Change CHANGES_PER_S times a second, and plan from time to time, until cancelled."""
        planned_s = time.monotonic()
        while True:
            start_s = time.monotonic()
            self.change()
            if start_s - planned_s > PLAN_EVERY_S:
                planned_s = start_s
                self._core.planner.mark_changed()
            await asyncio.sleep(max(0.0, start_s + 1 / CHANGES_PER_S - time.monotonic()))


def controller() -> ControllerCore:
    """A controller with all jobs, over switches that only remember what is written."""
    fabric = CLOS.build()
    switches = tuple(SwitchAddress(name=name, address="127.0.0.1:1") for name in fabric.switches)
    config = ControllerConfig(listen="127.0.0.1:0", topology=CLOS, switches=switches, policy="crux", lease_s=3600.0)
    routing = Routing(fabric, hash_multipliers(fabric.switches, config.hash_seed))
    core = ControllerCore(config, routing, RecordingSouthbound(), WallClock())
    chance = random.Random(SEED)
    for number in range(JOBS):
        hosts = chance.sample(fabric.hosts, HOSTS_PER_JOB)
        profile = Profile(compute_s=chance.uniform(0.2, 2.0), comm_start=0.5, work=chance.uniform(10, 100))
        now_s = core.context.clock.now_s()
        core.registry.register_job(JobRequest(f"job-{number}", tuple(hosts), HOSTS_PER_JOB * 8, profile), now_s)
        groups = []
        for group in range(GROUPS_PER_JOB):
            source, destination = (NicReference(host, group % 8) for host in chance.sample(hosts, 2))
            flow = FlowRequest(source, destination, chance.randrange(10**6, 10**9), 0.0)
            groups.append(FlowGroupRequest(f"group-{group}", (flow,)))
        core.registry.register_flow_groups(f"job-{number}", groups)
    return core


@asynccontextmanager
async def browsers(url: str, clients: int, *, read: bool) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a process that follows the page so many times."""
    at = urlsplit(url)
    with started_on(CLIENT_CORE):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", _BROWSERS, str(at.hostname), str(at.port), str(clients)),
            "reads" if read else "stuck",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
    assert process.stdout is not None
    await process.stdout.readline()
    try:
        yield process
    finally:
        process.terminate()
        await process.wait()


async def processor_share(period_s: float) -> float:
    """The share of a core that this process takes over a period."""
    start_s, taken_s = time.monotonic(), time.process_time()
    await asyncio.sleep(period_s)
    return (time.process_time() - taken_s) / (time.monotonic() - start_s)


async def measure(options: argparse.Namespace) -> dict[str, object]:
    """Measure all figures."""
    core, presence = controller(), Presence()
    core.planner.mark_changed()
    await core.planner.settle()
    figures: dict[str, object] = {}
    watchdogs = {"loop_stall_max_s": Watchdog(), "loop_stall_without_s": Watchdog()}
    shares: dict[str, list[float]] = {"page": [], "pages": [], "stuck": []}
    without: list[float] = []
    cases = {"page": (1, True), "pages": (options.clients, True), "stuck": (options.clients, False)}
    async with (
        page_routes(presence, RecentEvents(), Anybody(), is_secure=False) as page,
        serving("127.0.0.1:0", None, application(presence, page, is_local=True)) as url,
    ):
        with presence.of(core.context):
            tasks = [asyncio.create_task(each) for each in (Changes(core).run(), core.planner.run())]
            await asyncio.sleep(_SETTLING_S)
            for _ in range(options.pairs):
                for case, (clients, read) in cases.items():
                    with _watched(watchdogs["loop_stall_without_s"]):
                        alone = await processor_share(options.period_s)
                    async with browsers(url, clients, read=read) as process:
                        await asyncio.sleep(_SETTLING_S)
                        with _watched(watchdogs["loop_stall_max_s"]):
                            looked_at = await processor_share(options.period_s)
                        if case == "page":
                            figures |= await _received(process, _SETTLING_S + options.period_s)
                    await asyncio.sleep(1.0)
                    without.append(alone)
                    shares[case].append(looked_at - alone)
            for task in tasks:
                task.cancel()
    machine_s = await idle_timer_worst_s(CONTROLLER_CORE, options.period_s)
    return {
        **{f"{case}_cpu_share": round(statistics.median(each), 4) for case, each in shares.items()},
        "without_cpu_share": round(statistics.median(without), 4),
        "clients": options.clients,
        **figures,
        **{name: round(watchdog.worst_stall_s, 3) for name, watchdog in watchdogs.items()},
        "machine_stall_max_s": round(machine_s, 3),
    }


@contextmanager
def _watched(watchdog: Watchdog) -> Iterator[None]:
    """Have a watchdog watch the running event loop while the context lasts."""
    watching = asyncio.create_task(watchdog.run())
    try:
        yield
    finally:
        watching.cancel()


async def _received(process: asyncio.subprocess.Process, taken_s: float) -> dict[str, object]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"\n")
    octets, messages = map(int, (await process.stdout.readline()).split())
    return {"messages_per_s": round(messages / taken_s, 2), "bytes_per_s": round(octets / taken_s)}


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--clients", type=int, default=10, help="browsers at once (default: %(default)s)")
    parser.add_argument("--pairs", type=int, default=5, help="pairs of periods of each kind (%(default)s)")
    parser.add_argument("--period-s", type=float, default=10.0, help="length of a period (%(default)s)")
    options = parser.parse_args()
    os.sched_setaffinity(0, {CONTROLLER_CORE})
    tune_for_latency()  # as the process of a controller does
    figures = asyncio.run(measure(options))
    rows = budget_rows(BUDGETS, figures)
    figures |= {"seed": SEED, **provenance(("starlette", "uvicorn", "numpy"))}
    print_figures(figures | ({"budgets": rows} if options.json else {}), as_json=options.json)
    if not options.json:
        print_budget_rows(rows)


if __name__ == "__main__":
    main()
