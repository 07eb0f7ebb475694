"""Reloads tell the log what has come of them, in lines of which there are not too many."""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

import pytest

from controller.config import ConfigFile, ControllerConfig
from controller.process.reloads import Reloads
from controller.reload.errors import ReloadError
from controller.reload.keys import KeyChanges
from hostlib.service_manager import ServiceManager

_FILE = """
listen: 127.0.0.1:0
topology: {kind: dumbbell, hosts_per_side: 1, host_link_gbps: 100, bottleneck_gbps: 100}
switches: [{name: t0, address: "127.0.0.1:1"}, {name: t1, address: "127.0.0.1:1"}]
"""


class _Refusing:
    """Refuses whatever it is to go over to, for a thousand reasons."""

    def __init__(self, config: ControllerConfig) -> None:
        self.config = config

    async def change(self, config: ControllerConfig, changes: KeyChanges) -> Sequence[str]:
        assert changes.at_once == (f"policy: {self.config.policy}, now {config.policy}",)
        raise ReloadError(*(f"job {number} would not fit" for number in range(1_000)))


def test_reloads_that_are_refused_for_many_reasons_do_not_flood_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        file = ConfigFile(tmp_path / "controller.yaml")
        file.path.write_text(_FILE)
        controller = _Refusing(file.read())
        file.path.write_text(f"{_FILE}policy: ecmp\n")
        reloads = Reloads(file, ServiceManager())
        with reloads.of(controller, None):
            reloads.on_signal()
            await asyncio.gather(*reloads._tasks)
            told = _refusals(caplog)
            assert told[0] == f"not reloaded: {file.path}: job 0 would not fit"
            assert told[-1] == f"not reloaded: and {1_000 - (len(told) - 1)} more"
            for _ in range(5):
                reloads.on_signal()
                await asyncio.gather(*reloads._tasks)
            assert len(told) < len(_refusals(caplog)) < 50

    with caplog.at_level(logging.ERROR, "controller.process.reloads"):
        asyncio.run(test())


def _refusals(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [message for message in caplog.messages if message.startswith("not reloaded: ")]
