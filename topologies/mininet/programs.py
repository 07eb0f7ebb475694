"""Programs that nodes of Mininet start: all of them end when this process does, SIGKILL included."""

import json
import os
import select
import subprocess  # nosec B404 # runs our own programs, without a shell
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from topologies.namespaces import enter
from topologies.namespaces.host_network import NetworkError

PYTHON_VARIABLE = "TRAINYARD_PYTHON"
_PACKAGES = Path(__file__).resolve().parents[2]
_STOPS_WITHIN_S = 10.0
_CHUNK_BYTES = 4096


def with_descendants(hosts_file: str | None = None) -> list[str]:
    """Return the beginning of a command line: what follows ends with this process, and so do all its descendants.

    It has ``hosts_file`` as ``/etc/hosts``, and no name server, where that is given.
    """
    options = () if hosts_file is None else ("--hosts", hosts_file)
    return [sys.executable, "-I", "-S", enter.__file__, *options, "--owner", str(os.getpid()), "--"]


def alone() -> list[str]:
    """Return the beginning of a command line: what follows ends with this process, and sees all its processes."""
    return ["setpriv", "--pdeathsig", "KILL", "--"]


def trainyard(*arguments: str) -> list[str]:
    """Return the command line of ``trainyard``, in its own environment.

    That is the environment of the interpreter that ``TRAINYARD_PYTHON`` names, of the checkout in which this file lies
    (``.venv``), or of the installation to which it belongs.

    Raises:
        NetworkError: There is none.
    """
    named = os.environ.get(PYTHON_VARIABLE)
    prefix = _PACKAGES.parents[2:3]  # of PREFIX/lib/pythonX.Y/site-packages
    places = [Path(named)] if named else [_PACKAGES / ".venv/bin/python", *(each / "bin/python" for each in prefix)]
    for place in places:
        if place.is_file():
            # Without bytecode, which root would own.
            return [str(place), "-P", "-B", "-m", "trainyard", *arguments]
    tried = ", ".join(map(str, places))
    raise NetworkError(f"Trainyard's Python is not found at {tried}: run make setup, or set {PYTHON_VARIABLE}")


def ask(*arguments: str) -> Any:
    """Return what a command of ``trainyard`` prints as JSON. Raises NetworkError with its complaint where it fails."""
    return json.loads(tell(*arguments, "--json"))


def tell(*arguments: str) -> str:
    """Run a command of ``trainyard``; return what it prints. Raises NetworkError with its complaint where it fails."""
    done = subprocess.run(  # nosec B603 # our own program
        trainyard(*arguments), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise NetworkError(done.stderr.strip() or f"trainyard {arguments[0]}: exit status {done.returncode}")
    return done.stdout


class Program:
    """A command of ``trainyard`` that runs until it is stopped. What it logs is shown if it ends by itself.

    Args:
        beginning: ``with_descendants()`` or ``alone()``.
        arguments: The command and its options.
        given: What it finds at ``/dev/stdin``.
    """

    def __init__(self, beginning: list[str], *arguments: str, given: str = "") -> None:
        self._name = f"trainyard {arguments[0]}"
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 # open as long as the program
        self._process = subprocess.Popen(  # nosec B603 # our own program
            [*beginning, *trainyard(*arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            # Ctrl-C is for programs in hosts.
            start_new_session=True,
        )
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended, and ``first_lines`` or ``runs`` says so
            self._process.stdin.write(given.encode())
            self._process.stdin.close()

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def first_lines(self, number: int, within_s: float) -> list[str]:
        """Return so many lines, the first that it prints.

        Raises:
            NetworkError: It ends before, or has not printed them in this time; the text has what it has logged.
        """
        assert self._process.stdout is not None
        by_s = time.monotonic() + within_s
        printed = b""
        while printed.count(b"\n") < number:
            readable, _, _ = select.select([self._process.stdout], [], [], max(0.0, by_s - time.monotonic()))
            if not readable:
                raise NetworkError(f"{self._name} has not started within {within_s:g} s: {self._logged()}")
            chunk = os.read(self._process.stdout.fileno(), _CHUNK_BYTES)
            if not chunk:
                self._process.wait()
                raise NetworkError(self.complaint())
            printed += chunk
        return printed.decode().splitlines()[:number]

    def complaint(self) -> str:
        """Return what it has logged, after its name and exit status."""
        return f"{self._name} has ended with status {self._process.poll()}: {self._logged()}"

    def stop(self) -> str:
        """End it, and return its complaint if it has ended before, or does not end in time and is killed."""
        complaint = "" if self.runs else self.complaint()
        self._process.terminate()
        try:
            self._process.wait(_STOPS_WITHIN_S)
        except subprocess.TimeoutExpired:
            complaint = f"{self._name} has not ended within {_STOPS_WITHIN_S:g} s and is killed: {self._logged()}"
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._log.close()
        return complaint

    def _logged(self) -> str:
        log = self._log.fileno()
        # The program writes where the file stands, which this leaves alone.
        return os.pread(log, os.fstat(log).st_size, 0).decode(errors="replace").strip()
