"""The process that makes a fabric's namespaces, keeps them, and removes them when its owner is gone, however it ended.

It reads one JSON object, ``Plan``, from standard input, makes what it says, prints ``ready`` and waits for another
line, the end of its input or that of its owner. Its own network namespace is the fabric's. Without root it makes
namespaces of its own for users and mounts first; all it makes is gone with the processes in them.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from topologies.namespaces.enter import NEW_MOUNTS, NEW_NETWORK, NEW_USERS
from topologies.namespaces.host_network import (
    HostNic,
    NetworkError,
    configure,
    disable_ipv6,
    receive_on_core,
    run,
    write_setting,
)
from topologies.namespaces.ownership import NAMESPACES, remove

READY = "ready"
_PRIVATE, _RECURSIVE = 1 << 18, 1 << 14
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class HostPlan:
    """A host: its namespace's name, its NICs, and the interfaces at the other end of their cables, in the fabric's."""

    namespace: str
    nics: list[HostNic]
    fabric_ends: list[str]


@dataclass(frozen=True)
class SwitchCable:
    """A cable between two switches: a pair of interfaces in the fabric's namespace."""

    ends: list[str]
    mtu_bytes: int


@dataclass(frozen=True)
class Plan:
    """The namespaces of a fabric.

    Attributes:
        owner: The process with which they end.
        fabric: Name of the namespace with the switches' ends of all cables.
        hosts: The hosts.
        is_rootless: Whether to begin with namespaces of users and mounts.
        receiving_core: The core on which hosts take what arrives; None: that on which it was sent.
        switch_cables: The cables between switches, where these need interfaces.
    """

    owner: int
    fabric: str
    hosts: list[HostPlan]
    is_rootless: bool
    receiving_core: int | None = None
    switch_cables: list[SwitchCable] = field(default_factory=list)

    def to_json(self) -> str:
        """Return the plan as one line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> "Plan":
        """Return the plan of a line."""
        found = json.loads(line)
        hosts = [
            HostPlan(host["namespace"], [HostNic(**nic) for nic in host["nics"]], host["fabric_ends"])
            for host in found["hosts"]
        ]
        cables = [SwitchCable(**cable) for cable in found["switch_cables"]]
        return cls(**found | {"hosts": hosts, "switch_cables": cables})


def main() -> int:
    """Make the namespaces of a plan, keep them, and remove them. Returns the exit status: 1 after a complaint."""
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    line = sys.stdin.readline()
    if not line.endswith("\n"):
        return 1  # the owner has ended before it had said all
    plan = Plan.from_json(line)
    made: list[str] = []
    try:
        owner = os.pidfd_open(plan.owner)
        if plan.is_rootless:
            _become_root_of_own_namespaces()
        try:
            _make(plan, made)
            print(READY, flush=True)
            # The input alone does not tell: processes that the owner has forked hold its other end, too.
            select.select([sys.stdin, owner], [], [])
        finally:
            remove(made)
    except (NetworkError, OSError) as error:
        with contextlib.suppress(BrokenPipeError):  # nobody listens any more
            print(error, file=sys.stderr)
        return 1
    return 0


def _make(plan: Plan, made: list[str]) -> None:
    for name in (plan.fabric, *(host.namespace for host in plan.hosts)):
        run("ip", "netns", "add", name)
        made.append(name)
    _enter(plan.fabric)
    disable_ipv6()
    run("ip", "link", "set", "lo", "up")
    for cable in plan.switch_cables:
        first, second = cable.ends
        mtu = ("mtu", str(cable.mtu_bytes))
        run("ip", "link", "add", first, *mtu, "type", "veth", "peer", "name", second, *mtu)
        for end in cable.ends:
            run("ip", "link", "set", end, "up")
    for host in plan.hosts:
        if plan.receiving_core is not None:
            _in_child(host.namespace, partial(receive_on_core, plan.receiving_core))
        for nic, fabric_end in zip(host.nics, host.fabric_ends, strict=True):
            mtu = ("mtu", str(nic.mtu_bytes))
            peer = ("peer", "name", nic.interface, *mtu, "netns", host.namespace)
            run("ip", "link", "add", fabric_end, *mtu, "type", "veth", *peer)
            run("ip", "link", "set", fabric_end, "up")
        _in_child(host.namespace, partial(configure, host.nics))


def _enter(namespace: str) -> None:
    """Enter a named network namespace, for good. Raises NetworkError where that is not permitted."""
    with (NAMESPACES / namespace).open() as file:
        _check(_LIBC.setns(file.fileno(), NEW_NETWORK), f"network namespace {namespace}")


def _in_child(namespace: str, work: Callable[[], None]) -> None:
    """Do something inside a namespace. Raises NetworkError where it fails, with its complaint."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            _enter(namespace)
            work()
            os._exit(0)
        except Exception as error:  # whatever it is, it must not run on as a second keeper
            os.write(writing, str(error).encode())
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading) as answer:
        complaint = answer.read()
    _, status = os.waitpid(child, 0)
    if status:
        raise NetworkError(f"{namespace}: {complaint or 'it was killed'}")


def _become_root_of_own_namespaces() -> None:
    user, group = os.getuid(), os.getgid()
    # iproute2 goes back to the network namespace from which it began, which must be its own for that.
    _check(_LIBC.unshare(NEW_USERS | NEW_MOUNTS | NEW_NETWORK), "making namespaces for users, mounts and networks")
    for name, value in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        write_setting(Path("/proc/self", name), value)
    _check(_LIBC.mount(b"none", b"/", None, _PRIVATE | _RECURSIVE, None), "a mount namespace of its own")
    # iproute2 keeps its names there, and only root may write where the machine's are.
    place = NAMESPACES if NAMESPACES.is_dir() else NAMESPACES.parent
    _check(_LIBC.mount(b"none", str(place).encode(), b"tmpfs", 0, None), f"a {place} of its own")
    NAMESPACES.mkdir(exist_ok=True)


def _check(status: int, what: str) -> None:
    if status:
        raise NetworkError(f"{what}: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    sys.exit(main())
