"""A run's session with a controller of the same process."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from controller.planning.decision import Decision
from experiments.scenarios.in_process import InProcessController
from experiments.scenarios.interfaces import ControllerAnswer
from experiments.scenarios.outages import Outages
from experiments.scenarios.run_record import PlanSummary
from experiments.scenarios.simulated_network import SimulatedNetwork
from hostlib.start_shift import StartShift
from workloads.jobs import TrainingJob


class InProcessSession:
    """A run's session with controllers of the same process, each made by ``new_controller``.

    The controller decides where a live one would: when jobs have come or gone, or links are used or left.
    """

    renewal_s = None

    def __init__(
        self,
        new_controller: Callable[[], InProcessController],
        jobs: Sequence[TrainingJob],
        network: SimulatedNetwork,
        outages: Outages,
        alone_s: Mapping[str, float],
    ) -> None:
        self._new_controller = new_controller
        self._controller: InProcessController | None = new_controller()
        self._jobs = {job.name: job for job in jobs}
        self._network = network
        self._outages = outages
        self._alone_s = alone_s
        self._shifts = {job.name: StartShift(job.specification.arrival_s) for job in jobs}
        self._time_shifts_s: Mapping[str, float | None] = {}
        self._registered: dict[str, TrainingJob] = {}
        self._decision: Decision | None = None
        self._has_changed = False

    @property
    def is_open(self) -> bool:
        """Whether there is a controller."""
        return self._controller is not None

    async def move_clocks(self, now_s: float) -> None:
        """Nothing is to be moved: there are no leases."""

    async def tell(
        self, now_s: float, arrived: Iterable[str], departed: Iterable[str], *, hears_ports: bool
    ) -> ControllerAnswer:
        """See ControllerSession."""
        controller = self._controller
        assert controller is not None
        for name in arrived:
            self._registered[name] = self._jobs[name]
            controller.register(self._jobs[name])
            self._has_changed = True
        for name in departed:
            del self._registered[name]
            controller.deregister(name)
            self._has_changed = True
        if hears_ports and controller.links is not None:
            controller.links.set_port_states(self._outages.port_states, now_s)
        if self._has_changed or controller.is_rerouted(now_s):
            self._decision = controller.decide(now_s)
            self._has_changed = False
        next_timer_s = None if controller.links is None else controller.links.next_release_s(now_s)
        return ControllerAnswer(0 if self._decision is None else self._decision.number, next_timer_s)

    async def carry_out(self) -> PlanSummary | None:
        """Let flows travel as the Decision in force says, and jobs keep its time shifts."""
        decision, controller = self._decision, self._controller
        if decision is None or controller is None:
            return None
        self._time_shifts_s = {job.name: job.time_shift_s for job in decision.plan.jobs}
        self._network.follow(decision, controller.routing)
        return PlanSummary.of(decision) if decision.plan.jobs else None

    def delay_s(self, job: str, now_s: float) -> float:
        """See ControllerSession."""
        return self._shifts[job].delay_s(now_s, self._time_shifts_s.get(job), self._alone_s[job])

    async def lose(self) -> None:
        """The controller crashes."""
        self._controller = None

    async def restore(self, _: float) -> None:
        """Start a controller that knows no job, nor a link that has flapped, and have every job register again."""
        self._controller = self._new_controller()
        self._has_changed = True
        for job in self._registered.values():
            self._controller.register(job)
