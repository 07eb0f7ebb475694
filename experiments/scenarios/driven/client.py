"""The client of driven time, by which a run moves its controller's clock."""

from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from experiments.scenarios.driven import driven_time_pb2 as wire
from experiments.scenarios.driven.service import SETTLE
from hostlib.channel import Channel
from hostlib.credentials import Credentials


@dataclass(frozen=True, slots=True)
class Settled:
    """The state of a controller with nothing pending.

    ``plan_number`` is that of the Plan in force, 0 before the first. ``next_timer_s`` is when the controller next acts
    by itself, None where nothing waits; ``num_rules`` counts the flow rules on all switches.
    """

    plan_number: int
    next_timer_s: float | None
    num_rules: int


class DrivenTime:
    """Moves the clock of the controller at ``address``; an async context manager, or to be closed."""

    def __init__(self, address: str) -> None:
        self._channel = Channel(address, Credentials())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()

    async def settle(
        self,
        time_s: float = 0.0,
        switches_down: Iterable[str] = (),
        ports_down: Iterable[tuple[str, int]] | None = None,
    ) -> Settled:
        """Move the controller's clock to ``time_s`` and wait until nothing is pending; there is no deadline.

        Args:
            time_s: Virtual time.
            switches_down: Switches that the controller does not wait for.
            ports_down: The ports that are down, by switch and number; the controller waits until the switches have
                reported the same. None: it does not wait for reports.

        Raises:
            RefusedError: The clock would go back, a switch is unknown or refuses, or the policy has made no Plan.
            UnreachableError: No controller answers.
        """
        request = wire.SettleRequest(time_s=time_s, switches_down=switches_down)
        if ports_down is not None:
            ports = (wire.SwitchPort(switch=switch, port=port) for switch, port in ports_down)
            request.ports_down.MergeFrom(wire.PortsDown(ports=ports))
        response = await self._channel.call(SETTLE, request, deadline_s=None)
        next_timer_s = response.next_timer_s if response.HasField("next_timer_s") else None
        return Settled(response.plan_number, next_timer_s, response.num_rules)
