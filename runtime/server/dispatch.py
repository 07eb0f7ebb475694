"""How grants reach the hosts: all at once, or each after what it depends on has been enqueued (Pathways, section 4.5).

Parallel dispatch is the normal case: shapes are known, so all hosts prepare at once. Sequential dispatch waits for the
hosts of a computation before it tells those of its successors. It is there to be compared with.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Protocol

from runtime.server.hosts import Host


class Numbered(Protocol):
    """An execution, as dispatch sees it."""

    @property
    def number(self) -> int:
        """By which hosts know it."""


class Placed(Protocol):
    """Calls that are granted together, as dispatch sees them (``runtime.server.plans.Stretch``)."""

    @property
    def first(self) -> int:
        """The first node."""

    @property
    def last(self) -> int:
        """The last node."""

    @property
    def hosts(self) -> Sequence[int]:
        """Those that run a shard of it."""

    @property
    def makers(self) -> Sequence[int]:
        """Nodes outside of it whose values it takes."""


class Granted(Protocol):
    """A gang that was granted."""

    @property
    def execution(self) -> Numbered:
        """Of which it is a part."""

    @property
    def stretch(self) -> Placed:
        """Its calls."""


class ParallelDispatch:
    """Tells hosts at once what is granted."""

    is_parallel = True

    def __init__(self, hosts: Mapping[int, Host]) -> None:
        self._hosts = hosts

    def send(self, grants: Sequence[Granted]) -> None:
        """Tell hosts, each once, in the order of the grants."""
        by_host: dict[int, list[tuple[int, int, int]]] = {}
        for gang in grants:
            stretch = gang.stretch
            for host in stretch.hosts:
                by_host.setdefault(host, []).append((gang.execution.number, stretch.first, stretch.last))
        for host, granted in by_host.items():
            if host in self._hosts:
                self._hosts[host].grant(granted)

    def enqueued(self, execution: int, node: int) -> None:
        """Note that a host has enqueued its shards of a node."""

    def forget(self, execution: int) -> None:
        """Forget an execution that has ended or was aborted."""


class SequentialDispatch(ParallelDispatch):
    """Tells hosts of a grant when all hosts have enqueued what it depends on. Grants keep their order.

    Each is of one computation.
    """

    is_parallel = False

    def __init__(self, hosts: Mapping[int, Host]) -> None:
        super().__init__(hosts)
        self._waiting: deque[Granted] = deque()
        self._left: dict[tuple[int, int], int] = {}

    def send(self, grants: Sequence[Granted]) -> None:
        """Tell hosts of grants, as soon as each may be enqueued."""
        for gang in grants:
            self._left[gang.execution.number, gang.stretch.first] = len(gang.stretch.hosts)
        self._waiting.extend(grants)
        self._advance()

    def enqueued(self, execution: int, node: int) -> None:
        """Note that a host has enqueued its shards of a node."""
        key = (execution, node)
        if key in self._left:
            self._left[key] -= 1
            if self._left[key] == 0:
                del self._left[key]
                self._advance()

    def forget(self, execution: int) -> None:
        """Forget an execution that has ended or was aborted."""
        self._waiting = deque(each for each in self._waiting if each.execution.number != execution)
        self._left = {key: left for key, left in self._left.items() if key[0] != execution}
        self._advance()

    def _advance(self) -> None:
        while self._waiting:
            gang = self._waiting[0]
            if any((gang.execution.number, maker) in self._left for maker in gang.stretch.makers):
                return
            self._waiting.popleft()
            super().send([gang])
