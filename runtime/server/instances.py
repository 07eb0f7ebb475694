"""The runs of a program as instances for the controller of the network: announced, cancelled, and announced again.

The controller knows one instance of a job, the newest. It is to be one that sends. A run that waits for memory on a
host sends nothing there, and needs nothing that is sent there. So the instance is cancelled when all flows of all runs
begin or end where their run waits, and announced again, as another instance, as soon as one goes on.
"""

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import count

from hostlib import Client

_PAUSE_S = 5e-3
"""Between two announcements of a program: one costs the server as much time as a short run."""


class Instances:
    """The runs of a program that have not ended.

    Args:
        client: Tells the controller.
        on_announced: Called with each run that was announced, the first time, and with the job.
    """

    def __init__(self, client: Client, on_announced: Callable[[int, str], None]) -> None:
        self._client = client
        self._on_announced = on_announced
        self.running: set[int] = set()
        self._waiting: list[int] = []
        """Those of them that have still to be announced."""
        self._stalled_on: dict[int, set[int]] = {}
        """By run, the hosts on which it waits for memory."""
        self._job: tuple[str, Sequence[str]] | None = None
        """The name of the job, and those of its flow groups."""
        self._pairs: frozenset[tuple[int, int]] = frozenset()
        """The hosts on which flows begin and end."""
        self._numbers = count()
        self._open: int | None = None
        """The instance that the controller takes to be sending."""
        self._announced_s = -math.inf
        self._is_pausing = False

    def begin(self, job: str, flow_groups: Sequence[str], pairs: Iterable[tuple[int, int]]) -> None:
        """Announce runs from now on, as instances of a job that was registered; its flows are between these hosts."""
        self._job = job, flow_groups
        self._pairs = frozenset(pairs)
        self._settle()

    def withdraw(self) -> None:
        """Announce nothing any more: the controller forgets all instances with their job."""
        self._job = self._open = None

    def start(self, run: int) -> None:
        """Announce a run that is going to be dispatched."""
        self.running.add(run)
        self._waiting.append(run)
        self._settle()

    def end(self, run: int) -> None:
        """Note that a run has ended, or was aborted."""
        self.running.discard(run)
        self._stalled_on.pop(run, None)
        if run in self._waiting:
            self._waiting.remove(run)
        self._settle()

    def stall(self, run: int, host: int, *, is_stalled: bool) -> None:
        """Note that a run waits for memory on a host, or goes on there."""
        if run not in self.running:
            return
        hosts = self._stalled_on.setdefault(run, set())
        if is_stalled:
            hosts.add(host)
        else:
            hosts.discard(host)
        if not hosts:
            del self._stalled_on[run]
        self._settle()

    def end_unless_running(self) -> None:
        """Say that the last instance has ended if no run is under way."""
        if not self.running:
            self._cancel()

    def _settle(self) -> None:
        """Tell the controller what sends now, but not too often."""
        if self._job is None:
            return
        if self._are_all_waiting():
            self._cancel()
        elif self._waiting or (self.running and self._open is None):
            left_s = self._announced_s + _PAUSE_S - time.perf_counter()
            if left_s <= 0:
                self._announce(*self._job)
            elif not self._is_pausing:
                self._is_pausing = True
                asyncio.get_running_loop().call_later(left_s, self._go_on)

    def _are_all_waiting(self) -> bool:
        """Return whether there are runs, and none of them sends anything that is needed."""
        if not self.running or not self.running <= self._stalled_on.keys():
            return False
        return all(not hosts.isdisjoint(pair) for hosts in self._stalled_on.values() for pair in self._pairs)

    def _go_on(self) -> None:
        self._is_pausing = False
        self._settle()

    def _announce(self, job: str, flow_groups: Sequence[str]) -> None:
        self._open = next(self._numbers)
        self._client.start_flow_groups(job, flow_groups, self._open)
        self._announced_s = time.perf_counter()
        waiting, self._waiting = self._waiting, []
        for run in waiting:
            self._on_announced(run, job)

    def _cancel(self) -> None:
        if self._job is not None and self._open is not None:
            self._client.end_flow_groups(*self._job, self._open)
            self._open = None
