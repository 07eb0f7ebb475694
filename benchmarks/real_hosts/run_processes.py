"""The processes of a run on real hosts, as ``/proc`` shows them from outside."""

from enum import StrEnum
from pathlib import Path

from benchmarks.real_hosts.processes import command_of, descendants, start_of
from experiments.scenarios.real_hosts import emulator_program, rank
from topologies.namespaces import enter

_NETWORKS = Path("/run/netns")
_SENT_BYTES_COLUMN = 8


class Part(StrEnum):
    """A process of a run; of agents and ranks there are several."""

    EMULATOR = "emulator"
    CONTROLLER = "controller"
    AGENT = "agent"
    RANK = "rank"
    RUN = "run"


_PROGRAMS = {
    Part.EMULATOR: f"-m {emulator_program.__name__} ",
    Part.CONTROLLER: "-m controller ",
    Part.AGENT: "-m hostlib.agent ",
    Part.RANK: f"{rank.__file__} ",
}
"""A part of the command line."""


class RunProcesses:
    """The processes that descend from a run's own, and all that have been seen so far."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._seen: dict[int, int] = {}

    def of(self, part: Part) -> dict[int, str]:
        """Return the command lines of such processes, without those that only start them and wait."""
        if part is Part.RUN:
            return {self._pid: command_of(self._pid)}
        commands = {pid: f"{command_of(pid)} " for pid in self.look()}
        return {
            pid: command.strip()
            for pid, command in commands.items()
            if _PROGRAMS[part] in command and enter.__file__ not in command
        }

    def look(self) -> list[int]:
        """Return the processes of the run, and remember them."""
        found = descendants(self._pid)
        self._seen |= {pid: start for pid in found if (start := start_of(pid)) is not None}
        return found

    def sent_bytes(self) -> dict[tuple[str, str], int]:
        """Return what the host of every rank has sent so far, by job and host."""
        found = {}
        for pid, command in self.of(Part.RANK).items():
            try:
                lines = Path(f"/proc/{pid}/net/dev").read_text().splitlines()
            except OSError:
                continue
            job, host = job_and_host(command)
            rows = {name.strip(): row.split() for name, _, row in (line.partition(":") for line in lines)}
            if "eth0" in rows:
                found[job, host] = int(rows["eth0"][_SENT_BYTES_COLUMN])
        return found

    def left(self) -> list[str]:
        """Return the processes of the run that are still there, and the names of its namespaces."""
        commands = [command_of(pid) for pid, start in self._seen.items() if start_of(pid) == start]
        names = _NETWORKS.iterdir() if _NETWORKS.is_dir() else ()
        return [*commands, *(path.name for path in names if f"-{self._pid}-" in path.name)]


def job_and_host(command: str) -> tuple[str, str]:
    """Return the job and the host in a rank's command line."""
    *_, job, host = command.split()
    return job, host
