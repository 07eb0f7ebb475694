"""A controller that ends while it is started again is started once more."""

import asyncio
from typing import cast

from experiments.scenarios.controller_process import ControllerProcess, ControllerProcessError
from experiments.scenarios.real_hosts.real_network import RealNetwork
from experiments.scenarios.real_hosts.real_session import RealSession
from tests.patience import until
from topologies.specification import StarSpecification

FABRIC = StarSpecification(kind="star", hosts=1, gpus_per_host=1, nics_per_host=1, host_link_gbps=1).build()


class KilledTwice:
    """A controller's process that is killed, and killed again before it listens."""

    address = "127.0.0.1:1"

    def __init__(self) -> None:
        self.starts = 0

    async def wait(self) -> int:
        """Wait for its end, which comes no more after two starts."""
        if self.starts == 2:
            await asyncio.Event().wait()
        return -9

    async def restart(self) -> None:
        """Start it."""
        self.starts += 1
        if self.starts == 1:
            raise ControllerProcessError("the controller did not start: killed")


def test_a_controller_that_is_killed_while_it_starts_is_started_again() -> None:
    async def watched() -> None:
        process = KilledTwice()
        session = RealSession(cast(ControllerProcess, process), {}, RealNetwork([], [], 1.0), FABRIC)
        async with session:
            await until(lambda: process.starts == 2)

    asyncio.run(watched())
