"""The process that makes a fabric's namespaces, keeps them, and removes them when its owner is gone, however it ended.

It reads one JSON object, ``Plan``, from standard input, makes what it says, prints ``ready`` and waits for the end of
its input. Its own network namespace is the fabric's. A parent's death closes the input, so that nothing stays behind
after SIGKILL either. Without root it makes namespaces of its own for users and mounts first; all it makes is gone with
the processes in them.
"""

import ctypes
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from topologies.namespaces.host_network import HostNic, NetworkError, configure, disable_ipv6, run

NEW_MOUNTS, NEW_USERS, NEW_NETWORK = 0x00020000, 0x10000000, 0x40000000
READY = "ready"
_NAMESPACES = Path("/run/netns")
_PRIVATE, _RECURSIVE = 1 << 18, 1 << 14
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class HostPlan:
    """A host: its namespace's name, its NICs, and the interfaces at the other end of their cables, in the fabric's."""

    namespace: str
    nics: list[HostNic]
    fabric_ends: list[str]


@dataclass(frozen=True)
class Plan:
    """The namespaces of a fabric.

    Attributes:
        fabric: Name of the namespace with the switches' ends of all cables.
        hosts: The hosts.
        folder: Removed with the namespaces.
        is_rootless: Whether to begin with namespaces of users and mounts.
    """

    fabric: str
    hosts: list[HostPlan]
    folder: str
    is_rootless: bool

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
        return cls(found["fabric"], hosts, found["folder"], found["is_rootless"])


def main() -> int:
    """Make the namespaces of a plan, and remove them at the end of the input."""
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    plan = Plan.from_json(sys.stdin.readline())
    made: list[str] = []
    try:
        if plan.is_rootless:
            _become_root_of_own_namespaces()
        _make(plan, made)
        print(READY, flush=True)
        sys.stdin.read()
    except (NetworkError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        _remove(made)
        shutil.rmtree(plan.folder, ignore_errors=True)
    return 0


def _remove(names: list[str]) -> None:
    """Delete these namespaces; cables end with them. Processes in them are their owner's to end before."""
    for name in names:
        try:
            run("ip", "netns", "delete", name)
        except NetworkError as error:
            print(error, file=sys.stderr)


def enter(namespace: str) -> None:
    """Enter a named network namespace, for good. Raises OSError where that is not permitted."""
    with (_NAMESPACES / namespace).open() as file:
        _check(_LIBC.setns(file.fileno(), NEW_NETWORK), f"network namespace {namespace}")


def _make(plan: Plan, made: list[str]) -> None:
    for name in (plan.fabric, *(host.namespace for host in plan.hosts)):
        run("ip", "netns", "add", name)
        made.append(name)
    enter(plan.fabric)
    disable_ipv6()
    run("ip", "link", "set", "lo", "up")
    for host in plan.hosts:
        for nic, fabric_end in zip(host.nics, host.fabric_ends, strict=True):
            mtu = ("mtu", str(nic.mtu_bytes))
            peer = ("peer", "name", nic.interface, *mtu, "netns", host.namespace)
            run("ip", "link", "add", fabric_end, *mtu, "type", "veth", *peer)
            run("ip", "link", "set", fabric_end, "up")
        _in_child(host.namespace, lambda host=host: configure(host.nics))  # type: ignore[misc]


def _in_child(namespace: str, work: Callable[[], None]) -> None:
    """Do something inside a namespace. Raises NetworkError where it fails, with its complaint."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        complaint = ""
        try:
            enter(namespace)
            work()
        except (NetworkError, OSError) as error:
            complaint = str(error)
        os.write(writing, complaint.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        complaint = answer.read()
    os.waitpid(child, 0)
    if complaint:
        raise NetworkError(f"{namespace}: {complaint}")


def _become_root_of_own_namespaces() -> None:
    user, group = os.getuid(), os.getgid()
    # iproute2 goes back to the network namespace from which it began, which must be its own for that.
    _check(_LIBC.unshare(NEW_USERS | NEW_MOUNTS | NEW_NETWORK), "namespaces of users, which need no root")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    _check(_LIBC.mount(b"none", b"/", None, _PRIVATE | _RECURSIVE, None), "a mount namespace of its own")
    # iproute2 keeps its names there, and only root may write where the machine's are.
    place = _NAMESPACES if _NAMESPACES.is_dir() else _NAMESPACES.parent
    _check(_LIBC.mount(b"none", str(place).encode(), b"tmpfs", 0, None), f"a {place} of its own")
    _NAMESPACES.mkdir(exist_ok=True)


def _check(status: int, what: str) -> None:
    if status:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")


if __name__ == "__main__":
    sys.exit(main())
