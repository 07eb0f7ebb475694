"""The controller as a process: it answers while switches are away, and stops cleanly at any time."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from controller.leadership.lease import VACANT, LeaseRecord
from controller.store.leader_lease import DatabaseLease
from experiments.scenarios.driven.client import DrivenTime
from hostlib.connection import Connection
from hostlib.errors import RefusalReason, RefusedError
from hostlib.types import Directives, Job, Profile
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow

_LEASE_OF_ANOTHER = LeaseRecord("another", 1, 0, 3600.0)
_PROGRAM = """
import asyncio
from controller.config import ControllerConfig
from controller.process.daemon import serve

topology = {"kind": "dumbbell", "hosts_per_side": 1, "host_link_gbps": 100, "bottleneck_gbps": 100}
switches = [{"name": name, "address": "127.0.0.1:1"} for name in ("t0", "t1")]
config = {"listen": "127.0.0.1:0", "topology": topology, "switches": switches}
"""
_SERVES = """
asyncio.run(serve(ControllerConfig.model_validate(config)))
"""
_DATABASE_HANGS = """
from itertools import count
from threading import Event
from controller.store.database import Database

times, write_now = count(1), Database.write_now

def hang(database, work):
    if next(times) >= HANGS_FROM:
        print("hanging", flush=True)
        Event().wait()
    return write_now(database, work)

Database.write_now = hang
"""


@contextmanager
def _running(*program: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", "".join((_PROGRAM, *program, _SERVES))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_plans_and_stops_on_a_signal(number: signal.Signals) -> None:
    async def register(address: str) -> Directives:
        async with asyncio.timeout(PATIENCE_S), Connection(address) as client:
            await client.register_job(Job("gpt", ("h0", "h1"), 16, Profile(1.0, 0.5, 16.0)))
            return await anext(client.directives("gpt"))

    with _running() as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("listening on 127.0.0.1:")
        directives = asyncio.run(register(line.split()[-1]))
        assert directives.plan_number == 1
        process.send_signal(number)
        assert process.wait(timeout=PATIENCE_S) == 0


@pytest.mark.slow
def test_it_logs_sighup_and_goes_on_where_it_has_no_file() -> None:
    with _running() as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.send_signal(signal.SIGHUP)
        assert process.stderr.readline().startswith("SIGHUP: there is no configuration to read again now")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE_S) == 0


def test_the_daemon_has_no_service_that_moves_its_time() -> None:
    async def settle(address: str) -> RefusedError:
        async with asyncio.timeout(PATIENCE_S), DrivenTime(address) as time:
            with pytest.raises(RefusedError) as refused:
                await time.settle(1e9)
            return refused.value

    with _running() as process:
        assert process.stdout is not None
        refused = asyncio.run(settle(process.stdout.readline().split()[-1]))
    assert refused.reason is RefusalReason.UNSUPPORTED


def test_the_daemon_imports_no_experiments() -> None:
    listed = "import sys; print([name for name in sys.modules if name.startswith('experiments.scenarios')])"
    told = subprocess.run([sys.executable, "-c", f"{_PROGRAM}\n{listed}"], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


def test_a_policy_that_fails_in_its_warm_up_does_not_keep_the_controller_from_starting() -> None:
    fails = """
def warm_up(*_):
    raise SystemExit("no")

import controller.process.ready_policy
controller.process.ready_policy.warm_up = warm_up
"""
    with _running(fails) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("listening on 127.0.0.1:")


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2], ids=["as it is opened", "as its lease is read"])
def test_it_stops_on_a_signal_while_its_database_hangs(tmp_path: Path, number: int) -> None:
    hangs = _DATABASE_HANGS.replace("HANGS_FROM", str(number))
    with _running(f"config['database'] = {str(tmp_path / 'db')!r}", hangs) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "hanging\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE_S) == 0


@pytest.mark.slow
def test_it_stops_on_a_signal_while_it_waits_for_a_former_leader(tmp_path: Path) -> None:
    database = tmp_path / "db"
    with closing(DatabaseLease.open(str(database))) as table:
        assert asyncio.run(table.take(VACANT, _LEASE_OF_ANOTHER))
        with _running(f"config['database'] = {str(database)!r}") as process:
            assert process.stderr is not None
            assert process.stderr.readline() == "waiting 3600 s to see whether another still leads\n"
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=PATIENCE_S) == 0
        assert asyncio.run(table.read()) == _LEASE_OF_ANOTHER
