"""The file of ``trainyard runtime serve`` that says which hosts run on hosts of a network: a line for each.

A line holds the number of the host, its name on the network, its address there, and where a command has to begin with
something to run there, that: ``0 h0 10.0.0.1 ip netns exec h0``.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from trainyard.cli.exits import refuse

if TYPE_CHECKING:
    from runtime.substrates.interface import NetworkHost

_FORM = "expected a new number, a name and an address, then what a command there begins with"


def read_network_hosts(path: Path) -> "dict[int, NetworkHost]":
    """Return the hosts of a file by number, or end the command."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        refuse(f"{path}: cannot be read: {error.strerror if isinstance(error, OSError) else 'it is no UTF-8 text'}")
    found: dict[int, NetworkHost] = {}
    for number, line in enumerate(lines, start=1):
        words = line.split()
        if not words:
            continue
        if len(words) < 3 or not words[0].isdecimal() or int(words[0]) in found:
            refuse(f"{path}:{number}: {_FORM}")
        try:
            found[int(words[0])] = _network_host(words[1:])
        except ValueError as error:
            refuse(f"{path}:{number}: {error}")
    return found


def _network_host(words: list[str]) -> "NetworkHost":
    from runtime.substrates.interface import NetworkHost

    name, address, *command = words
    return NetworkHost(name, address, tuple(command))
