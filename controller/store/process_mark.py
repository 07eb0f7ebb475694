"""A mark that no other process has, by which a process is found again, and is not taken for another."""

import os
import re
import secrets
from pathlib import Path

_PROC = Path("/proc")
_MARK = re.compile(r"trainyard ([0-9a-f]{8})\.(\d+)\.(\d+)\.(\d+)")
_START_TIME = 19
"""The position of a process's start in its ``stat`` behind the name, which may contain anything (proc(5))."""
_ENDED = "Z"


def _own_mark() -> str:
    """The mark of this process: machine start, PID namespace, process and its start. PostgreSQL keeps 63 characters."""
    try:
        return f"trainyard {_boot()}.{_pid_namespace()}.{os.getpid()}.{_start_time(os.getpid())}"
    except OSError:  # not on Linux
        return f"trainyard {secrets.token_hex(16)}"


def process_of(mark: str) -> int | None:
    """The process of a mark, where it is on this machine, visible, and running or stopped; otherwise None."""
    matched = _MARK.fullmatch(mark)
    if matched is None:
        return None
    boot, namespace, pid, started = matched.groups()
    try:
        is_it = (boot, namespace) == (_boot(), _pid_namespace()) and _start_time(int(pid)) == started
    except OSError:
        return None
    return int(pid) if is_it else None


def _boot() -> str:
    return (_PROC / "sys/kernel/random/boot_id").read_text()[:8]


def _pid_namespace() -> str:
    return str((_PROC / "self/ns/pid").stat().st_ino)


def _start_time(pid: int) -> str:
    state, *rest = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    if state == _ENDED:
        raise ProcessLookupError
    return rest[_START_TIME - 1]


OWN_MARK = _own_mark()
