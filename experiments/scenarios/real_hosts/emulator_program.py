"""The emulator of a run, as a program: reads one JSON object, ``EmulatorPlan``, and serves until it is ended."""

import asyncio
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from emulator.interfaces import InterfaceError
from emulator.standalone import StandaloneEmulator, Wires
from p4src import P4INFO, PROGRAM
from topologies.fabric import Cable, Fabric
from topologies.logs import log_to_stderr


@dataclass(frozen=True)
class EmulatorPlan:
    """What the emulator is to be.

    Attributes:
        hosts, switches, cables, gpus_per_host: The fabric; a cable is its two ends, its rate and its delay.
        wires: A host, the number of its NIC, and the interface at the switch's end of its cable.
        namespace: The file of the interfaces' network namespace.
        listen: Where to serve P4Runtime and gNMI.
        is_real_time: Whether to ask for real-time priority.
    """

    hosts: list[str]
    switches: list[str]
    cables: list[tuple[str, str, float, float]]
    gpus_per_host: int
    wires: list[tuple[str, int, str]]
    namespace: str
    listen: str
    is_real_time: bool

    @classmethod
    def of(
        cls, fabric: Fabric, wires: dict[tuple[str, int], str], namespace: Path, listen: str, *, is_real_time: bool
    ) -> "EmulatorPlan":
        """Return the plan of a fabric."""
        cables = [(*cable.ends, cable.rate_bps, cable.delay_s) for cable in fabric.cables]
        rows = [(host, nic, interface) for (host, nic), interface in wires.items()]
        nodes = list(fabric.hosts), list(fabric.switches)
        return cls(*nodes, cables, fabric.gpus_per_host, rows, str(namespace), listen, is_real_time)

    def to_json(self) -> str:
        """Return the plan as one line."""
        return json.dumps(asdict(self))


def fabric_of(plan: EmulatorPlan) -> Fabric:
    """Return the fabric of a plan."""
    cables = tuple(Cable((one, other), rate_bps, delay_s) for one, other, rate_bps, delay_s in plan.cables)
    return Fabric(tuple(plan.hosts), tuple(plan.switches), cables, plan.gpus_per_host)


def main() -> int:
    """Serve the emulator of the plan on standard input."""
    plan = EmulatorPlan(**json.loads(sys.stdin.readline()))
    interfaces = {(host, nic): interface for host, nic, interface in plan.wires}
    log_to_stderr()
    try:
        standalone = StandaloneEmulator(
            *(fabric_of(plan), P4INFO.read_text(), PROGRAM.read_text()),
            wires=Wires(interfaces, Path(plan.namespace), is_real_time=plan.is_real_time),
        )
        asyncio.run(standalone.serve(plan.listen, port_per_switch=False))
    except (InterfaceError, OSError, RuntimeError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
