"""The events of a scenario: cables, switches, hosts and the controller go down and come back."""

from experiments.scenarios.event_queue import PS_PER_S, EventQueue, Fault, PortsHeard, Recovery
from experiments.scenarios.interfaces import ControllerSession, NetworkBackend, Probes
from experiments.scenarios.outages import Outages
from workloads.events import ElementState, ScenarioEvent
from workloads.scenario import Scenario


class FaultHandler:
    """Has events happen to a network and to its controller.

    A cable is back at once, and so is a host, whose agent knows nothing then. A switch or a controller needs the
    scenario's ``recovery_s`` from its start to the moment when it serves again: a switch boots and has no links
    meanwhile, then comes up empty, and time stands until it has been filled; a controller has read all switches back
    and been told of all jobs. The controller acts on ports that go down or come up ``reaction_delay_s`` later.
    """

    def __init__(
        self,
        scenario: Scenario,
        outages: Outages,
        network: NetworkBackend,
        session: ControllerSession,
        queue: EventQueue,
        probes: Probes | None,
    ) -> None:
        self._outages = outages
        self._network = network
        self._session = session
        self._queue = queue
        self._probes = probes
        self._recovery_ps = round(scenario.recovery_s * PS_PER_S)
        self._reaction_ps = round(scenario.reaction_delay_s * PS_PER_S)
        for event in scenario.events:
            queue.add(round(event.at_s * PS_PER_S), Fault(event))

    async def happen(self, event: ScenarioEvent) -> None:
        """The time of an event has come."""
        is_up = event.state is ElementState.UP
        if is_up and (event.switch is not None or event.controller is not None):
            self._queue.add(self._network.now_ps + self._recovery_ps, Recovery(event))
        elif event.controller is not None:
            await self._session.lose()
        else:
            await self._set_element(event, up=is_up)

    async def recover(self, event: ScenarioEvent) -> None:
        """A switch or a controller that has come up serves again."""
        if event.controller is not None:
            await self._session.restore(self._now_s)
        else:
            await self._set_element(event, up=True)

    async def _set_element(self, event: ScenarioEvent, *, up: bool) -> None:
        """Switches and hosts notice now, the controller when it hears of it."""
        self._outages.set_element(event, up=up)
        self._network.apply(self._outages)
        self._queue.add(self._network.now_ps + self._reaction_ps, PortsHeard())
        if event.host is not None and self._probes is not None:
            self._probes.set_host(event.host, up=up)
        if event.switch is not None and self._session.is_open:
            # Time goes on once the controller has lost the switch, or has it back and filled.
            await self._session.move_clocks(self._now_s)

    @property
    def _now_s(self) -> float:
        return self._network.now_ps / PS_PER_S
