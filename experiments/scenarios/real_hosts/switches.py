"""What a run on real hosts needs of its switches: the emulator, or Open vSwitch."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

from controller.switch_addresses import OpenFlowConfig, SwitchAddress
from topologies.ecmp import FabricHash


class SwitchesError(Exception):
    """The switches of a run do not start, or have ended for good; the message says why."""


class CountersAwayError(Exception):
    """The switches do not tell what they have counted now; the message says why."""


@dataclass(frozen=True)
class SwitchPlaces:
    """How a controller finds the switches, by the names of its configuration's keys.

    ``hash`` is None where it is for the scenario to say whether the hash of the switches is known.
    """

    switches: tuple[SwitchAddress, ...]
    openflow: OpenFlowConfig = field(default_factory=OpenFlowConfig)
    hash: FabricHash | None = None


class SwitchCounters(Protocol):
    """Counters of switches, which may begin from 0 again when a switch is started again."""

    async def read(self) -> Mapping[tuple[str, int], Sequence[tuple[int, int]]]:
        """Return the bytes and packets that each port has sent, by level; a port is a switch and a number.

        Raises:
            CountersAwayError: A switch does not answer.
        """


class Switches(Protocol):
    """The switches of a fabric with real hosts, as an async context manager."""

    async def __aenter__(self) -> Self:
        """Start them. Raises SwitchesError where they do not start."""

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End them."""

    def places(self) -> SwitchPlaces:
        """Return how a controller finds them."""

    def want_links_down(self, links: frozenset[int]) -> None:
        """Take these links down, and bring all others up, soon."""

    def counters(self) -> AbstractAsyncContextManager[SwitchCounters]:
        """Return their counters, to be read while the context lasts."""
