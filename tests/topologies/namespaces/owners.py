"""Processes that own a fabric's namespaces, for tests that end them; and what a process leaves behind.

    python -m tests.topologies.namespaces.owners SCRIPT

makes the namespaces, runs a shell script in h0, prints the namespaces' names, and waits.
"""

import asyncio
import os
import re
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.docs.pages import ROOT
from tests.patience import until
from topologies.fabric import Fabric
from topologies.namespaces.fabric_namespaces import FabricNamespaces
from topologies.namespaces.ownership import NAMESPACES
from topologies.specification import StarSpecification

_MARK = "TRAINYARD_TEST_MARK"


def small_fabric() -> Fabric:
    """Two hosts with two NICs of 0.1 Gbit/s each, at one switch."""
    return StarSpecification(kind="star", hosts=2, host_link_gbps=0.2, nics_per_host=2).build()


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    asyncio.run(until(holds))


class Marks:
    """An environment that all descendants of a process have, and by which they are found, whoever is their parent."""

    def __init__(self) -> None:
        self._mark = f"{_MARK}={secrets.token_hex(8)}"
        name, _, value = self._mark.partition("=")
        self.environment = os.environ | {name: value}

    def processes(self) -> dict[int, str]:
        """Return the command lines of all that run."""
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if self._mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                    found[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ")
            except OSError:  # it has ended, or is somebody else's
                continue
        return found


class Owner:
    """A process that owns namespaces.

    Attributes:
        process: The process.
        namespaces: Names of all its namespaces.
        marks: Find its descendants.
    """

    def __init__(self, start: tuple[str, ...], script: str) -> None:
        self.marks = Marks()
        self.process = subprocess.Popen(
            [*start, sys.executable, "-m", __name__, script],
            env=self.marks.environment,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        self.namespaces = self.process.stdout.readline().split()
        assert self.namespaces

    def running(self, pattern: str) -> list[int]:
        """Return those whose command lines match, oldest first."""
        return sorted(process for process, line in self.marks.processes().items() if re.search(pattern, line))

    def wait_until_nothing_is_left(self) -> None:
        """Wait until all its descendants and namespaces are gone."""
        self.process.wait()
        wait_until(lambda: not self.marks.processes())
        wait_until(lambda: not any((NAMESPACES / name).exists() for name in self.namespaces))


@contextmanager
def owning(start: tuple[str, ...], script: str) -> Iterator[Owner]:
    """A process that owns namespaces and runs a script in h0; nothing of it stays."""
    owner = Owner(start, script)
    try:
        yield owner
    finally:
        assert owner.process.stdin is not None
        owner.process.kill()
        owner.process.communicate()
        owner.wait_until_nothing_is_left()


def main() -> None:
    """Own namespaces until the end of the input."""
    with FabricNamespaces(small_fabric()) as namespaces:
        subprocess.Popen(namespaces.command("h0", "sh", "-c", sys.argv[1]))
        print(namespaces.fabric_name, *namespaces.names.values(), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
