"""One switch, with a port for each number, and behind every port a host of its own."""

from collections.abc import Sequence

from topologies.fabric import Cable, Fabric, SwitchIdentity

LONE_SWITCH = "s1"
"""Its name."""

_RATE_BPS = 100e9


def lone_switch(ports: Sequence[int], device_id: int = 1, rate_bps: float = _RATE_BPS) -> Fabric:
    """Return a fabric of one switch, ``s1``.

    Args:
        ports: The numbers of its ports, each once.
        device_id: Its P4Runtime device.
        rate_bps: What each port carries, in bits per second.

    Raises:
        ValueError: There are no ports, or two of one number.
    """
    if not ports:
        raise ValueError("a switch has at least one port")
    if len(set(ports)) < len(ports):
        raise ValueError(f"expected each port once, got {', '.join(map(str, ports))}")
    hosts = tuple(f"port{port}" for port in ports)
    return Fabric(
        hosts=hosts,
        switches=(LONE_SWITCH,),
        cables=tuple(
            Cable((host, LONE_SWITCH), rate_bps, 0.0, (0, port)) for host, port in zip(hosts, ports, strict=True)
        ),
        gpus_per_host=1,
        identities=(SwitchIdentity(device_id, 1),),
    )
