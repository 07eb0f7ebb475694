"""A controller in a process of its own, which can be killed and started again."""

import asyncio
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import yaml

from controller.config import ControllerConfig
from experiments.scenarios.reserved_address import ReservedAddress

_PRODUCTION = ("controller",)
_READY = "listening on "
_WEB = "web at "
_START_TIMEOUT_S = 300.0
_STOP_TIMEOUT_S = 10.0


class ControllerProcessError(Exception):
    """The controller process did not start; the message has its standard error."""


class ControllerProcess:
    """A controller process, as an async context manager: it starts on entry and stops on exit.

    It runs ``python -m controller`` or, with ``is_driven``, ``python -m experiments.scenarios.driven``. It listens at
    ``address``, the same after a restart: nobody else gets its port meanwhile. It serves metrics at ``web`` where it is
    configured to, and logs to ``log``, or else to a file that is gone with it. Entering and ``restart`` raise
    ControllerProcessError where it does not start.

    ``started_by`` turns its command line into the one that starts it, such as ``Laboratory.outside``, by which it ends
    with this process. Files that it needs to start are in ``folder``, None: where the machine has temporary ones.
    """

    def __init__(
        self,
        config: ControllerConfig,
        *,
        is_driven: bool = False,
        log: Path | None = None,
        started_by: Callable[..., Sequence[str]] | None = None,
        folder: Path | None = None,
    ) -> None:
        self.address = config.listen
        self.web = ""
        self._config = config
        self._is_driven = is_driven
        self._log = log
        self._started_by = started_by
        self._folder = folder
        self._process: asyncio.subprocess.Process | None = None
        self._reserved: ReservedAddress | None = None

    async def __aenter__(self) -> Self:
        self._reserved = ReservedAddress(self.address)
        try:
            self.address = self._reserved.address
            await self._start(0.0)
        except BaseException:
            self._reserved.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await self._stop()
        finally:
            if self._reserved is not None:
                self._reserved.close()

    @property
    def pid(self) -> int:
        """The number of the process."""
        assert self._process is not None
        return self._process.pid

    async def kill(self) -> None:
        """Kill the process with SIGKILL, as a crash would."""
        assert self._process is not None
        with suppress(ProcessLookupError):  # it has just ended by itself
            self._process.kill()
        await self._process.wait()

    async def wait(self) -> int:
        """Wait until the process has ended; return its status."""
        assert self._process is not None
        return await self._process.wait()

    async def restart(self, start_s: float = 0.0) -> None:
        """Start another process at the same address after ``kill``; a driven clock begins at ``start_s``."""
        await self._start(start_s)

    async def _start(self, start_s: float) -> None:
        config = self._config.model_copy(update={"listen": self.address})
        with tempfile.TemporaryDirectory(prefix="trainyard-", dir=self._folder) as folder:
            path = Path(folder) / "controller.yaml"
            path.write_text(yaml.safe_dump(config.model_dump(mode="json", exclude_unset=True)))
            program = ("experiments.scenarios.driven", "--start-s", repr(start_s)) if self._is_driven else _PRODUCTION
            # -P: the working directory, which may be anybody's, hides no module of the controller.
            command: Sequence[str] = (sys.executable, "-P", "-m", *program, "--config", str(path))
            if self._started_by is not None:
                command = self._started_by(*command)
            with (self._log or Path(folder) / "errors").open("w+b") as errors:
                self._process = await asyncio.create_subprocess_exec(
                    *command,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=errors,
                )
                assert self._process.stdout is not None
                try:
                    line = (await asyncio.wait_for(self._process.stdout.readline(), _START_TIMEOUT_S)).decode()
                    if line.startswith(_WEB):
                        self.web = line.removeprefix(_WEB).strip()
                        line = (await asyncio.wait_for(self._process.stdout.readline(), _START_TIMEOUT_S)).decode()
                    if not line.startswith(_READY):
                        await self._process.wait()
                        errors.seek(0)
                        raise ControllerProcessError(f"the controller did not start: {errors.read().decode().strip()}")
                except BaseException:
                    await self._stop()
                    raise

    async def _stop(self) -> None:
        if self._process is None or self._process.returncode is not None:
            return
        self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), _STOP_TIMEOUT_S)
        except TimeoutError:
            await self.kill()
