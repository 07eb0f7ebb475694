"""Executors as processes on this machine."""

import os
import subprocess  # nosec B404 - starts our own module
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from runtime.settings import write_settings
from runtime.substrates.interface import HostSettings

_PATIENCE_S = 5.0


class LocalSubstrate:
    """Starts an executor as a child process.

    ``commands`` has what its command line begins with, by host, such as ``ip netns exec h0``: so it runs in a network
    namespace.
    """

    def __init__(self, commands: Mapping[int, Sequence[str]] | None = None) -> None:
        self._commands = commands or {}
        self._processes: dict[int, subprocess.Popen[str]] = {}

    def watch(self, on_end: Callable[[int, str], None]) -> None:
        """Call nobody back: the connections of processes that end do so at once."""

    def spawn(self, settings: HostSettings) -> None:
        """Start the executor of a host."""
        for each in self._processes.values():
            each.poll()  # those of hosts that have left are done with
        process = subprocess.Popen(  # nosec B603 - our own interpreter and module, where the server's settings say
            [*self._commands.get(settings.host, ()), sys.executable, "-m", "runtime.executor"],
            stdin=subprocess.PIPE,
            stdout=sys.stderr,  # the server's own stdout is for who started it
            text=True,
            env=module_environment(),
        )
        assert process.stdin is not None
        write_settings(settings, process.stdin)
        process.stdin.close()
        self._processes[settings.host] = process

    def kill(self, host: int) -> None:
        """End the executor of a host at once, if there is one."""
        process = self._processes.get(host)
        if process is not None:
            process.kill()
            process.wait()

    def lost(self, host: int) -> bool:  # noqa: ARG002 - there are others
        """Return that nothing takes the place of a host that was lost."""
        return False

    def wait(self, host: int) -> None:
        """Wait until the executor of a host has ended by itself."""
        self._processes[host].wait()

    def close(self) -> None:
        """End all executors; those that do not end by themselves are killed."""
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(_PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def module_environment() -> dict[str, str]:
    """Return an environment in which a new interpreter finds the modules that this one finds."""
    path = os.pathsep.join(each or str(Path.cwd()) for each in sys.path)
    return {**os.environ, "PYTHONPATH": path}
