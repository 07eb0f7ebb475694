"""Measures the controller's main job: ``python benchmarks/main_job.py [--json] [--database FOLDER]``.

- ``demo_s``: the time of ``trainyard demo`` with the compiled program in the cache.
- ``registration_to_rules_p99_s``: the time from a job's registration until every switch has acknowledged the rules of
  its Plan, on the paper's testbed Clos of 14 emulated switches with eight running jobs. It goes over gRPC and
  P4Runtime; the switches have one process, the controller another.
- ``register_100k_groups_s``: the time to register 1,000 jobs with 100 flow groups each on the Clos of 173 ToRs, over
  one connection and while the controller plans. ``planned_100k_groups_s`` is the time until the Plan for all is in
  force, at switches that accept rules at once; ``controller_memory_bytes`` is the controller's memory then.

With ``--database`` the controllers use databases in that folder; without, they store nothing.
"""

import argparse
import asyncio
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.emulator import LARGE, TESTBED
from benchmarks.provenance import print_figures, provenance
from controller.api.operations import operations_pb2
from controller.api.operations.client import Operations
from controller.api.operations.methods import LIST_LEVELS, LIST_SWITCHES
from controller.config import ControllerConfig
from controller.switch_addresses import SwitchAddress
from experiments.scenarios.controller_process import ControllerProcess
from hostlib.connection import Connection
from hostlib.types import Flow, FlowGroup, Job, Nic, Profile

SEED = 1
NUM_RUNNING, NUM_REGISTRATIONS = 8, 200
NUM_JOBS, GROUPS_PER_JOB = 1000, 100
CALLS_AT_ONCE = 16

_LARGE_CONTROLLER = """
import asyncio, sys
from benchmarks.main_job import serve_without_switches
asyncio.run(serve_without_switches(*sys.argv[1:]))
"""
_ROOT = Path(__file__).resolve().parent.parent


def demo_s() -> float:
    """Return the seconds of a demo; an earlier run fills the cache."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "trainyard", "demo", "--out", folder]
        for _ in range(2):
            start_s = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=_ROOT)
            taken_s = time.perf_counter() - start_s
    return taken_s


@asynccontextmanager
async def emulated_switches(topology: Path) -> AsyncIterator[tuple[SwitchAddress, ...]]:
    """Run ``trainyard emulator`` on a topology; yield the addresses of its switches."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "trainyard", "emulator", "--topology", str(topology), "--listen", "127.0.0.1:0"),
        stdout=asyncio.subprocess.PIPE,
        cwd=_ROOT,
    )
    try:
        assert process.stdout is not None
        await process.stdout.readline()
        rows = [(await process.stdout.readline()).decode().split() for _ in TESTBED.build().switches]
        yield tuple(SwitchAddress(name=name, address=address, device_id=int(number)) for number, name, address in rows)
    finally:
        process.terminate()
        await process.wait()


async def registrations_to_rules_s(database: str | None = None) -> list[float]:
    """Return the seconds from each registration until every switch has acknowledged the rules."""
    chance = random.Random(SEED)
    with tempfile.TemporaryDirectory() as folder:
        topology = Path(folder) / "topology.yaml"
        topology.write_text(json.dumps({"topology": TESTBED.model_dump(mode="json")}))
        async with emulated_switches(topology) as switches:
            config = ControllerConfig(listen="127.0.0.1:0", topology=TESTBED, switches=switches, database=database)
            async with ControllerProcess(config) as process, Connection(process.address) as client:
                await asyncio.to_thread(_wait_for_switches, process.address)
                figures = []
                for number in range(NUM_RUNNING + NUM_REGISTRATIONS):
                    if number >= NUM_RUNNING:
                        left = f"job-{number - NUM_RUNNING}"
                        await client.deregister(left)
                        while left in {job.name for job in (await client.plan()).jobs}:
                            await asyncio.sleep(0.01)
                    job, group = ring_job(number, chance, [f"h{index}" for index in range(12)])
                    start_s = time.perf_counter()
                    await client.register_job(job)
                    await client.register_flow_groups(job.name, [group])
                    # The controller sends directives once every switch has acknowledged its rules.
                    async for directives in client.directives(job.name):
                        if directives.flows:
                            break
                    figures.append(time.perf_counter() - start_s)
    return figures[NUM_RUNNING:]


def _wait_for_switches(address: str) -> None:
    """Wait until the controller has written base routing to every switch."""
    with Operations(address) as operations:
        while any(switch.condition != operations_pb2.CAUGHT_UP for switch in operations.list(LIST_SWITCHES)):
            time.sleep(0.1)


def _wait_for_plan(address: str) -> None:
    """Wait until the Plan in force decides on every registered flow."""
    with Operations(address) as operations:
        while sum(level.flows for level in operations.list(LIST_LEVELS)) < NUM_JOBS * GROUPS_PER_JOB:
            time.sleep(0.05)


def ring_job(number: int, chance: random.Random, among: Sequence[str]) -> tuple[Job, FlowGroup]:
    """Return a job with a ring over four of these hosts and a flow on each of their NICs."""
    hosts = chance.sample(among, 4)
    pairs = list(zip(hosts, hosts[1:] + hosts[:1], strict=True))
    flows = tuple(Flow(Nic(a, nic), Nic(b, nic), chance.randrange(10**8, 10**10)) for a, b in pairs for nic in range(8))
    profile = Profile(compute_s=chance.uniform(0.2, 2.0), comm_start=0.5, work=chance.uniform(10, 100))
    return Job(f"job-{number}", tuple(hosts), 32, profile), FlowGroup("ring", flows)


async def serve_without_switches(database: str | None = None) -> None:
    """Serve a controller of the Clos of 173 ToRs, whose switches accept at once; print its port, then its memory."""
    import grpc.aio

    from controller.clock import WallClock
    from controller.process.core import ControllerCore
    from controller.process.latency import tune_for_latency
    from controller.process.server import SERVER_OPTIONS
    from controller.southbound.recording import RecordingSouthbound
    from controller.store.store import Store
    from topologies.ecmp import hash_multipliers
    from topologies.routing import Routing

    tune_for_latency()
    fabric = LARGE.build()
    routing = Routing(fabric, hash_multipliers(fabric.switches, SEED))
    switches = tuple(SwitchAddress(name=name, address="127.0.0.1:1") for name in fabric.switches)
    config = ControllerConfig(topology=LARGE, switches=switches, lease_s=600.0)
    clock = WallClock()
    store = None if database is None else Store.open(database, clock)
    controller = ControllerCore(config, routing, RecordingSouthbound(), clock, store)
    server = grpc.aio.server(options=SERVER_OPTIONS)
    server.add_generic_rpc_handlers(controller.handlers)
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    await server.start()
    planning = asyncio.create_task(controller.planner.run())
    await asyncio.to_thread(sys.stdin.readline)
    planning.cancel()
    decision = controller.planner.decision
    print(1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, decision.number if decision else 0)


def _large_job(number: int, chance: random.Random) -> tuple[Job, list[FlowGroup]]:
    """Return a job on four hosts with 100 groups of one flow between two of them."""
    hosts = [f"h{index}" for index in chance.sample(range(2 * 173), 4)]
    groups = []
    for group in range(GROUPS_PER_JOB):
        source, destination = chance.sample(hosts, 2)
        flow = Flow(Nic(source, group % 8), Nic(destination, group % 8), chance.randrange(10**6, 10**9))
        groups.append(FlowGroup(f"group-{group}", (flow,)))
    return Job(f"job-{number}", tuple(hosts), 32, Profile(1.0, 0.5, chance.uniform(10, 100))), groups


async def register_100k_groups(database: str | None = None) -> tuple[float, float, int, int]:
    """Seconds to register, seconds until all is planned, memory in bytes, and how many Plans were made."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _LARGE_CONTROLLER, *([] if database is None else [database])),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=_ROOT,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    port = int(await process.stdout.readline())
    chance = random.Random(SEED)
    jobs = iter([_large_job(number, chance) for number in range(NUM_JOBS)])
    async with Connection(f"127.0.0.1:{port}", deadline_s=60.0) as client:

        async def register() -> None:
            for job, groups in jobs:
                await client.register_job(job)
                await client.register_flow_groups(job.name, groups)

        start_s = time.perf_counter()
        await asyncio.gather(*(register() for _ in range(CALLS_AT_ONCE)))
        registered_s = time.perf_counter() - start_s
        await asyncio.to_thread(_wait_for_plan, f"127.0.0.1:{port}")
        planned_s = time.perf_counter() - start_s
        plan = await client.plan()
        assert (len(plan.jobs), len(plan.flows)) == (NUM_JOBS, NUM_JOBS * GROUPS_PER_JOB)
    process.stdin.write(b"\n")
    memory_bytes, num_plans = map(int, (await process.stdout.readline()).split())
    await process.wait()
    return registered_s, planned_s, memory_bytes, num_plans


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--database", type=Path, metavar="FOLDER", help="where controllers keep their databases")
    arguments = parser.parse_args()
    small, large = (
        None if arguments.database is None else str(arguments.database / f"{name}.db") for name in ("testbed", "large")
    )
    delays_s = asyncio.run(registrations_to_rules_s(small))
    registered_s, planned_s, memory_bytes, num_plans = asyncio.run(register_100k_groups(large))
    figures = {
        "demo_s": round(demo_s(), 2),
        "registration_to_rules_p99_s": round(statistics.quantiles(delays_s, n=100)[98], 4),
        "registration_to_rules_median_s": round(statistics.median(delays_s), 4),
        "register_100k_groups_s": round(registered_s, 2),
        "planned_100k_groups_s": round(planned_s, 2),
        "plans_made": num_plans,
        "controller_memory_bytes": memory_bytes,
        "seed": SEED,
        **provenance(("grpcio", "finsy", "numpy", "numba")),
    }
    print_figures(figures, as_json=arguments.json)


if __name__ == "__main__":
    main()
