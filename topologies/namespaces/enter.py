"""Runs a command inside namespaces, so that all its descendants end with whoever has started it, SIGKILL included.

    python enter.py [--keeper PID] [--network NAME] [--files FOLDER] --owner PID -- COMMAND...

It enters the user and mount namespaces of the process ``--keeper`` and the network namespace ``--network``. The command
has ``hosts`` and ``resolv.conf`` of the folder in place of the machine's: names resolve at once, or not at all. It is
the child of the first process of a process namespace, which the kernel ends with all in it when its parent is gone.

It is run by its path, and needs Python alone, so that it starts fast.
"""

import argparse
import contextlib
import ctypes
import os
import select
import signal
import sys
from types import FrameType
from typing import NoReturn

NEW_MOUNTS, NEW_PROCESSES, NEW_USERS, NEW_NETWORK = 0x00020000, 0x20000000, 0x10000000, 0x40000000
_DIES_WITH_PARENT = 1
_SLAVE, _RECURSIVE, _BIND = 1 << 19, 1 << 14, 1 << 12
_RELAYED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
_LIBC = ctypes.CDLL(None, use_errno=True)


def main(arguments: list[str]) -> int:
    """Run a command; return its exit status, or 128 and the number of the signal that has ended it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--owner", type=int, required=True)
    parser.add_argument("--keeper", type=int)
    parser.add_argument("--network")
    parser.add_argument("--files")
    parser.add_argument("command", nargs="+")
    given = parser.parse_args(arguments)
    _end_with(given.owner)
    kinds = {} if given.keeper is None else {"user": NEW_USERS, "mnt": NEW_MOUNTS}
    # Opened before the first is entered: the files lie outside.
    files = [(os.open(f"/proc/{given.keeper}/ns/{name}", os.O_RDONLY), kind) for name, kind in kinds.items()]
    for file, kind in files:
        _check(_LIBC.setns(file, kind), "entering a namespace")
        os.close(file)
    if given.network is not None:
        network = os.open(f"/run/netns/{given.network}", os.O_RDONLY)
        _check(_LIBC.setns(network, NEW_NETWORK), f"entering {given.network}")
        os.close(network)
    _check(_LIBC.unshare(NEW_MOUNTS | NEW_PROCESSES), "namespaces for mounts and processes")
    _check(_LIBC.mount(b"none", b"/", None, _SLAVE | _RECURSIVE, None), "a mount namespace of its own")
    if given.files is not None:
        for name in ("hosts", "resolv.conf"):
            _LIBC.mount(f"{given.files}/{name}".encode(), f"/etc/{name}".encode(), None, _BIND, None)
    parent_lives, held_by_parent = os.pipe()
    first = os.fork()
    if first == 0:
        os.close(held_by_parent)
        _be_first(parent_lives, given.command)
    return _wait_for(first)


def _be_first(parent_lives: int, command: list[str]) -> NoReturn:
    """Be the first process of the process namespace: start the command, and wait for it and for orphans."""
    # Where the machine hides parts of its own /proc and /sys, it refuses others.
    _LIBC.mount(b"none", b"/proc", b"proc", 0, None)
    _LIBC.mount(b"none", b"/sys", b"sysfs", 0, None)
    _LIBC.prctl(_DIES_WITH_PARENT, signal.SIGKILL)
    if select.select([parent_lives], [], [], 0)[0]:
        os._exit(1)  # the parent has ended before the kernel knew
    os.close(parent_lives)
    child = os.fork()
    if child == 0:
        for number in _IGNORED_BY_PYTHON:
            signal.signal(number, signal.SIG_DFL)
        try:
            os.execvp(command[0], command)  # nosec B606 # what its owner asks for, as it stands
        except OSError as error:
            print(f"{command[0]}: {error.strerror}", file=sys.stderr)
            os._exit(127)
    os._exit(_wait_for(child))


def _wait_for(child: int) -> int:
    """Hand signals on to a child until it has ended; return its status."""

    def relay(number: int, _frame: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)

    for number in _RELAYED:
        signal.signal(number, relay)
    while True:
        ended, status = os.wait()
        if ended == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _end_with(owner: int) -> None:
    """End when the parent does, which is the owner."""
    _LIBC.prctl(_DIES_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != owner:
        sys.exit("the owner has ended")


def _check(status: int, what: str) -> None:
    if status:
        error = ctypes.get_errno()
        sys.exit(f"{what}: {os.strerror(error)}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
