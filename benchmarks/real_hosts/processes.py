"""What ``/proc`` says of processes: their descendants, what they run, and the processor time that they have taken."""

import os
from pathlib import Path

_STATE_FIELD, _USER_FIELD, _SYSTEM_FIELD, _START_FIELD = 0, 11, 12, 19
"""Of ``/proc/PID/stat``, counted from the field after the command's name."""


def descendants(pid: int) -> list[int]:
    """Return a process and all that descend from it, parents first; those that end meanwhile may be missing."""
    found = [pid]
    for parent in found:
        try:
            for task in Path(f"/proc/{parent}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
        except OSError:
            continue
    return found


def command_of(pid: int) -> str:
    """Return the command line of a process, empty where it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()
    except OSError:
        return ""


def processor_s(pid: int) -> float:
    """Return the processor time that a process and its descendants have taken so far."""
    ticks = 0
    for each in descendants(pid):
        if fields := _fields(each):
            ticks += int(fields[_USER_FIELD]) + int(fields[_SYSTEM_FIELD])
    return ticks / os.sysconf("SC_CLK_TCK")


def start_of(pid: int) -> int | None:
    """Return when a process was started, in ticks since the machine was; None where it has ended."""
    fields = _fields(pid)
    return int(fields[_START_FIELD]) if fields and fields[_STATE_FIELD] not in "ZX" else None


def _fields(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
