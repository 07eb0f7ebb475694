"""What a run needs of the network that carries its flows, of its controller, and of its hosts' probes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from experiments.scenarios.results import LoadSample
from workloads.replay import StartTransfer

if TYPE_CHECKING:
    from experiments.scenarios.outages import Outages
    from experiments.scenarios.run_record import PlanSummary
    from experiments.scenarios.transfers import TransferEnd


class NetworkBackend(Protocol):
    """Carries the flows of a run's jobs and keeps its time."""

    @property
    def now_ps(self) -> int:
        """Virtual time."""

    def start(self, job: str, transfer: StartTransfer) -> None:
        """Let the flows of a transfer send now."""

    async def run(self, until_ps: int) -> "Sequence[TransferEnd]":
        """Let time pass until something arrives, at most until a time; returns the transfers that have ended then."""

    def apply(self, outages: "Outages") -> None:
        """From now on these elements are down, and all others up."""

    def sample_loads(self) -> LoadSample:
        """How busy every link was with each level since the last sample."""


@dataclass(frozen=True, slots=True)
class ControllerAnswer:
    """The number of the Plan in force, 0 before the first, and when the controller next acts by itself, if ever."""

    plan_number: int
    next_timer_s: float | None


class ControllerSession(Protocol):
    """A run's controller. Between ``lose`` and ``restore`` there is none: ``is_open`` is False."""

    @property
    def is_open(self) -> bool:
        """Whether there is a controller. Where there is none, only ``restore`` may be called."""

    @property
    def renewal_s(self) -> float | None:
        """How often the run is to move the clocks, so that leases are renewed; None where there are no leases."""

    async def move_clocks(self, now_s: float) -> None:
        """Move the clocks of the controller and of the host libraries, which renew the leases that are due."""

    async def tell(
        self, now_s: float, arrived: Iterable[str], departed: Iterable[str], *, hears_ports: bool
    ) -> ControllerAnswer:
        """Register the jobs that have arrived, withdraw those that have departed, and have the rest planned for.

        ``hears_ports``: the controller is to act on the ports that are down now.
        """

    async def carry_out(self) -> "PlanSummary | None":
        """Have hosts and network do what the Plan in force says; returns the Plan, None where it is for no jobs."""

    def delay_s(self, job: str, now_s: float) -> float:
        """Seconds for which the Plan in force has a job hold an iteration that could begin now."""

    async def lose(self) -> None:
        """The controller crashes; returns when all jobs have noticed."""

    async def restore(self, now_s: float, /) -> None:
        """Start a controller that knows nothing; returns when all registered jobs have registered again."""


class Probes(Protocol):
    """The probes of a run's hosts."""

    @property
    def next_turn_s(self) -> float:
        """When hosts are to have their next turn."""

    async def exchange(self, now_s: float) -> bool:
        """Tell the controller of the probes that have arrived; whether there was anything to tell."""

    def send(self) -> None:
        """Send the probes that are due."""

    def set_host(self, host: str, *, up: bool) -> None:
        """A host dies with its agent, or is back with one that knows nothing."""
