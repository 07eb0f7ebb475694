"""A Tofino whose ports have a host each."""

from collections.abc import Iterable

from topologies.addressing import Address, Interface
from topologies.fabric import Cable, Fabric, SwitchIdentity


def tofino(ports: Iterable[tuple[int, float]], names: Iterable[tuple[int, str]] = (), device_id: int = 1) -> Fabric:
    """Return a fabric of the switch ``leaf`` and a host at each of these ports, by number and Gbit/s."""
    cables = tuple(
        Cable((f"h{host}", "leaf"), gbps * 1e9, 0.0, (0, number)) for host, (number, gbps) in enumerate(ports)
    )
    hosts = tuple(cable.ends[0] for cable in cables)
    nics = tuple((Interface("nic", Address.parse(f"10.{host}.0.1"), 24, None),) for host in range(len(hosts)))
    identity = SwitchIdentity(device_id, 1, tuple(names))
    return Fabric(hosts, ("leaf",), cables, 1, None, nics, (identity,))
