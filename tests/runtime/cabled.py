"""Network namespaces that a cable joins, with addresses as a fabric gives them: hosts of a network for islands."""

from collections.abc import Iterator
from contextlib import contextmanager

from runtime.substrates.interface import NetworkHost
from tests.namespaces import Namespaces, namespaces

NAMES = ("h0", "h2")
"""Of hosts that are not at the same switch of the controller that ``tests.hostlib.served`` serves."""
_INTERFACE = "eth0"


@contextmanager
def two_network_hosts() -> Iterator[tuple[dict[int, NetworkHost], Namespaces]]:
    """Two hosts by the numbers 0 and 1; the test is skipped where there can be none."""
    with namespaces(*NAMES) as made:
        made.cable((NAMES[0], _INTERFACE), (NAMES[1], _INTERFACE))
        hosts = {}
        for number, name in enumerate(NAMES):
            address = f"10.0.{name[1:]}.1"
            made.ip(name, "address", "add", f"{address}/8", "dev", _INTERFACE)
            hosts[number] = NetworkHost(name, address, tuple(made.command(name)))
        yield hosts, made


def sent_bytes(made: Namespaces, name: str) -> int:
    """Bytes that a host has sent over its cable."""
    for line in made.run(name, "cat", "/proc/net/dev").splitlines():
        interface, _, counts = line.partition(":")
        if interface.strip() == _INTERFACE:
            return int(counts.split()[8])
    raise AssertionError(f"{name} has no {_INTERFACE}")
