"""Network namespaces that a test makes, joins by cables, and removes; they need root, and Linux."""

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S

_NETWORK = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)


class Namespaces:
    """Namespaces by a test's own names for them."""

    def __init__(self) -> None:
        self._prefix = f"trainyard-{os.getpid()}-"
        self._names: list[str] = []

    def add(self, *names: str) -> None:
        """Make namespaces. Raises RuntimeError where that is not allowed."""
        for name in names:
            _ip("netns", "add", self.full_name(name))
            self._names.append(name)

    def full_name(self, name: str) -> str:
        """What ``ip netns`` calls it."""
        return self._prefix + name

    def file(self, name: str) -> Path:
        """What one opens to enter it."""
        return Path("/run/netns", self.full_name(name))

    def cable(self, one: tuple[str, str], other: tuple[str, str]) -> None:
        """A cable between two interfaces, each given as namespace and name, both up."""
        ends = [("name", interface, "netns", self.full_name(namespace)) for namespace, interface in (one, other)]
        _ip("link", "add", *ends[0], "type", "veth", "peer", *ends[1])
        for namespace, interface in (one, other):
            self.ip(namespace, "link", "set", interface, "up")

    def ip(self, name: str, *arguments: str) -> str:
        """``ip`` in a namespace; returns what it says."""
        return _ip("-n", self.full_name(name), *arguments)

    def command(self, name: str, *arguments: str) -> list[str]:
        """A command line that runs another in a namespace."""
        return ["ip", "netns", "exec", self.full_name(name), *arguments]

    def run(self, name: str, *arguments: str) -> str:
        """Run a command in a namespace; returns what it says. Raises RuntimeError where it fails."""
        return _run(*self.command(name, *arguments))

    @contextmanager
    def entered(self, name: str) -> Iterator[None]:
        """Sockets that this thread opens are the namespace's, for good."""
        with Path("/proc/thread-self/ns/net").open() as home:
            try:
                with self.file(name).open() as inside:
                    _enter(inside.fileno())
                yield
            finally:
                _enter(home.fileno())

    def remove(self) -> None:
        """Remove all of them; processes in them are the test's to end before."""
        for name in self._names:
            subprocess.run(["ip", "netns", "delete", self.full_name(name)], check=False, timeout=PATIENCE_S)


@contextmanager
def namespaces(*names: str) -> Iterator[Namespaces]:
    """Namespaces for as long as the context lasts; the test is skipped, and says so, where they cannot be made."""
    made = Namespaces()
    try:
        try:
            made.add(*names)
        except (OSError, RuntimeError) as error:
            pytest.skip(
                f"no network namespaces here, which takes root and iproute2, so that this is not shown: {error}"
            )
        for name in names:
            made.ip(name, "link", "set", "lo", "up")
        yield made
    finally:
        made.remove()


def _enter(descriptor: int) -> None:
    if _LIBC.setns(descriptor, _NETWORK):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def _ip(*arguments: str) -> str:
    return _run("ip", *arguments)


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
