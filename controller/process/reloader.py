"""Reads the configuration file again, and has the controller go over to what it says."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from controller.background import run_in_thread
from controller.config import ConfigError, ConfigFile, ControllerConfig
from controller.reload.errors import ReloadError
from controller.reload.keys import KeyChanges, key_changes


class Changing(Protocol):
    """What goes over to other configurations: the active controller, or one that stands by."""

    @property
    def config(self) -> ControllerConfig:
        """The configuration in force."""

    async def change(self, config: ControllerConfig, changes: KeyChanges) -> Sequence[str]:
        """Go over to a configuration, which differs in these keys; returns what has changed. Raises ReloadError."""


class Reloader:
    """Reloads the file of a controller's configuration for everybody who asks, one after the other."""

    def __init__(self, file: ConfigFile, controller: Changing) -> None:
        self._file = replace(file, path=file.path.absolute())
        self._controller = controller
        self._turn = asyncio.Lock()

    @property
    def config(self) -> ControllerConfig:
        """The configuration in force."""
        return self._controller.config

    async def reload(self) -> Sequence[str]:
        """Go over to what the file says now; returns what has changed in words, nothing where nothing has.

        Raises:
            ReloadError: The file cannot be used, or something in it cannot change while the controller runs; the
                controller goes on as before.
        """
        async with self._turn:
            try:
                config = await run_in_thread(self._file.read, "reload")
            except ConfigError as error:
                raise ReloadError(*error.messages) from error
            changes = await run_in_thread(partial(key_changes, self._controller.config, config), "reload")
            try:
                if changes.refused:
                    raise ReloadError(
                        *(f"{key}: cannot change while the controller runs; restart it" for key in changes.refused)
                    )
                return () if changes.is_empty else await self._controller.change(config, changes)
            except ReloadError as error:
                raise ReloadError(*(f"{self._file.path}: {problem}" for problem in error.problems)) from error
