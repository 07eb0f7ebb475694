"""Real-time scheduling of this process, with a watchdog: it can neither starve the machine nor be starved by it.

Its threads get FIFO priority 1 on all cores but the last. Where they run for 200 ms without ever waiting, the kernel
says so and the process goes back to ordinary scheduling; after a second it would be killed. Children begin without.
"""

import fcntl
import os
import resource
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

PRIORITY = 1
_SOFT_US, _HARD_US = 200_000, 1_000_000
_TASKS = Path("/proc/self/task")


class RealTimeError(Exception):
    """The machine does not permit it; the text says why."""


def become_real_time(lock_file: Path | None = None) -> IO[str]:
    """Give all threads of this process real-time priority. The caller must treat SIGXCPU with ``become_ordinary``.

    Args:
        lock_file: Held by the one process of a machine that may be real-time; None: a file that all users share.

    Returns:
        The lock, to be kept open as long as the process is real-time.

    Raises:
        RealTimeError: It is not permitted, there is one core only, or another process holds the lock.
    """
    lock = _locked(lock_file or Path(tempfile.gettempdir()) / "trainyard-real-time.lock")
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        lock.close()
        raise RealTimeError("real time needs two cores, of which one stays free")
    try:
        resource.setrlimit(resource.RLIMIT_RTTIME, (_SOFT_US, _HARD_US))
        _for_all_threads(lambda thread: os.sched_setaffinity(thread, cores[:-1]))
        policy, priority = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(PRIORITY)
        _for_all_threads(lambda thread: os.sched_setscheduler(thread, policy, priority))
    except (OSError, ValueError) as error:
        become_ordinary()
        lock.close()
        raise RealTimeError(f"real time is not permitted: {error}") from error
    return lock


def become_ordinary() -> None:
    """Give all threads of this process ordinary scheduling again."""
    _for_all_threads(lambda thread: os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0)))


def _for_all_threads(work: Callable[[int], None]) -> None:
    for task in _TASKS.iterdir():
        try:
            work(int(task.name))
        except ProcessLookupError:
            continue  # it has ended


def _locked(path: Path) -> IO[str]:
    try:
        # A file of another user can be locked too, if it may be read.
        descriptor = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise RealTimeError(f"{path}: {error.strerror}") from error
    lock = os.fdopen(descriptor)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise RealTimeError(f"another process of this machine is real-time: it holds {path}") from None
    return lock
