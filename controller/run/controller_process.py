"""A controller in a process of its own, for the length of a run."""

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import yaml

from controller.config import ControllerConfig

_READY = "listening on "
_START_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 10.0


class ControllerProcessError(Exception):
    """The controller process did not start; the message holds what it said."""


@asynccontextmanager
async def controller_process(config: ControllerConfig) -> AsyncIterator[str]:
    """Start ``trainyard controller`` with this configuration; gives the address it listens on.

    The process is stopped when the block ends. Raises ControllerProcessError where it does not start.
    """
    with tempfile.TemporaryDirectory(prefix="trainyard-") as folder:
        path = Path(folder) / "controller.yaml"
        path.write_text(yaml.safe_dump(config.model_dump(mode="json")))
        errors = (Path(folder) / "errors").open("w+b")
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "controller", "controller", "--config", str(path)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
        )
        try:
            assert process.stdout is not None
            line = await asyncio.wait_for(process.stdout.readline(), _START_TIMEOUT_S)
            if not line.decode().startswith(_READY):
                await process.wait()
                errors.seek(0)
                raise ControllerProcessError(f"the controller did not start: {errors.read().decode().strip()}")
            yield line.decode().removeprefix(_READY).strip()
        finally:
            await _stop(process)
            errors.close()


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), _STOP_TIMEOUT_S)
    except TimeoutError:
        process.kill()
        await process.wait()
