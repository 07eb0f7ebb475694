"""Fail-overs of real controller processes that write large batches: how long is nobody there to lead?

``python -m tests.chaos.stopped_leaders --stops 50 --kills 50`` stops (SIGSTOP) and kills the leader so many times on
SQLite and on PostgreSQL: every other stop while it holds the lock of the database, the rest at random. ``--outages``
ends the PostgreSQL server and starts it again, and ``--power-losses`` sets down the network interface of the leader's
namespace, so that nothing more is heard of it. The figures go to standard output as JSON, in seconds: from the failure
(of an outage: from its end) to the next leader. What was acknowledged must all be there in the end.
"""

import argparse
import json
import signal
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from random import Random
from time import monotonic, sleep
from typing import Any

from controller.config import LeadershipConfig
from controller.store.fencing import holds_lock
from tests.chaos.controller_pair import NAMES, ControllerPair
from tests.namespaces import Namespaces
from tests.postgresql import Server, running

_LEASE_S = LeadershipConfig().lease_s
_LONGEST_LEAD_S = 1.5
_LOCKED_WITHIN_S = 3.0
_LOOK_S = 0.005
_OUTAGE_S = 3.0
_SERVER, _SERVER_ADDRESS = "db", "10.77.0.1"

Figures = dict[str, Any]


def campaign(kind: str, numbers: dict[str, int], lease_s: float = _LEASE_S, seed: int = 1) -> Figures:
    """Have leaders fail so many times, by the name of the failure, on a database of a kind.

    Raises:
        AssertionError: An acknowledged job is lost.
        NotInstalledError: There is no PostgreSQL server.
        RuntimeError: There are no network namespaces, which power losses need.
    """
    figures: Figures = {}
    draws = Random(seed)
    here = {name: number for name, number in numbers.items() if number and name != "power_losses"}
    if here:
        with _database(kind) as (database, server):
            failures = _Failures(database, draws, server)
            figures |= _play(failures, here, lease_s, draws, database, database)
    if number := numbers.get("power_losses"):
        with _machines() as (machines, database, database_here):
            failures = _Failures(database_here, draws, machines=machines)
            further = _play(failures, {"power_losses": number}, lease_s, draws, database, database_here)
            totals = {name: figures.get(name, 0) + further[name] for name in ("fenced", "jobs")}
            figures |= further | totals
    return figures


class _Failures:
    """What may happen to a leader; every failure returns the time from which on another is waited for."""

    def __init__(
        self, database: str, draws: Random, server: Server | None = None, machines: Namespaces | None = None
    ) -> None:
        self._database = database
        self._draws = draws
        self._num_stops = 0
        self._server = server
        self._machines = machines
        self._by_name: dict[str, Callable[[ControllerPair, str], float]] = {
            "stops": self._stop,
            "kills": self._kill,
            "outages": self._outage,
            "power_losses": self._power_loss,
        }

    def happen(self, name: str, pair: ControllerPair) -> float:
        """Have the leader fail; returns how long nobody led, and mends what can be mended."""
        term, leader = pair.last_term, pair.leader
        failed_s = self._by_name[name](pair, leader)
        led_s = pair.wait_for_leader(term)
        if name == "power_losses":
            self._set_interface(leader, "up")
        pair.signal(leader, signal.SIGCONT)
        return led_s - failed_s

    def enter(self, name: str) -> AbstractContextManager[Any]:
        """The context in which a controller's processes are started."""
        return nullcontext() if self._machines is None else self._machines.entered(name)

    def _stop(self, pair: ControllerPair, leader: str) -> float:
        self._num_stops += 1
        end_s = monotonic() + _LOCKED_WITHIN_S * (self._num_stops % 2)
        pair.signal(leader, signal.SIGSTOP)
        while not self._holds_lock(pair.pid(leader)) and monotonic() < end_s:
            pair.signal(leader, signal.SIGCONT)
            sleep(self._draws.uniform(0.0, _LOOK_S))
            pair.signal(leader, signal.SIGSTOP)
        return monotonic()

    def _holds_lock(self, pid: int) -> bool:
        if self._server is None:
            return holds_lock(pid, Path(self._database))
        sessions = (
            f"SELECT 1 FROM pg_stat_activity WHERE application_name LIKE 'trainyard %.{pid}.%' AND"
            " (state LIKE 'idle in transaction%' OR state = 'active')"
        )
        return bool(self._server.fetch(self._database, sessions))

    def _kill(self, pair: ControllerPair, leader: str) -> float:
        pair.signal(leader, signal.SIGKILL)
        return monotonic()

    def _outage(self, _: ControllerPair, __: str) -> float:
        assert self._server is not None
        with self._server.down():
            sleep(_OUTAGE_S)
        return monotonic()

    def _power_loss(self, _: ControllerPair, leader: str) -> float:
        self._set_interface(leader, "down")
        return monotonic()

    def _set_interface(self, machine: str, state: str) -> None:
        assert self._machines is not None
        self._machines.ip(machine, "link", "set", "uplink", state)
        if state == "up":
            self._machines.ip(machine, "route", "replace", "default", "via", _gateway(machine))


def _play(
    failures: _Failures, numbers: dict[str, int], lease_s: float, draws: Random, database: str, database_here: str
) -> Figures:
    order = [name for name, number in numbers.items() for _ in range(number)]
    draws.shuffle(order)
    took_s: dict[str, list[float]] = {name: [] for name in numbers}
    with tempfile.TemporaryDirectory(prefix="trainyard-stops-") as folder:
        pair = ControllerPair(Path(folder), database, lease_s, failures.enter)
        try:
            for name in order:
                for controller in NAMES:
                    pair.start(controller)
                pair.wait_for_leader(0)
                pair.wait_until_written()
                sleep(draws.uniform(0.0, _LONGEST_LEAD_S))
                took_s[name].append(failures.happen(name, pair))
                print(f"{name}: {took_s[name][-1]:.2f} s", file=sys.stderr, flush=True)
            pair.wait_until_written()
        finally:
            pair.end()
        fenced = sum(pair.log(name).read_text().count(" held the lock ") for name in NAMES)
        lost = pair.lost(database_here)
        assert not lost, f"acknowledged, but not stored: {lost}"
    return {**{name: _figures(times_s) for name, times_s in took_s.items()}, "fenced": fenced, "jobs": pair.num_told}


def _figures(times_s: list[float]) -> Figures:
    return {
        "number": len(times_s),
        "median_s": round(statistics.median(times_s), 2),
        "worst_s": round(max(times_s), 2),
    }


@contextmanager
def _database(kind: str) -> Iterator[tuple[str, Server | None]]:
    if kind == "postgresql":
        with running() as server:
            yield server.new_database(), server
    else:
        with tempfile.TemporaryDirectory(prefix="trainyard-stops-") as folder:
            yield str(Path(folder) / "trainyard.db"), None


@contextmanager
def _machines() -> Iterator[tuple[Namespaces, str, str]]:
    """Namespaces of two controllers and of a PostgreSQL server; its database's address there, and here."""
    machines = Namespaces()
    try:
        machines.add(_SERVER, *NAMES)
        for machine in (_SERVER, *NAMES):
            machines.ip(machine, "link", "set", "lo", "up")
        machines.ip(_SERVER, "address", "add", f"{_SERVER_ADDRESS}/32", "dev", "lo")
        for name in NAMES:
            machines.cable((name, "uplink"), (_SERVER, name))
            machines.ip(_SERVER, "address", "add", f"{_gateway(name)}/24", "dev", name)
            machines.ip(name, "address", "add", f"{_gateway(name)[:-1]}2/24", "dev", "uplink")
            machines.ip(name, "route", "add", "default", "via", _gateway(name))
        with ExitStack() as stack:
            with machines.entered(_SERVER):
                server = stack.enter_context(running("*"))
            here = server.new_database()
            yield machines, server.by_tcp(here, _SERVER_ADDRESS), here
    finally:
        machines.remove()


def _gateway(name: str) -> str:
    return f"10.77.{1 + NAMES.index(name)}.1"


def main() -> None:
    """Run a campaign; exit with status 1 where anything was lost."""
    arguments = argparse.ArgumentParser(description="fail-overs of controller processes that write large batches")
    arguments.add_argument("--database", choices=("sqlite", "postgresql"), action="append")
    for name, number in (("stops", 50), ("kills", 50), ("outages", 0), ("power-losses", 0)):
        arguments.add_argument(f"--{name}", type=int, default=number)
    arguments.add_argument("--lease-s", type=float, default=_LEASE_S)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    kinds = given.database or ["sqlite", "postgresql"]
    figures = {}
    for kind in kinds:
        numbers = {"stops": given.stops, "kills": given.kills}
        if kind == "postgresql":
            numbers |= {"outages": given.outages, "power_losses": given.power_losses}
        figures[kind] = campaign(kind, numbers, given.lease_s, given.seed)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
