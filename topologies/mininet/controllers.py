"""Trainyard's controller as a node of Mininet."""

import json
import time
from typing import Any

from mininet.log import error
from mininet.node import Controller

from topologies.mininet.nodes import OwnedNode
from topologies.mininet.programs import Program, ask, with_descendants
from topologies.namespaces.host_network import NetworkError

DEFAULT_PORT = 4790
_PATIENCE_S = 120.0
_LOOK_S = 0.5
_CAUGHT_UP = "CAUGHT_UP"


class TrainyardController(OwnedNode, Controller):
    """The controller, which answers ``trainyard show`` and jobs at a port of 127.0.0.1.

    Args:
        name: Mininet's name for it.
        port: The port.
        policy: The policy that plans.
        parameters: As Mininet has them.
    """

    def __init__(self, name: str, port: int = DEFAULT_PORT, policy: str = "crux", **parameters: Any) -> None:
        self._policy = policy
        self._program: Program | None = None
        super().__init__(name, port=port, **parameters)

    def start(self) -> None:
        """Wait for the switches, which say where they are."""

    def control(self, file: str, switches: dict[str, Any]) -> None:
        """Run the controller until ``stop``; return when it has written base routing to all switches.

        Args:
            file: The file of the topology.
            switches: What its configuration says of the switches.

        Raises:
            NetworkError: The controller refuses, or does not reach the switches.
        """
        described = ask("topology", file)
        at = f"{self.ip}:{self.port}"
        config = {"listen": at, "topology": described["topology"], "policy": self._policy} | switches
        self._program = Program(with_descendants(), "controller", "--config", "/dev/stdin", given=json.dumps(config))
        self._wait_for_routing(at)

    def _wait_for_routing(self, address: str) -> None:
        assert self._program is not None
        before = time.monotonic()
        problem = ""
        while time.monotonic() < before + _PATIENCE_S:
            if not self._program.runs:
                raise NetworkError(self._program.complaint())
            try:
                shown = ask("show", "switches", "--controller", address)["switches"]
            except NetworkError as refused:
                problem = str(refused)
            else:
                behind = [switch for switch in shown if switch["condition"] != _CAUGHT_UP]
                if not behind:
                    return
                problem = "; ".join(f"{switch['name']}: {switch['condition']} {switch['problem']}" for switch in behind)
            time.sleep(_LOOK_S)
        raise NetworkError(f"the controller has not written base routing in {_PATIENCE_S:g} s: {problem}")

    def stop(self, *arguments: Any, **parameters: Any) -> None:
        """End the process, and say so if it has ended before."""
        if self._program is not None:
            program, self._program = self._program, None
            if complaint := program.stop():
                error(f"*** {complaint}\n")
        super(Controller, self).stop(*arguments, **parameters)
