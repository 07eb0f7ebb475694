"""The events of a scenario on the emulator: cables, switches, hosts and the controller go down and come back."""

from emulator.fabric import PS_PER_S, EmulatedFabric
from experiments.scenarios.calendar import Calendar, Fault, PortsHeard, Recovery
from experiments.scenarios.dialogue import Dialogue
from experiments.scenarios.probing import Probing
from workloads.events import ElementState, ScenarioEvent
from workloads.scenario import Scenario


class Faults:
    """Has events happen to a fabric and to its controller.

    A cable is back at once, and so is a host, whose agent knows nothing then. A switch or a controller needs the
    scenario's ``recovery_s`` from its start to the moment when it serves again: a switch boots and has no links
    meanwhile, then comes up empty, and time stands until it has been filled; a controller has read all switches back
    and been told of all jobs. What ports go down or come up, the controller is to act on ``reaction_delay_s`` later.
    """

    def __init__(
        self,
        scenario: Scenario,
        emulated: EmulatedFabric,
        dialogue: Dialogue,
        calendar: Calendar,
        probing: Probing | None,
    ) -> None:
        self._emulated = emulated
        self._dialogue = dialogue
        self._calendar = calendar
        self._probing = probing
        self._cut: set[int] = set()
        self._hosts_down: set[str] = set()
        self._reads_ports = scenario.reads_ports
        self._recovery_ps = round(scenario.recovery_s * PS_PER_S)
        self._reaction_ps = round(scenario.reaction_delay_s * PS_PER_S)
        for event in scenario.events:
            calendar.add(round(event.at_s * PS_PER_S), Fault(event))

    async def happen(self, event: ScenarioEvent) -> None:
        """An event's time has come."""
        is_up = event.state is ElementState.UP
        if event.link is not None:
            (self._cut.discard if is_up else self._cut.add)(
                self._emulated.fabric.links_between(*event.link)[event.parallel] // 2
            )
            self._set_cables()
        elif event.host is not None:
            (self._hosts_down.discard if is_up else self._hosts_down.add)(event.host)
            self._set_cables()
            if self._probing is not None:
                (self._probing.restore if is_up else self._probing.lose)(event.host)
        elif is_up:
            self._calendar.add(self._emulated.now_ps + self._recovery_ps, Recovery(event))
        elif event.switch is not None:
            self._dialogue.switches_down.add(event.switch)
            self._emulated.set_switch(event.switch, up=False)
            self._have_ports_heard()
            await self._notice()
        else:
            await self._dialogue.lose()

    async def recover(self, event: ScenarioEvent) -> None:
        """A switch or a controller that has come up serves again."""
        if event.switch is not None:
            self._dialogue.switches_down.remove(event.switch)
            self._emulated.set_switch(event.switch, up=True)
            self._have_ports_heard()
            await self._notice()
        else:
            await self._dialogue.restore(self._now_s)

    @property
    def ports_down(self) -> list[tuple[str, int]] | None:
        """The ports of switches with power that are down; None where the controller is not to hear of them."""
        if not self._reads_ports:
            return None
        switches = self._emulated.switches.values()
        return [
            (switch.name, port)
            for switch in switches
            if switch.power.is_on
            for port in switch.ports
            if not switch.ports.is_up(port)
        ]

    def _set_cables(self) -> None:
        """Cables are up that nobody has cut and at which no host is down."""
        for link in self._emulated.fabric.links:
            is_up = link.index // 2 not in self._cut and self._hosts_down.isdisjoint((link.source, link.destination))
            self._emulated.set_link(link.index, up=is_up)
        self._have_ports_heard()

    def _have_ports_heard(self) -> None:
        self._calendar.add(self._emulated.now_ps + self._reaction_ps, PortsHeard())

    async def _notice(self) -> None:
        """Time goes on once the controller, if there is one, has lost the switch, or has it back and filled."""
        if self._dialogue.is_open:
            await self._dialogue.move_clocks(self._now_s)

    @property
    def _now_s(self) -> float:
        return self._emulated.now_ps / PS_PER_S
