"""Names of namespaces, which say whose they are; and the removal of those whose owner is gone."""

import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from topologies.namespaces.host_network import run

_NAMED = re.compile(r"trainyard-(?P<run>[0-9a-f]{6})-(?P<pid>\d+)-(?P<started>\d+)-(?P<node>[^/]+)")
_PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_STARTED_FIELD = 19
"""Of /proc/PID/stat, counted from the field after the command's name."""


@dataclass(frozen=True, slots=True)
class Ownership:
    """A run and the process that owns its namespaces: its number, and when it was started, in ticks since boot."""

    run: str
    pid: int
    started: int

    @classmethod
    def of_this_process(cls) -> Self:
        """Return the ownership of a new run of this process."""
        started = _started(os.getpid())
        assert started is not None
        return cls(secrets.token_hex(3), os.getpid(), started)

    def name(self, node: str, number: int) -> str:
        """Return the name of a node's namespace: its own name, or its number where that is no plain word."""
        plain = node if _PLAIN.fullmatch(node) else f"node{number}"
        return f"trainyard-{self.run}-{self.pid}-{self.started}-{plain}"

    @property
    def is_alive(self) -> bool:
        """Whether the owner runs. Another process may have its number by now, but not its start."""
        return _started(self.pid) == self.started


def remove_abandoned() -> list[str]:
    """Remove the namespaces of owners that are gone, and return their names.

    Namespaces of live owners, and those that are not named as ours are, stay.

    Raises:
        NetworkError: One cannot be removed, or iproute2 is missing.
    """
    removed = []
    for line in run("ip", "netns", "list").splitlines():
        name = line.split(" ", 1)[0]
        named = _NAMED.fullmatch(name)
        if named is not None and not Ownership(named["run"], int(named["pid"]), int(named["started"])).is_alive:
            run("ip", "netns", "delete", name)
            removed.append(name)
    return removed


def _started(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()
    # A process that only waits for its parent to take note has ended.
    return None if state in "ZX" else int(fields[_STARTED_FIELD - 1])
