"""Single packets over emulated fabrics, and what becomes of them."""

from dataclasses import asdict

from emulator.fabric import EmulatedFabric
from emulator.observations import Capture
from tests.emulator.fabrics import advance
from topologies.fabric import Fabric

LATER_PS = 10**9


def uplink(fabric: Fabric, host: str) -> int:
    """The link out of a host."""
    return fabric.nics[host][0].link


def send(result: EmulatedFabric, host: str, packet: bytes, length: int | None = None) -> tuple[Capture, ...]:
    """Let a packet come from a host; what reaches NICs afterwards."""
    result.inject(uplink(result.fabric, host), packet, length)
    assert advance(result, result.now_ps + LATER_PS) == []
    return result.captured()


def drops(result: EmulatedFabric, switch: str) -> dict[str, int]:
    """What a switch has dropped, by reason, without the reasons there were not."""
    return {reason: count for reason, count in asdict(result.drops(switch)).items() if count}


def links_up(result: EmulatedFabric) -> set[tuple[str, str]]:
    """The ends of the links that packets pass."""
    return {(link.source, link.destination) for link in result.fabric.links if result.is_up(link.index)}
