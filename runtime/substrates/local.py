"""Executors as processes on this machine."""

import os
import subprocess  # nosec B404 # starts our own module
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread

from runtime.settings import write_settings
from runtime.substrates.interface import HostSettings, SubstrateError

_PATIENCE_S = 5.0


class LocalSubstrate:
    """Starts an executor as a child process.

    ``commands`` has what its command line begins with, by host, such as ``ip netns exec h0``: so it runs in a network
    namespace.
    """

    def __init__(self, commands: Mapping[int, Sequence[str]] | None = None) -> None:
        self._commands = commands or {}
        self._processes: dict[int, subprocess.Popen[str]] = {}
        self._on_end: Callable[[int, str], None] = lambda _host, _why: None

    def watch(self, on_end: Callable[[int, str], None]) -> None:
        """Call back, in a thread, when an executor has ended, with its exit status."""
        self._on_end = on_end

    def spawn(self, settings: HostSettings) -> None:
        """Start the executor of a host. Raises SubstrateError."""
        command = [*self._commands.get(settings.host, ()), sys.executable, "-m", "runtime.executor"]
        try:
            process = subprocess.Popen(  # nosec B603 # our own interpreter and module, where the server's settings say
                command,
                stdin=subprocess.PIPE,
                stdout=sys.stderr,  # the server's own stdout is for who started it
                text=True,
                env=module_environment(),
            )
        except OSError as error:
            raise SubstrateError(f"host {settings.host}: {command[0]} does not start: {error.strerror}") from None
        self._processes[settings.host] = process
        Thread(target=self._wait, args=(settings.host, process), name=f"host-{settings.host}", daemon=True).start()
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin:  # it has ended already, as the thread says
            write_settings(settings, process.stdin)

    def _wait(self, host: int, process: "subprocess.Popen[str]") -> None:
        """Say when a process has ended, which may never have connected to the server."""
        self._on_end(host, f"its process ended with exit status {process.wait()}")

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
