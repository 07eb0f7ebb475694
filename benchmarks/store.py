"""Measures the cost of storing registrations and instances: ``python benchmarks/store.py [--json]``.

A registry of the paper's testbed Clos does four steps for each of 1,000 jobs: it registers the job, registers a flow
group of 32 flows, starts an instance of that, and renews the lease. The steps run one at a time, and 16 at a time,
which share commits. The figures are milliseconds of processor time, which the machine's load hardly changes, and of
wall-clock time: without a database, on SQLite and, where it is installed, on a PostgreSQL server (whose processes do
not count).
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.emulator import TESTBED
from benchmarks.provenance import print_figures, provenance
from controller.registry.registry import Registry
from controller.registry.requests import FlowGroupRequest, FlowRequest, InstanceRequest, JobRequest, NicReference
from controller.store.store import Store
from experiments.scenarios.driven.clock import DrivenClock
from policies.job import Profile
from tests.postgresql import NotInstalledError, running

NUM_JOBS = 1000
AT_ONCE = (1, 16)
_LEASE_S = 30.0
_HOSTS = ("h0", "h3", "h6", "h9")
_RING = FlowGroupRequest(
    "ring",
    tuple(
        FlowRequest(NicReference(source, nic), NicReference(destination, nic), 10**9, 0.0)
        for source, destination in zip(_HOSTS, _HOSTS[1:] + _HOSTS[:1], strict=True)
        for nic in range(8)
    ),
)
_FABRIC = TESTBED.build()


async def _times_ms(registry: Registry, at_once: int, step: Callable[[str], object]) -> dict[str, float]:
    """Return the times of a step, which is done for every job and acknowledged before the next one."""
    names = iter([f"job-{number}" for number in range(NUM_JOBS)])

    async def work() -> None:
        for name in names:
            step(name)
            await registry.commit()

    processor_s, wall_s = time.process_time(), time.perf_counter()
    await asyncio.gather(*(work() for _ in range(at_once)))
    return {
        "processor_ms": round(1e3 * (time.process_time() - processor_s) / NUM_JOBS, 3),
        "wall_ms": round(1e3 * (time.perf_counter() - wall_s) / NUM_JOBS, 2),
    }


async def _costs(database: str | None, at_once: int) -> dict[str, dict[str, float]]:
    store = None if database is None else Store.open(database, DrivenClock())
    registry = Registry(_FABRIC, _LEASE_S) if store is None else store.registry(_FABRIC, _LEASE_S)

    def register_job(name: str) -> None:
        registry.register_job(JobRequest(name, _HOSTS, 32, Profile(1.0, 0.5, 1.0)), 0.0, "token")

    steps: dict[str, Callable[[str], object]] = {
        "register_job": register_job,
        "register_flow_groups": lambda name: registry.register_flow_groups(name, [_RING]),
        "start_flow_groups": lambda name: registry.update_instances(name, {"ring": InstanceRequest(1)}, 1.0),
        "heartbeat": lambda name: registry.renew(name, 2.0),
    }
    try:
        return {name: await _times_ms(registry, at_once, step) for name, step in steps.items()}
    finally:
        if store is not None:
            await store.close()


@contextmanager
def _databases() -> Iterator[dict[str, Callable[[], str | None]]]:
    """Yield functions that create a new database, by kind."""
    with tempfile.TemporaryDirectory() as folder:
        kinds: dict[str, Callable[[], str | None]] = {
            "none": lambda: None,
            "sqlite": lambda: f"{tempfile.mkdtemp(dir=folder)}/trainyard.db",
        }
        try:
            with running() as server:
                yield {**kinds, "postgresql": server.new_database}
        except NotInstalledError as error:
            print(f"not measured on PostgreSQL: {error}", file=sys.stderr)
            yield kinds


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    with _databases() as kinds:
        figures = {
            f"{kind}_{at_once}_at_once": asyncio.run(_costs(new(), at_once))
            for kind, new in kinds.items()
            for at_once in AT_ONCE
        }
    print_figures({**figures, **provenance(("SQLAlchemy",))}, as_json=arguments.json)


if __name__ == "__main__":
    main()
