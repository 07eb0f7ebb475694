"""The emulator of a run, as a program: reads one JSON object, ``EmulatorPlan``, and serves until it is ended."""

import asyncio
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from emulator.interfaces import InterfaceError
from emulator.standalone import PipelineTexts, StandaloneEmulator, Wires
from p4src import P4INFO, PROGRAM
from topologies.addressing import Address, Interface, MacAddress
from topologies.fabric import Cable, Fabric, Pcie, SwitchIdentity
from topologies.logs import log_to_stderr


@dataclass(frozen=True)
class EmulatorPlan:
    """What the emulator is to be.

    Attributes:
        fabric: The fabric, its fields by name, and so on inside; addresses are integers.
        wires: A host, the number of its NIC, and the interface at the switch's end of its cable.
        namespace: The file of the interfaces' network namespace.
        listen: Where to serve P4Runtime and gNMI.
        is_real_time: Whether to ask for real-time priority.
    """

    fabric: dict[str, Any]
    wires: list[tuple[str, int, str]]
    namespace: str
    listen: str
    is_real_time: bool

    @classmethod
    def of(
        cls, fabric: Fabric, wires: dict[tuple[str, int], str], namespace: Path, listen: str, *, is_real_time: bool
    ) -> "EmulatorPlan":
        """Return the plan of a fabric."""
        rows = [(host, nic, interface) for (host, nic), interface in wires.items()]
        return cls(asdict(fabric), rows, str(namespace), listen, is_real_time)

    def to_json(self) -> str:
        """Return the plan as one line."""
        return json.dumps(asdict(self))


def fabric_of(plan: EmulatorPlan) -> Fabric:
    """Return the fabric of a plan."""
    fields = plan.fabric
    interfaces, identities = fields["interfaces"], fields["identities"]
    return Fabric(
        tuple(fields["hosts"]),
        tuple(fields["switches"]),
        tuple(map(_cable, fields["cables"])),
        fields["gpus_per_host"],
        None if fields["pcie"] is None else Pcie(**fields["pcie"]),
        None if interfaces is None else tuple(tuple(map(_interface, nics)) for nics in interfaces),
        None if identities is None else tuple(map(_identity, identities)),
    )


def _cable(fields: dict[str, Any]) -> Cable:
    first, second = fields["ends"]
    ports = fields["ports"]
    return Cable(
        (first, second), fields["rate_bps"], fields["delay_s"], None if ports is None else (ports[0], ports[1])
    )


def _interface(fields: dict[str, Any]) -> Interface:
    mac = fields["mac"]
    address = Address(fields["address"])
    return Interface(fields["name"], address, fields["prefix_length"], None if mac is None else MacAddress(mac))


def _identity(fields: dict[str, Any]) -> SwitchIdentity:
    names = tuple((number, name) for number, name in fields["port_names"])
    return SwitchIdentity(fields["device_id"], fields["node_id"], names)


def main() -> int:
    """Serve the emulator of the plan on standard input."""
    plan = EmulatorPlan(**json.loads(sys.stdin.readline()))
    interfaces = {(host, nic): interface for host, nic, interface in plan.wires}
    log_to_stderr()
    try:
        standalone = StandaloneEmulator(
            fabric_of(plan),
            PipelineTexts(PROGRAM.stem, P4INFO.read_text(), PROGRAM.read_text()),
            wires=Wires(interfaces, Path(plan.namespace), is_real_time=plan.is_real_time),
        )
        asyncio.run(standalone.serve(plan.listen, port_per_switch=False))
    except (InterfaceError, OSError, RuntimeError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
