"""The real hosts of ``trainyard emulator``: interfaces of --wire, or the namespaces that --hosts makes.

Bad input ends the command with status 2.
"""

import os
import subprocess  # nosec B404 # sets hosts up, as their topology says
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from topologies.fabric import Fabric
from topologies.namespaces.fabric_namespaces import FabricNamespaces
from topologies.namespaces.host_network import NetworkError
from topologies.namespaces.running_hosts import recorded
from trainyard.cli.emulator_inputs import Given
from trainyard.cli.exits import fail, refuse

if TYPE_CHECKING:
    # The emulator brings LLVM and NumPy, which bad input and --help do not wait for.
    from emulator.standalone import Wires

_MTU_BYTES = 1500
_P4LANG_QUEUE_BYTES = 100_000
"""Of topologies of p4lang's tutorials: about 64 packets, as on BMv2, whose exercises watch how long a queue is."""
_NAMED_NAMESPACES = Path("/var/run/netns")


@dataclass(frozen=True, slots=True)
class WireOptions:
    """What the options of the command say of real hosts: ``interfaces`` by host and number of its NIC, or ``hosts``."""

    interfaces: Mapping[tuple[str, int], str]
    hosts: bool
    netns: str | None
    mtu_bytes: int | None
    queue_bytes: int | None
    real_time: bool

    @property
    def are_wanted(self) -> bool:
        """Whether hosts are real."""
        return bool(self.interfaces or self.hosts)

    def check(self) -> None:
        """Refuse options that do not go together."""
        if self.hosts and (self.interfaces or self.netns):
            refuse("--hosts: expected without --wire and --netns, as it makes hosts with interfaces of their own")
        if self.hosts and os.geteuid():
            refuse("--hosts: hosts are network namespaces, which need root")
        if not self.are_wanted and (self.netns or self.mtu_bytes or self.queue_bytes or self.real_time):
            refuse("--netns, --mtu, --queue-bytes and --real-time: expected with --hosts or --wire only")

    @contextmanager
    def attached(self, given: Given) -> Iterator["Wires | None"]:
        """Make the hosts that are wanted, until the block ends; yields their wires, None without real hosts."""
        from emulator.standalone import Wires
        from emulator.wired_fabric import QUEUE_BYTES

        queue_bytes = self.queue_bytes or (_P4LANG_QUEUE_BYTES if given.is_p4lang else QUEUE_BYTES)
        more = self.mtu_bytes, queue_bytes, self.real_time
        if self.hosts:
            with _made_hosts(given, self.mtu_bytes or _MTU_BYTES) as made:
                yield Wires(made.wires, made.fabric_file, *more)
            return
        namespace = None
        if self.netns is not None:
            namespace = Path(self.netns) if "/" in self.netns else _NAMED_NAMESPACES / self.netns
        yield Wires(self.interfaces, namespace, *more) if self.interfaces else None


def read_interfaces(fabric: Fabric, wires: Sequence[str]) -> dict[tuple[str, int], str]:
    """Return the interfaces (``NIC=INTERFACE``) by host and number of its NIC."""
    found: dict[tuple[str, int], str] = {}
    for wire in wires:
        nic, _, interface = wire.partition("=")
        host, _, number = nic.rpartition(".")
        if not (interface and number.isdecimal() and int(number) < len(fabric.nics.get(host, ()))):
            hosts = ", ".join(f"{nic.host}.{nic.index}" for nics in fabric.nics.values() for nic in nics)
            refuse(f"--wire: expected NIC=INTERFACE with one of the NICs {hosts}, got {wire!r}")
        if (host, int(number)) in found:
            refuse(f"--wire: {nic} has two interfaces")
        if interface in found.values():
            refuse(f"--wire: {interface} is the interface of two NICs")
        found[host, int(number)] = interface
    return found


@contextmanager
def _made_hosts(given: Given, mtu_bytes: int) -> Iterator[FabricNamespaces]:
    """Make the hosts as network namespaces, for other commands to find, until the block ends."""
    with ExitStack() as stack:
        try:
            made = FabricNamespaces(given.fabric, mtu_bytes, are_plain=given.is_p4lang)
            namespaces = stack.enter_context(made)
            stack.enter_context(recorded(namespaces))
            for host, commands in given.commands.items():
                for command in commands:
                    _set_up(host, namespaces.command(host, "sh", "-c", command), command)
        except (NetworkError, OSError) as error:
            fail(f"--hosts: {error}")
        yield namespaces


def _set_up(host: str, entering: list[str], command: str) -> None:
    """Run a command in a host; one that fails is told, as the host may do without."""
    # What the command leaves running would keep a pipe open.
    with TemporaryFile("w+", errors="replace") as errors:
        ended = subprocess.run(entering, stdout=subprocess.DEVNULL, stderr=errors, check=False)  # nosec B603 # its file's
        errors.seek(0)
        said = errors.read().strip()
    if ended.returncode:
        print(f"{host}: {command}: {said or f'exit status {ended.returncode}'}", file=sys.stderr)
