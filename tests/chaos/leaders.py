"""A world with two controllers on one database, of which one leads, and their failures."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from controller.config import LeadershipConfig
from controller.errors import StoreError
from controller.process.core import ControllerCore
from controller.process.standby import Standby
from controller.southbound.p4runtime.switches import P4RuntimeSouthbound
from controller.store.database import Database
from controller.store.leader_lease import DatabaseLease
from controller.store.store import Store
from tests.chaos.jobs import LoopClock
from tests.chaos.processes import Process
from tests.chaos.stopping import StoppingLoop
from tests.chaos.traffic import Traffic
from tests.chaos.world import World
from topologies.steering import Steering

NAMES = ("one", "two")
LEADERSHIP_S = 1.5


class Leaders(World):
    """A fabric under the leader of two controllers; jobs know the addresses of both."""

    def __init__(self, traffic: Traffic, draws: Random, policy: str, steering: Steering, database: Path) -> None:
        super().__init__(traffic, draws, policy, steering, database)
        self.controller_addresses = tuple(f"{name}:4790" for name in NAMES)
        self.running: dict[str, Process] = {}
        self.terms: list[int] = []
        """Every term that has begun."""
        self._work: dict[str, asyncio.Task[None]] = {}
        self._standbys: dict[str, Standby] = {}
        self._retiring: set[asyncio.Task[None]] = set()
        self._stopped: set[str] = set()
        self._without_database: set[str] = set()

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Enter as World does, with a database that a controller may not reach."""

        def unless_away(work: Any) -> Any:
            def reach(database: Database, *arguments: Any) -> Any:
                process = Process.current()
                if process is not None and process.name in self._without_database:
                    raise StoreError(f"{database.name}: is out of reach")
                return work(database, *arguments)

            return reach

        with (
            patch.object(Database, "read", unless_away(Database.read)),
            patch.object(Database, "write_now", unless_away(Database.write_now)),
            super().entered(),
        ):
            yield

    @property
    def leader(self) -> str | None:
        """The name of the active controller; None where there is none, or it has been stopped."""
        for name, standby in self._standbys.items():
            if standby.controller is not None and name not in self._stopped:
                return name
        return None

    @property
    def controller(self) -> ControllerCore | None:  # type: ignore[override]
        """The active controller."""
        return None if self.leader is None else self._standbys[self.leader].controller

    @controller.setter
    def controller(self, _: None) -> None:
        """Ignore it: there is no controller before one leads."""

    @property
    def southbound(self) -> P4RuntimeSouthbound | None:  # type: ignore[override]
        """The southbound of the active controller."""
        southbound = None if self.controller is None else self.controller.southbound
        assert southbound is None or isinstance(southbound, P4RuntimeSouthbound)
        return southbound

    @southbound.setter
    def southbound(self, _: None) -> None:
        """Ignore it: there is no controller before one leads."""

    # ---- what may become of controllers -----------------------------------------------------------------------------

    def start_controller(self) -> None:
        """Start and resume all controllers, and let them reach the database."""
        self._without_database.clear()
        for name in NAMES:
            self.go_on(name)
            self.start(name)

    def kill_controller(self) -> None:
        """Kill all controllers."""
        for name in NAMES:
            self.kill(name)

    def start(self, name: str) -> None:
        """Start a controller, unless it runs."""
        if name not in self.running:
            self.running[name] = process = Process(name)
            self._work[name] = work = process.spawn(self._stand_by(name, process))
            work.add_done_callback(partial(self._note_end, process))

    def kill(self, name: str) -> None:
        """Kill a controller, if it runs."""
        if name in self.running:
            self.go_on(name)
            self._standbys.pop(name, None)
            self.running.pop(name).kill()

    async def retire(self, name: str) -> None:
        """Ask a controller to end."""
        work = self._work[name]
        self._retiring.add(work)
        work.cancel()
        await asyncio.wait((work,))
        self.kill(name)

    def stop(self, name: str) -> None:
        """Stop a controller, if it runs, with its messages under way."""
        if name in self.running:
            self._stopped.add(name)
            self._loop.stop_process(self.running[name])

    def go_on(self, name: str) -> None:
        """Resume a controller, if it is stopped."""
        if name in self._stopped:
            self._stopped.discard(name)
            self._loop.go_on(self.running[name])

    def lose_database(self, name: str) -> None:
        """Cut a controller off from the database."""
        self._without_database.add(name)

    def regain_database(self, name: str) -> None:
        """Let a controller reach the database again."""
        self._without_database.discard(name)

    async def _stand_by(self, name: str, process: Process) -> None:
        """Do what ``controller.process.daemon`` does, without its sockets."""
        database = self.config.database
        assert database is not None
        clock = LoopClock()
        store, table = Store.open(database, clock), DatabaseLease.open(database)
        for opened in (store.database, table.database):
            process.at_end(opened.engine.dispose)  # the files of a process that has ended are closed
        leadership = LeadershipConfig(name=name, lease_s=LEADERSHIP_S)
        standby = Standby(self.config, leadership, self.routing, clock, store, table, partial(self._note_term, name))
        self._standbys[name] = standby
        self.network.listen(f"{name}:4790", process, (standby.gate,))
        await standby.run()

    def _note_term(self, name: str, term: int | None) -> None:
        if term is None:
            return
        controller = self._standbys[name].controller
        assert controller is not None
        self._note_start(controller)
        self.terms.append(term)

    def _note_end(self, process: Process, work: "asyncio.Task[None]") -> None:
        if work not in self._retiring:
            super()._note_end(process, work)

    @property
    def _loop(self) -> StoppingLoop:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, StoppingLoop)
        return loop
