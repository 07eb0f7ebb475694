"""Nodes of Mininet whose programs end with Mininet, and which need none of its configuration of hosts."""

import json
import sys
from dataclasses import asdict
from typing import Any

from mininet.node import Host, Node

from topologies.mininet.programs import with_descendants
from topologies.namespaces import host_network
from topologies.namespaces.host_network import HostNic, NetworkError


class OwnedNode(Node):
    """A node whose shell, with all that it has started, ends with the process that has made the node.

    The programs of a node are in a process namespace: Mininet's ``killall`` meets none but those of its own node.
    """

    def _popen(self, cmd: list[str], **parameters: Any) -> Any:
        """Start ``mnexec``, and the command inside a process namespace."""
        num_options = 3 if cmd[1].endswith("a") else 2  # mnexec -cdn, or mnexec -da PID
        # A shell has its terminal to itself: Mininet interrupts programs by typing Ctrl-C.
        is_shell = "c" in cmd[1]
        session = ["setsid", "--ctty"] if is_shell else []
        beginning = with_descendants(self.params.get("hosts_file") if is_shell else None)
        return super()._popen([*cmd[:num_options], *beginning, *session, *cmd[num_options:]], **parameters)


class FabricHost(OwnedNode, Host):
    """A host of a fabric. ``nics`` are its NICs in order, one for each of its cables."""

    def config(self, nics: tuple[HostNic, ...] = (), **_: Any) -> dict[str, Any]:
        """Set up the NICs, with all that TCP needs, in place of Mininet's own configuration.

        Raises:
            NetworkError: That is not permitted, or something is missing.
        """
        for nic in nics:
            interface = self.nameToIntf[nic.interface]
            interface.ip, interface.prefixLen = nic.address, 32
            interface.mac = interface.mac if nic.mac is None else nic.mac
        plan = json.dumps([asdict(nic) for nic in nics])
        _, complaint, status = self.pexec([sys.executable, "-I", host_network.__file__, plan])
        if status:
            raise NetworkError(f"host {self.name} cannot be set up: {complaint.strip()}")
        return {}
