"""Runs a command inside namespaces, so that all its descendants end with the process that owns them, SIGKILL included.

    python enter.py --owner PID [--keeper PID] [--network NAME] [--hosts FILE] -- COMMAND...

It enters the user and mount namespaces of the process ``--keeper`` and the network namespace ``--network``. The command
has the contents of ``--hosts`` as ``/etc/hosts``, and no name server: names resolve at once, or not at all. It is the
child of the first process of a process namespace, which the kernel ends with all in it when its parent is gone.

It is run by its path, and needs Python alone, so that it starts fast. ``run_in`` does the same for a function of a
program that imports this module, such as one that forks to save start-up.
"""

import argparse
import ctypes
import os
import select
import signal
import struct
import sys
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import NamedTuple, NoReturn

NEW_MOUNTS, NEW_PROCESSES, NEW_USERS, NEW_NETWORK = 0x00020000, 0x20000000, 0x10000000, 0x40000000
_DIES_WITH_PARENT = 1
_SLAVE, _RECURSIVE, _BIND = 1 << 19, 1 << 14, 1 << 12
_DETACH = 2
_RELAYED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
_SIGNAL_BYTES = 128
_FROM_KERNEL = 128
# Refused at once: programs that look names up in vain would wait for seconds.
_NO_NAME_SERVER = b"nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"
_LIBC = ctypes.CDLL(None, use_errno=True)


class Place(NamedTuple):
    """Where to run something, and with which process it ends.

    Attributes:
        owner: The process with which it ends.
        keeper: The process whose user and mount namespaces to enter, None: stay in those of the caller.
        network: Name of the network namespace to enter, None: stay.
        hosts: A file with what to have as ``/etc/hosts``, None: what the machine has.
    """

    owner: int
    keeper: int | None = None
    network: str | None = None
    hosts: str | None = None


def main(arguments: list[str]) -> int:
    """Run a command; return its exit status, or 128 and the number of the signal that has ended it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--owner", type=int, required=True)
    parser.add_argument("--keeper", type=int)
    parser.add_argument("--network")
    parser.add_argument("--hosts")
    parser.add_argument("command", nargs="+")
    given = parser.parse_args(arguments)
    return run_in(Place(given.owner, given.keeper, given.network, given.hosts), partial(execute, given.command))


def run_in(place: Place, work: Callable[[], NoReturn]) -> int:
    """Have a new process of a place do some work, to its exit; return its status as ``main`` does.

    Call it in a process without other threads. It exits where the owner has ended, and raises OSError where a namespace
    cannot be entered; the error's ``filename`` names it.
    """
    try:
        owner = os.pidfd_open(place.owner)  # readable as soon as it ends
    except ProcessLookupError:
        sys.exit("the owner has ended")
    hosts = None if place.hosts is None else Path(place.hosts).read_bytes()
    _enter(place.keeper, place.network)
    if hosts is not None:
        _resolve_by(hosts)
    return _run(work, owner, has_network=place.network is not None)


def _enter(keeper: int | None, network: str | None) -> None:
    """Enter existing namespaces, and new ones for mounts and processes."""
    kinds = {} if keeper is None else {"user": NEW_USERS, "mnt": NEW_MOUNTS}
    # Opened before the first is entered: the files lie outside.
    files = [(os.open(f"/proc/{keeper}/ns/{name}", os.O_RDONLY), kind) for name, kind in kinds.items()]
    folder = Path.cwd()
    for file, kind in files:
        _check(_LIBC.setns(file, kind), "entering a namespace")
        os.close(file)
    os.chdir(folder)  # whoever enters a mount namespace stands at its root
    if network is not None:
        inside = os.open(f"/run/netns/{network}", os.O_RDONLY)
        _check(_LIBC.setns(inside, NEW_NETWORK), f"entering {network}")
        os.close(inside)
    _check(_LIBC.unshare(NEW_MOUNTS | NEW_PROCESSES), "namespaces for mounts and processes")
    _check(_LIBC.mount(b"none", b"/", None, _SLAVE | _RECURSIVE, None), "a mount namespace of its own")


def _resolve_by(hosts: bytes) -> None:
    """Have names resolve by these contents of ``/etc/hosts`` alone, inside this mount namespace."""
    # Files in memory, which outlive the place where they are made.
    _check(_LIBC.mount(b"none", b"/sys", b"tmpfs", 0, None), "files in memory")
    for name, contents in (("hosts", hosts), ("resolv.conf", _NO_NAME_SERVER)):
        made, replaced = Path("/sys", name), Path("/etc", name)
        made.write_bytes(contents)
        made.chmod(0o644)
        if replaced.exists():
            _check(_LIBC.mount(bytes(made), bytes(replaced), None, _BIND, None), str(replaced))
    _check(_LIBC.umount2(b"/sys", _DETACH), "files in memory")


def _run(work: Callable[[], NoReturn], owner: int, *, has_network: bool) -> int:
    """Do the work in the process namespace that the next child is the first of."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # whatever the owner does with its own
    relayed = [number for number in _RELAYED if signal.getsignal(number) is not signal.SIG_IGN]
    # Until each process can hand them on, signals wait.
    signal.pthread_sigmask(signal.SIG_BLOCK, {*relayed, signal.SIGCHLD})
    parent_lives, held_by_parent = os.pipe()
    first = os.fork()
    if first == 0:
        os.close(held_by_parent)
        # Where the machine hides parts of its own /proc and /sys, it refuses others.
        _LIBC.mount(b"none", b"/proc", b"proc", 0, None)
        if has_network:
            _LIBC.mount(b"none", b"/sys", b"sysfs", 0, None)
        _be_first(parent_lives, work, relayed)
    return _wait_for(first, relayed, owner)


def _be_first(parent_lives: int, work: Callable[[], NoReturn], relayed: list[signal.Signals]) -> NoReturn:
    """Be the first process of the process namespace: have the next do the work, and wait for it and for orphans."""
    _LIBC.prctl(_DIES_WITH_PARENT, signal.SIGKILL)
    if select.select([parent_lives], [], [], 0)[0]:
        os._exit(1)  # the parent has ended before the kernel knew
    os.close(parent_lives)
    child = os.fork()
    if child == 0:
        _begin(relayed)
        work()
    # Signals to the caller's process group come by the parent alone.
    os.setpgid(0, 0)
    os._exit(_wait_for(child, relayed))


def _begin(relayed: list[signal.Signals]) -> None:
    """Take signals as a program does that has just started."""
    if not os.isatty(0):
        os.setpgid(0, 0)  # only a command that reads from the terminal has to be in the group that owns it
    for number in relayed:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {*relayed, signal.SIGCHLD})


def execute(command: list[str]) -> NoReturn:
    """Execute a command in place of this process; exit with 127 where that fails."""
    for number in _IGNORED_BY_PYTHON:
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)  # nosec B606 # what its owner asks for, as it stands
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        os._exit(127)


def _wait_for(child: int, relayed: Collection[signal.Signals], owner: int | None = None) -> int:
    """Hand signals on to a child until it or the owner has ended; return its status."""
    signals = _open_signals((*relayed, signal.SIGCHLD))
    watched = select.poll()
    watched.register(signals, select.POLLIN)
    if owner is not None:
        watched.register(owner, select.POLLIN)
    while True:
        if owner in dict(watched.poll()):
            return 128 + signal.SIGKILL
        number, _, origin = struct.unpack_from("Iii", os.read(signals, _SIGNAL_BYTES))
        if number == signal.SIGCHLD:
            status = _reap(child)
            if status is not None:
                return status
        elif origin != _FROM_KERNEL or not os.isatty(0):  # else the terminal has sent it to the child, too
            os.kill(child, number)


def _reap(child: int) -> int | None:
    """Take note of all children that have ended; return the status of this one, if it is among them."""
    while True:
        ended, status = os.waitpid(-1, os.WNOHANG)
        if ended == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        if ended == 0:
            return None


def _open_signals(numbers: Collection[signal.Signals]) -> int:
    """Return a descriptor from which to read these signals, which are blocked."""
    mask = (ctypes.c_uint64 * 16)(sum(1 << (number - 1) for number in numbers))
    signals: int = _LIBC.signalfd(-1, mask, os.O_CLOEXEC)
    _check(signals < 0, "reading signals")
    return signals


def _check(failed: int, what: str) -> None:
    if failed:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), what)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except OSError as error:
        sys.exit(f"{error.filename}: {error.strerror}")
