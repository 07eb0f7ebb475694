"""The smaller parts of ``benchmarks/operations.py``: registrations behind TLS, and fail-overs on PostgreSQL."""

import asyncio
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.main_job import ring_job
from benchmarks.pinned_controller import CLOS, pinned_controller, wait_until_ready
from controller.access.authority import Authority
from controller.access.identity import Role
from controller.access.tls_files import ServerTls
from hostlib import Credentials
from hostlib.connection import Connection

_ROOT = Path(__file__).resolve().parent.parent
_DAYS = 1
_RUNNING, _REGISTRATIONS = 8, 200
_PAUSE_S = 0.05


async def registrations_behind_tls_s(seed: int, log: Path | None = None) -> list[float]:
    """The seconds from each registration until every switch has acknowledged the rules of its Plan.

    Client and controller show each other certificates, the client one of a tenant's jobs. Eight jobs run.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        client, viewer = _certificates(folder)
        tls = ServerTls(certificate=folder / "controller.pem", key=folder / "controller.key", ca=folder / "ca.pem")
        async with pinned_controller(folder, log, tls=tls) as controller:
            await asyncio.to_thread(wait_until_ready, controller.address, viewer)
            async with Connection(controller.address, credentials=client) as connection:
                return await _registrations_s(connection, seed)


async def _registrations_s(client: Connection, seed: int) -> list[float]:
    chance, hosts, figures = random.Random(seed), CLOS.build().hosts, []
    for number in range(_RUNNING + _REGISTRATIONS):
        if number >= _RUNNING:
            await client.deregister(f"job-{number - _RUNNING}")
            while len((await client.plan()).jobs) > _RUNNING - 1:
                await asyncio.sleep(0.01)
            await asyncio.sleep(_PAUSE_S)
        job, group = ring_job(number, chance, hosts)
        start_s = time.perf_counter()
        await client.register_job(job)
        await client.register_flow_groups(job.name, [group])
        # The controller sends directives once every switch has acknowledged its rules.
        async for directives in client.directives(job.name):
            if directives.flows:
                break
        figures.append(time.perf_counter() - start_s)
    return figures[_RUNNING:]


def _certificates(folder: Path) -> tuple[Credentials, Credentials]:
    """Write the certificates of a controller; return the credentials of a job and of a viewer."""
    authority = Authority.new(_DAYS)
    authority.pair.write(folder, "ca")
    authority.server("controller", ["127.0.0.1"], _DAYS).write(folder, "controller")
    authority.client("benchmark", Role.JOB, "benchmark", _DAYS).write(folder, "job")
    authority.client("benchmark", Role.VIEWER, "", _DAYS).write(folder, "viewer")
    job, viewer = (
        Credentials(ca=folder / "ca.pem", certificate=folder / f"{name}.pem", key=folder / f"{name}.key")
        for name in ("job", "viewer")
    )
    return job, viewer


def tls_figures(seed: int, log: Path | None) -> dict[str, object]:
    """Measure registrations behind TLS."""
    taken_s = asyncio.run(registrations_behind_tls_s(seed, log))
    return {
        "rules_tls_p99_s": round(statistics.quantiles(taken_s, n=100)[98], 4),
        "rules_tls_median_s": round(statistics.median(taken_s), 4),
    }


def failover_figures(stops: int, seed: int) -> dict[str, object]:
    """Stop leaders on PostgreSQL while they write large batches."""
    campaign = subprocess.run(
        (
            *(sys.executable, "-m", "tests.chaos.stopped_leaders", "--database", "postgresql"),
            *("--stops", str(stops), "--kills", "0", "--seed", str(seed)),
        ),
        check=True,
        stdout=subprocess.PIPE,
        cwd=_ROOT,
    )
    figures = json.loads(campaign.stdout)["postgresql"]
    return {"failover_postgresql_worst_s": figures["stops"]["worst_s"], "failovers": stops}
