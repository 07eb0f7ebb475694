"""P4 programs under test: sources that p4c compiles, or what it has made of them, each compiled once."""

import os
import shutil
import subprocess  # nosec B404 # runs p4c, without a shell
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from emulator.compiler.layout import UnsupportedError
from emulator.compiler.program import Program as CompiledProgram
from emulator.compiler.program import compile_program
from emulator.p4runtime.errors import RequestError
from emulator.p4runtime.pipeline import Pipeline, compiled_pipeline
from emulator.ports import CPU_PORT, DROP_PORT
from topologies.documents import DocumentError, read_document
from topologies.fabric import Fabric
from topologies.lone_switch import LONE_SWITCH, lone_switch
from topologies.p4lang import is_p4lang_topology, p4lang_topology

if TYPE_CHECKING:
    from emulator.testing.networks import Network
    from emulator.testing.switches import Switch

P4C_VARIABLE = "P4C"
"""Names p4c, or its back end p4c-bm2-ss, where neither is found on PATH."""

_COMPILERS = ("p4c-bm2-ss", "p4c")
_CONTAINER = "docker run --rm -v $PWD:/p4 -w /p4 p4lang/p4c p4c-bm2-ss --p4runtime-files NAME.p4info.txtpb -o NAME.json"


class ProgramError(Exception):
    """A program cannot be compiled, or the emulator cannot run it; the text says why."""


@dataclass(frozen=True)
class Program:
    """A program that switches can run; ``name`` is that of its file."""

    name: str
    compiled: CompiledProgram
    pipeline: Pipeline


class Programs:
    """Loads programs, and makes switches that run them. A context manager: it keeps files while it lasts.

    with Programs() as p4:
        switch = p4.switch(p4.load("router.p4"), ports=4)
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="trainyard-p4-")
        self._loaded: dict[tuple[str, str, int], Program] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove what p4c has made."""
        self._folder.cleanup()

    def load(
        self,
        program: Path | str,
        p4info: Path | str | None = None,
        *,
        options: Sequence[str] = (),
        drop_port: int = DROP_PORT,
    ) -> Program:
        """Return a program; one with the same text is compiled once.

        Args:
            program: A P4 source (``.p4``), which p4c compiles, or the BMv2 JSON that p4c has made of it.
            p4info: P4Info in text form, for a BMv2 JSON. None: beside it, under the same name with ``.p4info.txtpb``.
            options: Further options of p4c, such as ``-DWITH_INT``.
            drop_port: Egress port of packets that the program drops.

        Raises:
            ProgramError: p4c is not found or refuses the source, or the emulator cannot run the program.
        """
        path = Path(program)
        json, info = self._compiled(path, options) if path.suffix == ".p4" else (path, _p4info_of(path, p4info))
        try:
            texts = json.read_text(), info.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise ProgramError(f"{path}: {error}") from error
        key = (*texts, drop_port)
        if key not in self._loaded:
            try:
                pipeline = compiled_pipeline(texts[1], texts[0].encode())
                compiled = compile_program(texts[0], drop_port=drop_port)
            except (RequestError, UnsupportedError, ValueError) as error:
                raise ProgramError(f"{path}: {error}") from error
            self._loaded[key] = Program(path.stem, compiled, pipeline)
        return self._loaded[key]

    def switch(self, program: Program, ports: int | Iterable[int] = 4, *, cpu_port: int = CPU_PORT) -> "Switch":
        """Return a switch that runs a program, empty.

        Args:
            program: The program.
            ports: How many ports it has, from 0, or their numbers.
            cpu_port: The program's port to its controller.

        Raises:
            ValueError: There are no ports, or one is not free.
        """
        numbers = list(range(ports)) if isinstance(ports, int) else list(ports)
        return self.network(program, lone_switch(numbers), cpu_port=cpu_port)[LONE_SWITCH]

    def network(self, program: Program, topology: Fabric | Path | str, *, cpu_port: int = CPU_PORT) -> "Network":
        """Return switches that all run a program, empty, with their cables and hosts.

        Args:
            program: The program.
            topology: A fabric, or a topology.json of p4lang's tutorials.
            cpu_port: The program's port to its controllers.

        Raises:
            ValueError: The file holds no such topology, or a port is not free.
        """
        from emulator.testing.networks import Network

        fabric = topology if isinstance(topology, Fabric) else _fabric_of(Path(topology))
        return Network(fabric, program, cpu_port)

    def _compiled(self, source: Path, options: Sequence[str]) -> tuple[Path, Path]:
        compiler = _compiler()
        folder = Path(tempfile.mkdtemp(dir=self._folder.name))
        json, info = folder / f"{source.stem}.json", folder / f"{source.stem}.p4info.txtpb"
        own = ["-o", str(json)]
        if Path(compiler).name != "p4c-bm2-ss":
            own = ["--target", "bmv2", "--arch", "v1model", "-o", str(folder)]
        command = [compiler, "--p4v", "16", "--p4runtime-files", str(info), *own, *options, str(source)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)  # nosec B603 # no shell
        if ended.returncode:
            raise ProgramError(f"{source}: {compiler} refuses it:\n{ended.stderr.strip() or ended.stdout.strip()}")
        return json, info


def _compiler() -> str:
    named = os.environ.get(P4C_VARIABLE)
    for name in (named,) if named else _COMPILERS:
        if found := shutil.which(name):
            return found
    tried = named or " and ".join(_COMPILERS)
    raise ProgramError(
        f"{tried} not found: set {P4C_VARIABLE}, or compile the source yourself and load the JSON: {_CONTAINER} NAME.p4"
    )


def _p4info_of(json: Path, p4info: Path | str | None) -> Path:
    return json.with_suffix(".p4info.txtpb") if p4info is None else Path(p4info)


def _fabric_of(path: Path) -> Fabric:
    try:
        document = read_document(path)
        if not is_p4lang_topology(document.contents):
            raise ValueError(f"{path}: expected a topology with hosts, switches and links")
        return p4lang_topology(document).fabric
    except DocumentError as error:
        raise ValueError(str(error)) from error
