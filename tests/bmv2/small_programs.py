"""Small P4 programs of our own, one per construct that Trainyard's program has no use for, and the emulator with one.

``python -m tests.bmv2.small_programs`` compiles them anew; what p4c makes of them lies beside them.
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from finsy.proto import p4i, p4r, rpc_code

from emulator.compiler.program import compile_program
from emulator.fabric import EmulatedFabric
from emulator.p4runtime.pipeline import Pipeline, compiled_pipeline
from emulator.p4runtime.read import read_batch
from emulator.p4runtime.target import Target
from emulator.p4runtime.write import write_batch
from tests.bmv2.session import CPU_PORT, Packet
from topologies.fabric import Cable, Fabric

FOLDER = Path(__file__).resolve().parent / "programs"
COMPILER = "p4c-bm2-ss"
HOSTS = 3
_SWITCH = "switch"
_MS_IN_PS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class SmallProgram:
    """A program by the name of its source."""

    name: str

    @property
    def json(self) -> Path:
        """What BMv2 and the emulator execute."""
        return FOLDER / f"{self.name}.json"

    @property
    def p4info(self) -> Path:
        """What P4Runtime needs to know."""
        return FOLDER / f"{self.name}.p4info.txtpb"

    @property
    def pipeline(self) -> Pipeline:
        """Both."""
        return compiled_pipeline(self.p4info.read_text(), self.json.read_bytes())


REPLICATION = SmallProgram("replication")
METERS = SmallProgram("meters")
PASSING = SmallProgram("passing")
LOOPS = SmallProgram("loops")
DIFFERING = SmallProgram("differing")
OPTIONS = SmallProgram("options")
UNIONS = SmallProgram("unions")
DIGESTS = SmallProgram("digests")
SETS = SmallProgram("sets")
PAYLOAD = SmallProgram("payload")
TRUNCATION = SmallProgram("truncation")
MEMBERS = SmallProgram("members")
PUSHES = SmallProgram("pushes")
AGEING = SmallProgram("ageing")
ROUNDS = SmallProgram("rounds")
PROGRAMS = (REPLICATION, METERS)
"""Those of which BMv2's answers are recorded."""
EVERY_PROGRAM = (
    *(*PROGRAMS, PASSING, LOOPS, DIFFERING, OPTIONS, UNIONS, DIGESTS, SETS, PAYLOAD),
    *(TRUNCATION, MEMBERS, PUSHES, AGEING, ROUNDS),
)


class EmulatedProgram:
    """A ``tests.bmv2.session.Switch`` with a small program and a host on each of its ports 1 to 3."""

    def __init__(self, program: SmallProgram) -> None:
        hosts = tuple(f"host{port}" for port in range(1, HOSTS + 1))
        fabric = Fabric(hosts, (_SWITCH,), tuple(Cable((host, _SWITCH), 1e12, 0.0) for host in hosts), 1)
        self.fabric = EmulatedFabric(fabric, compile_program(program.json.read_text()))
        self.control = self.fabric.switches[_SWITCH]
        self.pipeline = program.pipeline
        self._links = {link.destination_port: link.index for link in fabric.links if link.destination == _SWITCH}
        self._port_of = {link.index: link.source_port for link in fabric.links if link.source == _SWITCH}
        self.clear()

    @property
    def p4info(self) -> p4i.P4Info:
        """See Switch."""
        return self.pipeline.message.p4info

    def clear(self) -> None:
        """See Switch."""
        self.control.clear()
        self.target = Target(self.control, self.pipeline)

    def write(self, updates: list[p4r.Update]) -> None:
        """See Switch."""
        write_batch(self.target, updates)

    def read(self, *requests: p4r.Entity) -> list[p4r.Entity]:
        """See Switch."""
        entities, results = read_batch(self.target, requests)
        assert all(result.canonical_code == rpc_code.OK for result in results), results
        return entities

    def send(self, packet: Packet) -> list[Packet]:
        """Let a packet arrive; what leaves within a millisecond, by port."""
        self.fabric.inject(self._links[packet.port], packet.octets)
        self.fabric.run(self.fabric.now_ps + _MS_IN_PS)
        left = [
            Packet(self._port_of[capture.link], _whole(capture.octets, capture.length))
            for capture in self.fabric.captured()
        ]
        left += [Packet(CPU_PORT, arrived.octets) for arrived in self.fabric.packets_in()]
        return sorted(left, key=lambda packet: (packet.port, packet.octets))


def _whole(octets: bytes, length: int) -> bytes:
    return octets.ljust(length, b"\0")


def compile_program_into(program: SmallProgram, folder: Path) -> None:
    """Run p4c on a program. Raises FileNotFoundError without ``COMPILER`` on PATH."""
    outputs = ("-o", folder / program.json.name, "--p4runtime-files", folder / program.p4info.name)
    subprocess.run([COMPILER, "--std", "p4-16", *outputs, f"{program.name}.p4"], check=True, cwd=FOLDER)


if __name__ == "__main__":
    for each in EVERY_PROGRAM:
        compile_program_into(each, FOLDER)
