"""Measures a controller under load: ``python benchmarks/operations.py [--json] [--only PART] [options]``.

20 clients register 2,000 jobs with 50 flow groups each, and follow the directives of 500; then they register and
withdraw 20 jobs a second. All jobs send heartbeats. The controller has the default leases, a database, and one core for
itself; the clients and the 20 emulated switches share the other.

- ``register_p99_s``: the time from a registration until the job and its flow groups are acknowledged, while others come
  and go; ``register_median_s``; ``fill_s``: the time to register the 2,000 jobs.
- ``loop_stall_max_s``: the worst delay of a timer of 10 ms in the controller's event loop, as its watchdog counts it,
  over all of this; ``machine_stall_max_s``: that of an idle process on the same core meanwhile;
  ``client_stall_max_s``: that of the clients themselves, which all latencies include.
- ``rss_growth_share``: by how much the controller's memory grows from the third minute to the end.
- ``explain_s``: the longest of twelve explanations asked for at once; ``explain_leases_lost``: the jobs that lost their
  leases meanwhile; ``list_flows_s``: the time to list all flows.
- ``idle_cpu_share``: the share of a core that the controller takes with 20 switches and 100 jobs that send heartbeats;
  ``bare_server_cpu_share``: that of a gRPC server on the same core that answers as many heartbeats and does nothing.
- ``rules_tls_p99_s``: the time from a registration behind TLS, by certificates of a job and of the controller, until
  every switch has acknowledged the rules, with eight jobs; ``rules_tls_median_s``.
- ``failover_postgresql_worst_s``: the longest time without a leader after leaders were stopped on PostgreSQL
  (``tests/chaos/stopped_leaders.py``).
- ``failed_calls``: calls of clients that were not acknowledged.
"""

import argparse
import asyncio
import gc
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.operations_load import Load
from benchmarks.operations_parts import failover_figures, tls_figures
from benchmarks.pinned_controller import (
    CLIENT_CORE,
    CLOS,
    CONTROLLER_CORE,
    PinnedController,
    bare_server,
    idle_timer_worst_s,
    pinned_controller,
    wait_until_ready,
)
from benchmarks.provenance import print_figures, provenance
from controller.api.operations import operations_pb2 as wire
from controller.api.operations.client import Operations
from controller.api.operations.methods import LIST_CONTROLLERS, LIST_FLOWS
from controller.watchdog import Watchdog

SEED = 1
CLIENTS, STREAMS, CHANGES_PER_S = 20, 500, 20.0
EXPLAINED_AT_ONCE = 12
IDLE_JOBS = 100
_FROM_MINUTE_S = 180.0
_SETTLING_S = 5.0
_GRACE_S = 45.0

Figures = dict[str, object]


async def churn_figures(options: argparse.Namespace) -> Figures:
    """Fill a controller, change its jobs, then explain and list them."""
    with tempfile.TemporaryDirectory() as folder:
        async with pinned_controller(Path(folder), options.log) as controller:
            await asyncio.to_thread(wait_until_ready, controller.address)
            load = Load(controller.address, CLOS.build(), CLIENTS, SEED)
            async with load.heartbeats():
                own = Watchdog()
                watching = asyncio.create_task(own.run())
                start_s = time.perf_counter()
                await load.register_many(options.jobs)
                fill_s = time.perf_counter() - start_s
                _say(f"registered after {fill_s:.1f} s; {await _state(controller)}")
                async with load.streams(min(STREAMS, options.jobs)):
                    figures = await _churn(controller, load, options)
                    figures["client_stall_max_s"] = round(own.worst_stall_s, 3)
                    watching.cancel()
                    figures |= await _explanations(controller, load)
            await load.close()
    return {"fill_s": round(fill_s, 2), **figures, "failed_calls": dict(load.failures), "leases_lost": len(load.lost)}


async def _churn(controller: PinnedController, load: Load, options: argparse.Namespace) -> Figures:
    load.registration_s.clear()
    idle = asyncio.create_task(idle_timer_worst_s(CONTROLLER_CORE, options.churn_s))
    memory_bytes: list[tuple[float, int]] = []

    async def watch() -> None:
        start_s = time.monotonic()
        while True:
            memory_bytes.append((time.monotonic() - start_s, controller.memory_bytes))
            _say(
                f"{memory_bytes[-1][0]:.0f} s: {controller.memory_bytes / 2**20:.0f} MiB, {await _state(controller)},"
                f" p99 {_p99(load.registration_s):.3f} s"
            )
            await asyncio.sleep(10.0)

    watching = asyncio.create_task(watch())
    processor_s, messages, start_s = controller.processor_s, load.directives, time.perf_counter()
    await load.churn(options.churn_s, CHANGES_PER_S)
    taken_s = time.perf_counter() - start_s
    watching.cancel()
    first = [size for at_s, size in memory_bytes if at_s >= min(_FROM_MINUTE_S, options.churn_s * 0.3)]
    third = max(1, len(first) // 7)
    return {
        "register_p99_s": round(_p99(load.registration_s), 3),
        "register_median_s": round(statistics.median(load.registration_s), 3),
        "registrations": len(load.registration_s),
        "churn_s": round(taken_s, 1),
        "churn_cpu_share": round((controller.processor_s - processor_s) / taken_s, 3),
        "directives_per_s": round((load.directives - messages) / taken_s, 1),
        "rss_growth_share": round(statistics.median(first[-third:]) / statistics.median(first[:third]) - 1, 4),
        "rss_bytes": controller.memory_bytes,
        "loop_stall_max_s": round((await _controller_state(controller)).worst_stall_s, 3),
        "machine_stall_max_s": round(await idle, 3),
    }


async def _explanations(controller: PinnedController, load: Load) -> Figures:
    await asyncio.sleep(_SETTLING_S)
    lost, names = len(load.lost), load.jobs[: 4 * EXPLAINED_AT_ONCE : 4]

    def explain(name: str) -> float:
        start_s = time.perf_counter()
        with Operations(controller.address) as operations:
            operations.explain(name)
        return time.perf_counter() - start_s

    with ThreadPoolExecutor(EXPLAINED_AT_ONCE) as threads:
        loop = asyncio.get_running_loop()
        explained = await asyncio.gather(
            *(loop.run_in_executor(threads, explain, name) for name in names), return_exceptions=True
        )
    figures: Figures = {}
    failed = [str(error) for error in explained if isinstance(error, BaseException)]
    if failed:
        figures["explain_failed"] = failed
    took_s = [each for each in explained if isinstance(each, float)]
    start_s = time.perf_counter()
    flows = await asyncio.to_thread(_list_flows, controller.address)
    return figures | {
        "explain_s": round(max(took_s, default=-1.0), 3),
        "explain_leases_lost": len(load.lost) - lost,
        "list_flows_s": round(time.perf_counter() - start_s, 2),
        "flows_listed": flows,
        "loop_stall_max_s": round((await _controller_state(controller)).worst_stall_s, 3),
    }


async def idle_figures(options: argparse.Namespace) -> Figures:
    """Measure a controller with nothing to do but to hear heartbeats, beside a server that does nothing at all."""
    with tempfile.TemporaryDirectory() as folder:
        async with pinned_controller(Path(folder), options.log) as controller, bare_server() as bare:
            await asyncio.to_thread(wait_until_ready, controller.address)
            share, bare_share = await asyncio.gather(
                _idle_share(controller, options.idle_s), _idle_share(bare, options.idle_s)
            )
    return {"idle_cpu_share": round(share, 4), "bare_server_cpu_share": round(bare_share, 4)}


async def _idle_share(server: PinnedController, idle_s: float) -> float:
    """The share of a core that a server takes while jobs send heartbeats."""
    load = Load(server.address, CLOS.build(), CLIENTS, SEED)
    async with load.heartbeats():
        await load.register_many(IDLE_JOBS)
        # Until the grace of a new controller is over, it has things to do.
        await asyncio.sleep(_GRACE_S)
        processor_s = server.processor_s
        await asyncio.sleep(idle_s)
        share = (server.processor_s - processor_s) / idle_s
    await load.close()
    return share


def _list_flows(address: str) -> int:
    with Operations(address) as operations:
        return len(operations.list(LIST_FLOWS))


async def _controller_state(controller: PinnedController) -> wire.ControllerState:
    def ask() -> wire.ControllerState:
        with Operations(controller.address) as operations:
            return operations.list(LIST_CONTROLLERS)[0]

    return await asyncio.to_thread(ask)


async def _state(controller: PinnedController) -> str:
    state = await _controller_state(controller)
    return f"Plan {state.plan_number}, worst stall {state.worst_stall_s:.3f} s, {state.stalls}, {state.long_stalls}"


def _p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100)[98] if len(values) > 1 else 0.0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


PARTS: Mapping[str, Callable[[argparse.Namespace], Figures]] = {
    "churn": lambda options: asyncio.run(churn_figures(options)),
    "idle": lambda options: asyncio.run(idle_figures(options)),
    "tls": lambda options: tls_figures(SEED, options.log),
    "failover": lambda options: failover_figures(options.stops, SEED),
}


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--only", action="append", choices=PARTS, help="measure this part; may be repeated")
    parser.add_argument("--jobs", type=int, default=2000, help="the jobs to begin with (default: %(default)s)")
    parser.add_argument("--churn-s", type=float, default=600.0, help="how long jobs come and go (%(default)s)")
    parser.add_argument("--idle-s", type=float, default=60.0, help="how long nothing happens (%(default)s)")
    parser.add_argument("--stops", type=int, default=50, help="how often a leader is stopped (%(default)s)")
    parser.add_argument("--log", type=Path, metavar="FILE", help="where the controller logs")
    options = parser.parse_args()
    os.sched_setaffinity(0, {CLIENT_CORE})
    gc.disable()  # a collection would delay the clients, and count as the controller's delay
    figures: Figures = {}
    for part in options.only or PARTS:
        figures |= PARTS[part](options)
    print_figures({**figures, "seed": SEED, **provenance(("grpcio", "finsy", "numpy", "numba"))}, as_json=options.json)


if __name__ == "__main__":
    main()
