"""Processes under test: how they start, what they log, what they hold, and how they end."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_START_S = 120.0
"""The emulator compiles machine code where no cache has it."""
_END_S = 30.0
_BAD_WORDS = ("Traceback (most recent call last)", "never retrieved", "never awaited", "Segmentation fault")


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process holds."""

    memory_bytes: int
    threads: int
    files: int

    def grown(self, before: "Usage") -> str | None:
        """Return what has grown beyond bounds, or None."""
        if self.memory_bytes > before.memory_bytes * 1.2 + (64 << 20):
            return f"memory: {before.memory_bytes:,} to {self.memory_bytes:,} bytes"
        if self.threads > before.threads + 16:
            return f"threads: {before.threads} to {self.threads}"
        if self.files > before.files + 32:
            return f"open files: {before.files} to {self.files}"
        return None


class Server:
    """A process that serves, with its log in a file."""

    def __init__(self, name: str, folder: Path, arguments: Sequence[str], until: str) -> None:
        """Start it and wait for a line with ``until``; raises RuntimeError where it ends before."""
        self.name = name
        self._log = folder / f"{name}.log"
        self._read_bytes = 0
        self._said = folder / f"{name}.out"
        with self._log.open("wb") as log, self._said.open("wb") as said:
            self._process = subprocess.Popen([sys.executable, "-m", *arguments], stdout=said, stderr=log, cwd=folder)
        self.started = self._wait_for(until)

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def processor_s(self) -> float:
        """Return the processor time that it has taken so far; 0 where it has ended."""
        try:
            fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        except FileNotFoundError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def usage(self) -> Usage:
        """Return what it holds now."""
        status = dict(
            line.split(":", 1)
            for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
            if ":" in line
        )
        files = len(os.listdir(f"/proc/{self._process.pid}/fd"))  # noqa: PTH208 - names alone, which may go at once
        return Usage(int(status["VmRSS"].split()[0]) << 10, int(status["Threads"]), files)

    def bad_news(self) -> str | None:
        """Return what it has logged since the last call, if that tells of a defect."""
        content = self._log.read_bytes()
        news, self._read_bytes = content[self._read_bytes :].decode(errors="replace"), len(content)
        if any(words in news for words in _BAD_WORDS):
            return news
        if any(not (each.isprintable() or each in "\n\t") for each in news):
            return f"a log that is not printable: {news!r}"
        return None

    def end(self) -> str | None:
        """End it as an operator does; return what was wrong with its end."""
        if not self.is_alive:
            return f"it has ended by itself with status {self._process.returncode}"
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout=_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return f"it does not end within {_END_S:g} s of SIGTERM"
        return None if self._process.returncode == 0 else f"its exit status is {self._process.returncode}"

    def _wait_for(self, words: str) -> list[str]:
        end_s = time.monotonic() + _START_S
        while time.monotonic() < end_s and self.is_alive:
            said = self._said.read_text()
            if words in said and said.endswith("\n"):
                return said.splitlines()
            time.sleep(0.05)
        self._process.kill()
        raise RuntimeError(f"{self.name} does not start: {self._log.read_text(errors='replace')[-2000:]}")


def num_processes() -> int:
    """Return how many processes descend from this one."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError):
                continue  # it has just ended
    ours = {os.getpid()}
    while found := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= found
    return len(ours) - 1
