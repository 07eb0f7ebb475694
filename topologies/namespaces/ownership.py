"""Names of namespaces, which say whose they are; and the removal of those whose owner is gone."""

import os
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from topologies.namespaces.host_network import NetworkError, run

NAMESPACES = Path("/run/netns")
"""Where iproute2 keeps the names of network namespaces."""

_NAMED = re.compile(r"trainyard-(?P<run>[0-9a-f]{6})-(?P<pid>\d+)-(?P<started_ticks>\d+)-(?P<node>[^/]+)")
_PLAIN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}")
_STATE_FIELD, _STARTED_FIELD = 0, 19
"""Of ``/proc/PID/stat`` behind the command's name, counted from 0."""


@dataclass(frozen=True, slots=True)
class Ownership:
    """A run and the process that owns its namespaces: its number, and when it was started, in ticks since boot."""

    run: str
    pid: int
    started_ticks: int

    @classmethod
    def of_this_process(cls) -> Self:
        """Return the ownership of a new run of this process."""
        started_ticks = _started_ticks(os.getpid())
        assert started_ticks is not None
        return cls(secrets.token_hex(3), os.getpid(), started_ticks)

    @property
    def fabric_name(self) -> str:
        """The name of the fabric's namespace."""
        return self._prefix + ".fabric"

    def host_name(self, host: str, number: int) -> str:
        """Return the name of a host's namespace: it ends with that of the host, or its number.

        The number stands for names that are no plain words. Behind a dot, with which no plain word begins, it is the
        end of no other name.
        """
        return self._prefix + (host if _PLAIN.fullmatch(host) else f".{number}")

    @property
    def is_alive(self) -> bool:
        """Whether the owner runs. Another process may have its number by now, but not its start."""
        return _started_ticks(self.pid) == self.started_ticks

    @property
    def _prefix(self) -> str:
        return f"trainyard-{self.run}-{self.pid}-{self.started_ticks}-"


def remove(names: Iterable[str]) -> None:
    """Remove those of these namespaces that exist; cables end with them. Processes in them should have ended before.

    Raises:
        NetworkError: Some cannot be removed, or iproute2 is missing.
    """
    complaints = []
    for name in filter(_exists, names):
        try:
            run("ip", "netns", "delete", name)
        except NetworkError as error:
            if _exists(name):  # else somebody else was faster
                complaints.append(str(error))
    if complaints:
        raise NetworkError("; ".join(complaints))


def remove_abandoned() -> list[str]:
    """Remove the namespaces of owners that are gone, and return their names.

    Namespaces of live owners, and those that are not named as ours are, stay.

    Raises:
        NetworkError: One cannot be removed, or iproute2 is missing.
    """
    names = [line.split(" ", 1)[0] for line in run("ip", "netns", "list").splitlines()]
    abandoned = [name for name in names if _is_abandoned(name)]
    remove(abandoned)
    return abandoned


def _is_abandoned(name: str) -> bool:
    named = _NAMED.fullmatch(name)
    return named is not None and not Ownership(named["run"], int(named["pid"]), int(named["started_ticks"])).is_alive


def _exists(name: str) -> bool:
    return (NAMESPACES / name).exists()


def _started_ticks(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    # A process that only waits for its parent to take note has ended.
    return None if fields[_STATE_FIELD] in "ZX" else int(fields[_STARTED_FIELD])
