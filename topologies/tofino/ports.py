"""The ports of a first-generation Tofino that a fabric's cables need, and what the chip does not have.

A port's number is its device port, by which P4Runtime knows it where the server translates no numbers: two bits of
pipe, five of port group, two of lane. Facts are from the SDE in github.com/p4lang/open-p4studio, under
``pkgsrc/bf-drivers/src``: ``traffic_mgr/init/tm_tofino.h`` (groups, lanes, queues) and
``port_mgr/port_mgr_tof1/port_mgr_tof1_port.c`` (speeds, and the lanes at which they begin). Groups 16 and 17 of a pipe
have no cables: there are the ports to itself, and in pipe 1 port 192, to the CPU.
"""

from dataclasses import dataclass
from fractions import Fraction

from topologies.fabric import Fabric

PIPES = 4
GROUPS_PER_PIPE = 18
LANES_PER_GROUP = 4
QUEUES_PER_GROUP = 32

_CABLED_PER_PIPE = 64
_NUMBERS_PER_PIPE = 128
CABLED_PORTS = tuple(
    range(pipe * _NUMBERS_PER_PIPE, pipe * _NUMBERS_PER_PIPE + _CABLED_PER_PIPE) for pipe in range(PIPES)
)
"""The numbers of ports that cables may reach, by pipe."""

_LANES_BY_GBPS = {Fraction(gbps): lanes for gbps, lanes in ((1, 1), (10, 1), (25, 1), (40, 4), (50, 2), (100, 4))}
_MOST_GBPS = max(_LANES_BY_GBPS)


class TofinoPortError(ValueError):
    """A cable needs a port that Tofino does not have."""

    def __init__(self, switch: str, port: str, problem: str) -> None:
        super().__init__(f"switch {switch}: port {port}: {problem}")


@dataclass(frozen=True, slots=True)
class TofinoPort:
    """A port with a cable: its device port, its name, and what its cable carries in bit/s.

    ``name`` is the number where the fabric has no other.
    """

    number: int
    name: str
    rate_bps: float

    @property
    def pipe(self) -> int:
        """The pipe, 0 to 3."""
        return self.number // _NUMBERS_PER_PIPE

    @property
    def group(self) -> int:
        """The port group inside the pipe."""
        return self.number % _NUMBERS_PER_PIPE // LANES_PER_GROUP

    @property
    def first_lane(self) -> int:
        """The first of its lanes inside the group."""
        return self.number % LANES_PER_GROUP

    @property
    def lanes(self) -> int:
        """How many lanes it takes: those of its speed, or the fewest of a faster port that is shaped to the cable."""
        return _LANES_BY_GBPS.get(self._gbps) or min(
            lanes for gbps, lanes in _LANES_BY_GBPS.items() if gbps > self._gbps
        )

    @property
    def shaped_bps(self) -> int | None:
        """The rate to shape it to, in whole kbit/s, as its cable is slower than any port at it; None: line rate."""
        return None if self._gbps in _LANES_BY_GBPS else round(self.rate_bps / 1000) * 1000

    @property
    def _gbps(self) -> Fraction:
        return Fraction(self.rate_bps) / 10**9


def tofino_ports(fabric: Fabric, switch: str) -> tuple[TofinoPort, ...]:
    """Return the ports of a switch that have cables, by number.

    Raises:
        TofinoPortError: A Tofino has no such port, none so fast, or no lane for it beside the others.
    """
    names = fabric.port_names[switch]
    links = sorted(fabric.links_from[switch], key=lambda link: link.source_port)
    ports = tuple(
        TofinoPort(link.source_port, names.get(link.source_port, str(link.source_port)), link.rate_bps)
        for link in links
    )
    by_number = {port.number: port for port in ports}
    for port in ports:
        if problem := _problem(port, by_number):
            raise TofinoPortError(switch, _shown(port), problem)
    return ports


def _problem(port: TofinoPort, by_number: dict[int, TofinoPort]) -> str | None:
    """Say what a port needs that the chip does not have.

    Each lane brings the eight queues of one port, so ports that fit by their lanes have queues too.
    """
    if not any(port.number in numbers for numbers in CABLED_PORTS):
        ranges = ", ".join(f"{numbers[0]} to {numbers[-1]}" for numbers in CABLED_PORTS)
        return f"Tofino has queues for cables only at the numbers {ranges}"
    gbps = port.rate_bps / 1e9
    if gbps > _MOST_GBPS:
        return f"its cable has {gbps:g} Gbit/s, a port of Tofino at most {_MOST_GBPS}"
    if port.number % port.lanes:
        return f"{gbps:g} Gbit/s takes {port.lanes} lanes, so expected a number that {port.lanes} divides"
    for number in range(port.number + 1, port.number + port.lanes):
        if number in by_number:
            return (
                f"{gbps:g} Gbit/s takes {port.lanes} lanes, among them that of port {_shown(by_number[number])}; "
                f"a group has {LANES_PER_GROUP} lanes and {QUEUES_PER_GROUP} queues"
            )
    return None


def _shown(port: TofinoPort) -> str:
    number = str(port.number)
    return number if port.name == number else f"{port.name} (number {number})"
