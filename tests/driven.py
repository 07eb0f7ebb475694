"""A connection to a controller in driven time."""

from collections.abc import Iterable

from experiments.scenarios.driven.client import DrivenTime, Settled
from hostlib.connection import Connection


class DrivenConnection(Connection):
    """A connection over which tests also move the controller's clock."""

    def __init__(self, address: str, owner_token: str | None = None, deadline_s: float = 10.0) -> None:
        super().__init__(address, owner_token, deadline_s)
        self._time = DrivenTime(address)

    async def close(self) -> None:
        """Close both connections."""
        self._time.close()
        await super().close()

    async def settle(self, time_s: float = 0.0, switches_down: Iterable[str] = ()) -> Settled:
        """See ``DrivenTime``."""
        return await self._time.settle(time_s, switches_down)
