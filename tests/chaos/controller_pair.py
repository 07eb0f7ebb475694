"""Two real controller processes on one database, each with a client that keeps it writing."""

import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import Any, TypeVar

import yaml

from controller.config import ControllerConfig, LeadershipConfig
from controller.store.store import Store
from controller.switch_addresses import SwitchAddress
from experiments.scenarios.driven.clock import DrivenClock
from tests.chaos.writing import NUM_GROUPS
from tests.integration.fabrics import DUMBBELL
from tests.patience import PATIENCE_S

NAMES = ("one", "two")
_ROOT = Path(__file__).resolve().parents[2]
_LOOK_S = 0.01
_NOBODY = "127.0.0.1:9"
"""Where no switch listens: what is tried here is who leads."""
_JOB_LEASE_S = 3600.0

_FoundT = TypeVar("_FoundT")


class _Process:
    """A process whose lines are read as they come, each with its time."""

    def __init__(self, *arguments: str, log: Path) -> None:
        self.lines: list[tuple[float, str]] = []
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                (sys.executable, "-m", *arguments), stdout=subprocess.PIPE, stderr=errors, cwd=_ROOT
            )
        self._reading = Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append((monotonic(), line.decode().strip()))

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reading.join()


class ControllerPair:
    """Controllers ``one`` and ``two``, and what their clients were told.

    ``enter`` gives, for a controller's name, the context in which its processes are started: its network namespace.
    """

    def __init__(
        self,
        folder: Path,
        database: str,
        lease_s: float,
        enter: Callable[[str], AbstractContextManager[Any]] = lambda _: nullcontext(),
    ) -> None:
        self._folder = folder
        self._database = database
        self._lease_s = lease_s
        self._enter = enter
        self._controllers: dict[str, _Process] = {}
        self._clients: dict[str, _Process] = {}
        self._told: list[str] = []
        """What the clients that have ended were told."""

    def start(self, name: str) -> None:
        """Start a controller, unless it runs, and its client; returns once it stands by or leads."""
        if name in self._controllers and self._controllers[name].process.poll() is None:
            return
        config = ControllerConfig(
            listen="127.0.0.1:0",
            topology=DUMBBELL,
            switches=tuple(SwitchAddress(name=switch, address=_NOBODY) for switch in DUMBBELL.build().switches),
            policy="ecmp",
            lease_s=_JOB_LEASE_S,
            reads_ports=False,
            database=self._database,
            leadership=LeadershipConfig(name=name, lease_s=self._lease_s),
        )
        path = self._folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(config.model_dump(mode="json")))
        with self._enter(name):
            controller = _Process("controller", "--config", str(path), log=self.log(name))
            self._controllers[name] = controller
            address = _wait(lambda: _first(controller, "listening on "))
            self._end_client(name)
            self._clients[name] = _Process(*("tests.chaos.writing", address, name), log=self._folder / "clients.log")

    def log(self, name: str) -> Path:
        """The log of a controller."""
        return self._folder / f"{name}.log"

    @property
    def last_term(self) -> int:
        """The last term in which one of them led; 0 before the first."""
        return max((term for name in self._controllers for _, term in self._terms(name)), default=0)

    @property
    def leader(self) -> str:
        """The controller of the last term."""
        term = self.last_term
        return next(name for name in self._controllers if any(began == term for _, began in self._terms(name)))

    def wait_for_leader(self, after: int) -> float:
        """Wait until one leads in a later term; returns the time at which it began."""

        def began() -> float | None:
            terms = [began for name in self._controllers for began in self._terms(name)]
            return min((at_s for at_s, term in terms if term > after), default=None)

        return _wait(began)

    def wait_until_written(self) -> None:
        """Wait until the leader's client has been told of another job."""
        client = self._clients[self.leader]
        number = len(client.lines)
        _wait(lambda: any(line.startswith("+") for _, line in client.lines[number:]) or None)

    def signal(self, name: str, number: signal.Signals) -> None:
        """Send a signal to a controller, if it runs."""
        if self._controllers[name].process.poll() is None:
            self._controllers[name].process.send_signal(number)

    def pid(self, name: str) -> int:
        """The process of a controller."""
        return self._controllers[name].process.pid

    def end(self) -> None:
        """Kill all processes."""
        for name, controller in self._controllers.items():
            controller.end()
            self._end_client(name)

    @property
    def num_told(self) -> int:
        """How many jobs were acknowledged to clients that have ended."""
        return sum(line.startswith("+") for line in self._told)

    def lost(self, database: str) -> list[str]:
        """The acknowledged jobs that the database does not have whole; for the time after the end."""
        known: set[str] = set()
        for line in self._told:
            (known.add if line[0] == "+" else known.discard)(line[1:])
        store = Store.open(database, DrivenClock())
        try:
            stored = {job.request.name: len(job.flow_groups) for job in store.registry(DUMBBELL.build(), 1.0).jobs}
        finally:
            store.database.close()
        return sorted(name for name in known if stored.get(name) != NUM_GROUPS)

    def _terms(self, name: str) -> list[tuple[float, int]]:
        lines = tuple(self._controllers[name].lines)
        return [(at_s, int(line.rpartition(" ")[2])) for at_s, line in lines if line.startswith("leading, term ")]

    def _end_client(self, name: str) -> None:
        if name in self._clients:
            client = self._clients.pop(name)
            client.end()
            self._told += [line for _, line in client.lines]


def _first(process: _Process, prefix: str) -> str | None:
    if process.process.poll() is not None:
        raise AssertionError(f"process {process.process.args} has ended by itself")
    return next((line.removeprefix(prefix) for _, line in tuple(process.lines) if line.startswith(prefix)), None)


def _wait(look: Callable[[], _FoundT | None]) -> _FoundT:
    end_s = monotonic() + PATIENCE_S
    while (found := look()) is None:
        if monotonic() > end_s:
            raise TimeoutError
        sleep(_LOOK_S)
    return found
