"""The reloads of a process: on SIGHUP, and when an operator calls."""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import grpc

from controller.api.operations.reload_call import reload_handler
from controller.config import ConfigFile
from controller.events import BurstLog, EventKind, log_from
from controller.process.admission import calls_of
from controller.process.reloader import Changing, Reloader
from controller.reload.errors import ReloadError
from hostlib.service_manager import ServiceManager

if TYPE_CHECKING:
    # SQLAlchemy is slow to import, and a controller without a database does not need it.
    from controller.store.store import Store

_LOG = logging.getLogger(__name__)

_NOTHING = "nothing in it has changed"
_MOST_LINES = 10
"""Problems or changes of one reload that have lines of their own."""


class Reloads:
    """Reloads the configuration in ``file`` for the controller that ``of`` names; None: there is no such file.

    The service manager is told of each.
    """

    def __init__(self, file: ConfigFile | None, manager: ServiceManager) -> None:
        self._file = file
        self._manager = manager
        self._reloader: Reloader | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._refusals = BurstLog(_LOG, logging.ERROR)
        self._changes = BurstLog(_LOG)

    @contextmanager
    def of(self, controller: Changing, store: "Store | None") -> Iterator[tuple[grpc.GenericRpcHandler, ...]]:
        """Have this controller reload while the context lasts, which is the handler of the operators' call."""
        if self._file is None:
            yield ()
            return
        calls = calls_of(
            controller.config,
            None if store is None else store.trail,
            lambda tenant: controller.config.quotas_of(tenant),
        )
        self._reloader = Reloader(self._file, controller)
        try:
            yield (reload_handler(calls, self._reload),)
        finally:
            self._reloader = None
            for task in self._tasks:
                task.cancel()

    def on_signal(self) -> None:
        """Handle SIGHUP: reload, and log what comes of it."""
        if self._reloader is None:
            _LOG.warning("SIGHUP: there is no configuration to read again now")
            return
        if len(self._tasks) > 1:
            return  # one that waits for another reads the file as it is then
        task = asyncio.get_running_loop().create_task(self._reload_and_log())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _reload_and_log(self) -> None:
        try:
            await self._reload()
        except ReloadError:
            pass  # it is logged
        except Exception:
            _LOG.exception("the reload has failed")

    async def _reload(self) -> Sequence[str]:
        reloader = self._reloader
        if reloader is None:
            raise ReloadError("the controller ends")
        _LOG.info("reloading the configuration")
        try:
            with self._manager.reloading():
                changes = await reloader.reload()
        except ReloadError as error:
            _tell(self._refusals, EventKind.RELOAD_REFUSED, "not reloaded", error.problems)
            raise
        log_from(reloader.config.log.level)
        _tell(self._changes, EventKind.RELOADED, "reloaded", changes or (_NOTHING,))
        return changes


def _tell(log: BurstLog, kind: EventKind, outcome: str, lines: Sequence[str]) -> None:
    for line in lines[:_MOST_LINES]:
        log.tell(kind, "%s: %s", outcome, line)
    if len(lines) > _MOST_LINES:
        log.tell(kind, "%s: and %d more", outcome, len(lines) - _MOST_LINES)
