"""Read switches back now and then, repair what somebody else has changed, and log it without a flood."""

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

from controller.events import BurstLog, EventKind
from controller.southbound.southbound import SouthboundError
from controller.southbound.switch_writer import SwitchWriter

_LOG = logging.getLogger(__name__)


class ReadingBack:
    """Reads back the switches of any protocol."""

    def __init__(self) -> None:
        self._log = BurstLog(_LOG, logging.WARNING)

    async def read_all(self, writers: Iterable[SwitchWriter[Any]]) -> None:
        """Read all of these now."""
        await asyncio.gather(*(self._read(writer, "") for writer in writers))

    async def keep_reading(self, writer: SwitchWriter[Any], first_s: float, period_s: float) -> None:
        """Read one switch after ``first_s``, and then every ``period_s``, until cancelled."""
        problem = ""
        await asyncio.sleep(first_s)
        while True:
            problem = await self._read(writer, problem)
            await asyncio.sleep(period_s)

    async def _read(self, writer: SwitchWriter[Any], told: str) -> str:
        """Read one switch; return the problem if it refuses, which is logged unless it was ``told`` before."""
        try:
            drift = await writer.read_back()
        except SouthboundError as error:
            if str(error) != told:
                self._log.tell(EventKind.SWITCH_REFUSES, "not read back: %s", error, switch=writer.name)
            return str(error)
        except Exception:
            _LOG.exception("switch %s: not read back", writer.name)
            return told
        if drift is not None:
            words = "switch %s: drift repaired: %s entries"
            self._log.tell(
                *(EventKind.DRIFT_REPAIRED, words, writer.name, drift), switch=writer.name, entries=drift.total
            )
        return ""
