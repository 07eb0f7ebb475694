"""The interfaces of the run loop: network, controller, the hosts' probes, and commands."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from experiments.scenarios.results import LoadSample
from workloads.replay import StartTransfer

if TYPE_CHECKING:
    from experiments.scenarios.outages import Outages
    from experiments.scenarios.run_record import PlanSummary
    from experiments.scenarios.transfers import NetworkEvent


class NetworkBackend(Protocol):
    """Carries the flows of a run's jobs, and owns virtual time."""

    @property
    def now_ps(self) -> int:
        """Virtual time in picoseconds."""

    def start(self, job: str, transfers: Sequence[StartTransfer]) -> None:
        """Start sending the flows of transfers of a job now."""

    async def run(self, until_ps: int) -> "Sequence[NetworkEvent]":
        """Advance time until something arrives, at most to ``until_ps``; return what ends then."""

    def apply(self, outages: "Outages") -> None:
        """Take these elements down, and bring all others up."""

    def sample_loads(self) -> LoadSample | None:
        """Return the utilisation of every link by level since the last sample; None where there is no new one."""


@dataclass(frozen=True, slots=True)
class ControllerAnswer:
    """The controller's answer to an update.

    ``plan_number`` is that of the Plan in force, 0 before the first; ``next_timer_s`` is when the controller next acts
    by itself, None for never.
    """

    plan_number: int
    next_timer_s: float | None


class ControllerSession(Protocol):
    """A run's connection with its controller. Between ``crash`` and ``restart`` there is none, and it is not open."""

    @property
    def is_open(self) -> bool:
        """Whether there is a controller; without one, only ``restart`` may be called."""

    @property
    def renewal_s(self) -> float | None:
        """How often the run must move the clocks, so that leases are renewed; None where there are no leases."""

    async def move_clocks(self, now_s: float) -> None:
        """Move the clocks of the controller and of the host libraries, which renew the leases that are due."""

    async def update(
        self, now_s: float, arrived: Iterable[str], departed: Iterable[str], *, reports_ports: bool
    ) -> ControllerAnswer:
        """Register and withdraw jobs, and have the controller plan for those that remain.

        Args:
            now_s: Virtual time.
            arrived: Names of the jobs to register.
            departed: Names of the jobs to withdraw.
            reports_ports: Whether the controller is to act on the ports that are down now.
        """

    async def apply_plan(self) -> "PlanSummary | None":
        """Apply the Plan in force to hosts and network, and return its summary; None where it is for no jobs."""

    def delay_s(self, job: str, now_s: float) -> float:
        """Return for how long the Plan in force holds an iteration that could begin now."""

    async def crash(self) -> None:
        """Kill the controller; return when all jobs have noticed."""

    async def restart(self, now_s: float, /) -> None:
        """Start a controller with an empty memory; return when all registered jobs have registered again."""


class Programs(Protocol):
    """The commands of a run's jobs, where hosts are real."""

    def runs(self, job: str) -> bool:
        """Return whether a job has a command, which is run in place of its phases."""

    def start(self, job: str) -> None:
        """Start the command of a job at its hosts now."""


class Probes(Protocol):
    """The probes of a run's hosts."""

    @property
    def next_round_s(self) -> float:
        """When hosts next send and receive probes."""

    async def exchange(self, now_s: float) -> bool:
        """Report the probes that have arrived to the controller; return whether there was anything to report."""

    def send(self) -> None:
        """Send the probes that are due."""

    def set_host(self, host: str, *, up: bool) -> None:
        """Take a host down with its agent, or bring it up with an agent that has an empty memory."""
