"""The hosts of a fabric as network namespaces, whose cables end in one more: the fabric's."""

import contextlib
import os
import shutil
import subprocess  # nosec B404 # runs our own programs and iproute2, without a shell
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from topologies.fabric import Fabric, Nic
from topologies.namespaces import enter, keeper
from topologies.namespaces.frame_counts import frame_bytes
from topologies.namespaces.host_network import DEFAULT_MTU_BYTES, NetworkError
from topologies.namespaces.host_nics import host_nics
from topologies.namespaces.hosts_file import hosts_file
from topologies.namespaces.ownership import NAMESPACES, Ownership, remove, remove_abandoned

_INTERFACES = "eth"


class FabricNamespaces:
    """A network namespace for every host, and one for the switches' ends of the hosts' cables, as a context manager.

        with FabricNamespaces(fabric) as namespaces:
            subprocess.run(namespaces.command("h0", "ping", "-c", "1", "h1"))

    Something has to pass frames between the interfaces ``wires``, in the namespace ``fabric_file``: the emulator, with
    ``trainyard emulator --wire``. A process of its own keeps the namespaces and removes them when this one ends, even
    by SIGKILL. On entry, the namespaces of owners that are gone are removed. Without root all of it is inside
    namespaces for users and mounts.

    Args:
        fabric: Its hosts get namespaces; its rates limit what hosts send.
        mtu_bytes: The longest IP packet.
        receiving_core: The core on which hosts take what arrives; None: that of the process that passes frames.
        has_switch_cables: Whether the cables between switches are pairs of interfaces, too, as Open vSwitch needs them;
            the emulator has them inside.
        are_plain: Whether hosts have the addresses of their subnets, and nothing else. Otherwise they reach all others
            through switches that route by addresses alone.
    """

    def __init__(
        self,
        fabric: Fabric,
        mtu_bytes: int = DEFAULT_MTU_BYTES,
        *,
        receiving_core: int | None = None,
        has_switch_cables: bool = False,
        are_plain: bool = False,
    ) -> None:
        self.fabric = fabric
        self.mtu_bytes = mtu_bytes
        self.receiving_core = receiving_core
        self.has_switch_cables = has_switch_cables
        self.are_plain = are_plain
        self.is_rootless = os.geteuid() != 0
        self._ownership = Ownership.of_this_process()
        self._names = {host: self._ownership.host_name(host, number) for number, host in enumerate(fabric.hosts)}
        self.fabric_name = self._ownership.fabric_name
        self._keeper: subprocess.Popen[str] | None = None
        self._hosts_file: IO[str] | None = None

    def __enter__(self) -> Self:
        """Make the namespaces. Raises NetworkError where that is not permitted, or something is missing."""
        if self._keeper is not None:
            raise NetworkError("these namespaces are there already")
        for program in ("ip", "tc"):
            if shutil.which(program) is None:
                raise NetworkError(f"{program} is not found on PATH: namespaces need iproute2")
        if not self.is_rootless:
            remove_abandoned()
        self._start_keeper()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the namespaces, if they are there; programs in them should have ended before.

        Raises:
            NetworkError: Some cannot be removed.
        """
        if self._keeper is None or self._hosts_file is None:
            return
        kept, self._keeper = self._keeper, None
        self._hosts_file.close()
        _, complaint = kept.communicate("\n")
        if kept.returncode < 0:
            remove((*self._names.values(), self.fabric_name))  # a signal has ended it before it could
        elif kept.returncode:
            raise NetworkError(complaint.strip())

    @property
    def names(self) -> Mapping[str, str]:
        """The name of every host's namespace, as ``ip netns`` has it."""
        return self._names

    @property
    def wires(self) -> dict[tuple[str, int], str]:
        """The interface at the switch's end of each NIC's cable, by host and number of the NIC."""
        return {(nic.host, nic.index): self._fabric_end(nic) for nics in self.fabric.nics.values() for nic in nics}

    @property
    def switch_ends(self) -> dict[tuple[str, int], str]:
        """The interface of each port of a switch that has one, by switch and number of the port."""
        ends: dict[tuple[str, int], str] = {}
        for host, nic in self.wires:
            link = self.fabric.links[self.fabric.nics[host][nic].link]
            ends[link.destination, link.destination_port] = self.wires[host, nic]
        if self.has_switch_cables:
            switches = self.fabric.switch_index
            for link in self.fabric.links:
                if link.source in switches and link.destination in switches:
                    ends[link.source, link.source_port] = f"s{switches[link.source]}-eth{link.source_port}"
        return ends

    @property
    def fabric_file(self) -> Path:
        """The file of the namespace of these interfaces, for programs that are started by ``outside``."""
        return NAMESPACES / self.fabric_name

    def interface(self, _host: str, nic: int) -> str:
        """Return the name that a NIC's interface has in its host."""
        return f"{_INTERFACES}{nic}"

    def place(self, host: str) -> enter.Place:
        """Return the place of a host's programs, for processes that enter it by ``enter.run_in``."""
        assert self._hosts_file is not None
        hosts = f"/proc/{self._ownership.pid}/fd/{self._hosts_file.fileno()}"
        return self._outside._replace(network=self._names[host], hosts=hosts)

    def command(self, host: str, *arguments: str) -> list[str]:
        """Return a command line that runs a command in a host; it ends with this process."""
        return _entering(self.place(host), arguments)

    def outside(self, *arguments: str) -> list[str]:
        """Return a command line that runs a command outside all hosts, where it may use ``fabric_file``."""
        return _entering(self._outside, arguments)

    def in_fabric(self, *arguments: str) -> list[str]:
        """Return a command line that runs a command in the namespace with the switches' ends of all cables."""
        return _entering(self._outside._replace(network=self.fabric_name), arguments)

    def frame_bytes(self) -> dict[tuple[str, int], tuple[int, int]]:
        """Return the bytes that each NIC has sent and received so far, as interfaces count them.

        Raises:
            NetworkError: An interface is gone, or somebody else has ended the process that keeps the namespaces.
        """
        assert self._keeper is not None
        # Of the namespace that the keeper is in.
        return frame_bytes(Path(f"/proc/{self._keeper.pid}/net/dev"), self.wires)

    @property
    def _outside(self) -> enter.Place:
        assert self._keeper is not None
        return enter.Place(self._ownership.pid, self._keeper.pid if self.is_rootless else None)

    def _open_hosts_file(self) -> IO[str]:
        """Return a file in memory with what programs in hosts have as ``/etc/hosts``."""
        file = os.fdopen(os.memfd_create("hosts"), "w", encoding="utf-8")
        file.write(hosts_file(self.fabric))
        file.flush()
        return file

    def _start_keeper(self) -> None:
        hosts = [self._host_plan(host) for host in self.fabric.hosts]
        plan = keeper.Plan(
            *(self._ownership.pid, self.fabric_name, hosts, self.is_rootless, self.receiving_core),
            switch_cables=self._switch_cables() if self.has_switch_cables else [],
        )
        self._hosts_file = self._open_hosts_file()
        self._keeper = kept = subprocess.Popen(  # nosec B603 # our own module
            [sys.executable, "-P", "-m", keeper.__name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert kept.stdin is not None
        assert kept.stdout is not None
        try:
            with contextlib.suppress(BrokenPipeError):  # it has ended; closing says why
                kept.stdin.write(plan.to_json() + "\n")
                kept.stdin.flush()
            if kept.stdout.readline().strip() != keeper.READY:
                raise NetworkError("the keeper of the namespaces was killed")
        except BaseException:
            self.close()
            raise

    def _host_plan(self, host: str) -> keeper.HostPlan:
        nics = self.fabric.nics[host]
        return keeper.HostPlan(
            self._names[host],
            host_nics(self.fabric, host, _INTERFACES, self.mtu_bytes, are_plain=self.are_plain),
            [self._fabric_end(nic) for nic in nics],
        )

    def _switch_cables(self) -> list[keeper.SwitchCable]:
        ends, switches = self.switch_ends, self.fabric.switch_index
        return [
            keeper.SwitchCable(
                [ends[link.source, link.source_port], ends[link.destination, link.destination_port]], self.mtu_bytes
            )
            for link in self.fabric.links[::2]
            if link.source in switches and link.destination in switches
        ]

    def _fabric_end(self, nic: Nic) -> str:
        return f"h{self.fabric.host_index[nic.host]}-eth{nic.index}"


def _entering(place: enter.Place, arguments: tuple[str, ...]) -> list[str]:
    given = {name: value for name, value in place._asdict().items() if value is not None}
    options = [word for name, value in given.items() for word in (f"--{name}", str(value))]
    return [sys.executable, "-I", "-S", enter.__file__, *options, "--", *arguments]
