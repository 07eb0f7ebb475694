"""Real-time scheduling of this process, with a watchdog: it can neither starve the machine nor be starved by it.

Its threads get FIFO priority 1 on all cores but the last. Where they run for 200 ms without ever waiting, the kernel
says so and the process goes back to ordinary scheduling; after a second it would be killed. Children begin without.
"""

import fcntl
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import IO

PRIORITY = 1
_SOFT_US, _HARD_US = 200_000, 1_000_000
_TASKS = Path("/proc/self/task")
_LOCK_FILE = Path("/tmp/trainyard-real-time.lock")  # nosec B108 # one for all users, opened without following links


class RealTimeError(Exception):
    """The machine does not permit it; the text says why."""


class RealTime:
    """Real-time priority of all threads of this process, from now on until ``end``. The caller must end it at SIGXCPU.

    Args:
        lock_file: Held by the one process of a machine that may be real-time; None: a file that all users share.

    Raises:
        RealTimeError: It is not permitted, there is one core only, or another process holds the lock.
    """

    def __init__(self, lock_file: Path | None = None) -> None:
        self._lock = _locked(lock_file or _LOCK_FILE)
        self._cores = os.sched_getaffinity(0)
        own_cores = self._cores - {free_core()}
        if not own_cores:
            self._lock.close()
            raise RealTimeError("real time needs two cores, of which one stays free")
        try:
            resource.setrlimit(resource.RLIMIT_RTTIME, (_SOFT_US, _HARD_US))
            policy, priority = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(PRIORITY)
            _for_all_threads(lambda thread: os.sched_setscheduler(thread, policy, priority))
            _for_all_threads(lambda thread: os.sched_setaffinity(thread, own_cores))
        except (OSError, ValueError) as error:
            self.end()
            raise RealTimeError(f"real time is not permitted: {error}") from error

    def end(self) -> None:
        """Give all threads ordinary scheduling and all cores again, and leave real time to others."""
        # Who may not raise priorities may not clear the flag either.
        policy = os.SCHED_OTHER | os.SCHED_RESET_ON_FORK
        _for_all_threads(lambda thread: os.sched_setscheduler(thread, policy, os.sched_param(0)))
        _for_all_threads(lambda thread: os.sched_setaffinity(thread, self._cores))
        self._lock.close()


def free_core() -> int:
    """Return the core that real time leaves to others."""
    return max(os.sched_getaffinity(0))


def _for_all_threads(work: Callable[[int], None]) -> None:
    for task in _TASKS.iterdir():
        try:
            work(int(task.name))
        except ProcessLookupError:
            continue  # it has ended


def _locked(path: Path) -> IO[str]:
    try:
        # A file of another user can be locked too, if it may be read.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(path, flags if path.exists() else flags | os.O_CREAT, 0o644)
    except OSError as error:
        raise RealTimeError(f"{path}: {error.strerror}") from error
    lock = os.fdopen(descriptor)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise RealTimeError(f"another process of this machine is real-time: it holds {path}") from None
    return lock
