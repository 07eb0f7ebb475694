"""A runtime that a program starts: a server on this machine, and executors as processes or on a Ray cluster."""

import secrets
import shutil
import subprocess  # nosec B404 # starts our own module
import sys
import tempfile
from collections.abc import Mapping, Sequence
from types import TracebackType

from runtime.client.session import Runtime
from runtime.server.settings import ClientSettings, IslandSettings, ServerSettings
from runtime.settings import write_settings
from runtime.substrates.interface import NetworkHost
from runtime.substrates.local import module_environment
from runtime.substrates.ray_cluster import RaySettings

_PATIENCE_S = 10.0


class LocalRuntime(Runtime):
    """A client together with the server and the executors that it has started; they end with it.

    ``tokens`` are for further clients of the same server (``connect``), by name.
    """

    def __init__(
        self,
        islands: Sequence[IslandSettings],
        policy: str,
        others: Sequence[ClientSettings],
        look_ahead_s: float,
        dispatch: str,
        preparation_s: float,
        network: str,
        network_hosts: Mapping[int, NetworkHost] | None = None,
        controllers: Sequence[str] = (),
        ray: RaySettings | None = None,
    ) -> None:
        own = ClientSettings("local", secrets.token_hex(), is_operator=True)
        clients = (own, *others)
        self.tokens = {client.name: client.token for client in clients}
        self._folder = tempfile.mkdtemp(prefix="trainyard-runtime-")
        settings = ServerSettings(
            f"unix:{self._folder}/server" if ray is None else "",
            self._folder,
            tuple(islands),
            clients,
            secrets.token_hex(),
            policy,
            look_ahead_s,
            dispatch,
            preparation_s,
            network,
            network_hosts or {},
            tuple(controllers),
            ray,
        )
        self._server = subprocess.Popen(  # nosec B603 # our own interpreter and module
            [sys.executable, "-m", "runtime.server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=module_environment(),
        )
        try:
            assert self._server.stdin is not None
            assert self._server.stdout is not None
            write_settings(settings, self._server.stdin)
            word, _, told = self._server.stdout.readline().rstrip("\n").partition(" ")
            if word != "ready":
                raise OSError(f"the server did not start: {told or 'its messages are above'}")
            super().__init__(told, own.token)
        except BaseException:
            self._end_server()
            raise

    def close(self) -> None:
        """End the connection, the server and the executors."""
        super().close()
        self._end_server()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _end_server(self) -> None:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        try:
            self._server.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()
        self._server.stdout.close()
        shutil.rmtree(self._folder, ignore_errors=True)
