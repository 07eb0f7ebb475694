"""What a running fabric tells of itself: its ports, and who is heard at each. Pure data and functions."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from controller.links.port_states import Port
from topologies.addressing import Address, MacAddress
from topologies.targets import Target


@dataclass(frozen=True, slots=True)
class SurveyedPort:
    """A port: its name, whether it is up, and its speed, as far as the switch tells."""

    name: str
    is_up: bool
    gbps: float | None = None


@dataclass(frozen=True, slots=True)
class SurveyedSwitch:
    """A switch: where it is controlled, its ports by number, and what it is by the program that it runs."""

    name: str
    address: str
    device_id: int
    gnmi: str | None
    ports: Mapping[int, SurveyedPort]
    target: Target = Target.BMV2


@dataclass(frozen=True, slots=True)
class SurveyedHost:
    """What a host has said at a port: addresses by ARP, its name and its NIC's by LLDP; empty what it did not."""

    name: str = ""
    nic: str = ""
    mac: MacAddress | None = None
    addresses: tuple[Address, ...] = ()


@dataclass(frozen=True, slots=True)
class Survey:
    """A fabric as it was found.

    ``heard`` has the port whose beacon each port has heard. ``hosts`` has those that have spoken, by port.
    """

    switches: tuple[SurveyedSwitch, ...]
    heard: Mapping[Port, Port] = field(default_factory=dict)
    hosts: Mapping[Port, SurveyedHost] = field(default_factory=dict)

    @property
    def cables(self) -> tuple[tuple[Port, Port], ...]:
        """The cables between switches: pairs of ports that hear each other, in order."""
        return tuple(
            sorted((sender, receiver) for receiver, sender in self.heard.items() if self._hears(sender, receiver))
        )

    @property
    def one_way(self) -> tuple[tuple[Port, Port], ...]:
        """What one port hears of another, which does not hear it: no cable of ours."""
        return tuple(
            sorted((sender, receiver) for receiver, sender in self.heard.items() if self.heard.get(sender) != receiver)
        )

    @property
    def silent(self) -> tuple[Port, ...]:
        """The ports that are up, and at which nobody was heard."""
        spoken = self.heard.keys() | self.hosts.keys()
        return tuple(
            (switch.name, number)
            for switch in self.switches
            for number, port in sorted(switch.ports.items())
            if port.is_up and (switch.name, number) not in spoken
        )

    def _hears(self, sender: Port, receiver: Port) -> bool:
        return self.heard.get(sender) == receiver and sender < receiver
