"""What ``/proc`` says of processes: their descendants, what they run, and the processor time that they have taken."""

import os
from pathlib import Path

_USER_FIELD, _SYSTEM_FIELD = 11, 12
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
        try:
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(fields[_USER_FIELD]) + int(fields[_SYSTEM_FIELD])
    return ticks / os.sysconf("SC_CLK_TCK")
