"""Fencing: a controller whose lease has ended, but which still holds the database's lock, loses it.

A process that is stopped, or whose machine is gone, in the middle of a transaction would otherwise keep its successor
waiting. Its transaction then changes nothing.

* PostgreSQL: the successor ends the sessions of that process, which are marked with it.
* SQLite: the lock belongs to a process of this machine. The successor kills it, if it is the one that held the lease.
"""

import logging
import os
import select
import signal
from pathlib import Path

from sqlalchemy import Connection

from controller.store import postgresql
from controller.store.engine import path_of
from controller.store.process_mark import OWN_MARK, process_of

_LOG = logging.getLogger(__name__)

_LOCKS = Path("/proc/locks")
_SQLITE_LOCK_BYTES = range(120, 123)
"""Where SQLite locks its ``-shm`` file to write, to checkpoint and to recover (https://sqlite.org/walformat.html)."""
_KILLED_WITHIN_S = 1.0


def is_running(mark: str, connection: Connection) -> bool:
    """Whether the process of a mark is running with this database; False where that cannot be known."""
    if not mark or mark == OWN_MARK:
        return False
    if connection.dialect.name == "postgresql":
        return postgresql.are_running(mark, connection)
    return process_of(mark) is not None


def fence(mark: str, connection: Connection) -> None:
    """End what the process of a mark has begun on this database, where it keeps others waiting.

    The lease of that process must have ended. What cannot be done is logged.
    """
    if not mark or mark == OWN_MARK:
        return
    if connection.dialect.name == "postgresql":
        if ended := postgresql.terminate(mark, connection):
            _LOG.warning("ended %d sessions of %s, which held the lock after its lease", ended, mark)
        elif postgresql.are_running(mark, connection):
            _LOG.warning("%s holds the lock after its lease, and has a role whose sessions are not ours to end", mark)
    elif (path := path_of(connection.engine.url)) is not None and (pid := process_of(mark)) is not None:
        if not holds_lock(pid, path):
            return
        if _kill(pid, mark):
            _LOG.warning("killed process %d, which held the lock of %s after its lease", pid, path)
        else:
            _LOG.warning("process %d holds the lock of %s after its lease, and is not ours to kill", pid, path)


def holds_lock(pid: int, path: Path) -> bool:
    """Whether a process holds a lock of an SQLite database that keeps others from writing."""
    try:
        inode = Path(f"{path}-shm").stat().st_ino
        lines = _LOCKS.read_text().splitlines()
    except OSError:
        return False
    for line in lines:
        words = line.split()
        # As in "1: POSIX  ADVISORY  WRITE 2716 08:01:131073 120 120"; one that waits has an arrow.
        if len(words) == 8 and words[3:5] == ["WRITE", str(pid)] and words[5].endswith(f":{inode}"):
            first, last = (int(word) if word.isdigit() else _SQLITE_LOCK_BYTES.stop for word in words[6:])
            if first < _SQLITE_LOCK_BYTES.stop and last >= _SQLITE_LOCK_BYTES.start:
                return True
    return False


def _kill(pid: int, mark: str) -> bool:
    """Kill a process, and wait until it has ended; returns False where that is not allowed."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return process_of(mark) is None
    try:
        # From here on the descriptor means this process alone.
        if process_of(mark) == pid:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            select.select([descriptor], [], [], _KILLED_WITHIN_S)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(descriptor)
