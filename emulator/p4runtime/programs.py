"""What a server needs of its fabric to give a switch another program."""

from typing import Protocol

from emulator.compiler.layout import UnsupportedError
from emulator.compiler.program import Program, compile_program
from emulator.fabric import EmulatedFabric
from emulator.p4runtime.errors import invalid_argument, unimplemented
from emulator.p4runtime.wrapped_config import unwrapped


class Programs(Protocol):
    """Compiles programs and loads them into switches."""

    def compile(self, device_config: bytes) -> Program:
        """Compile a BMv2 JSON, in any thread; this may take some seconds.

        Raises RequestError: INVALID_ARGUMENT for a corrupt one, UNIMPLEMENTED for one that the emulator cannot run.
        """
        ...

    def load(self, switch: str, program: Program) -> None:
        """Give a switch a program, by the switch's name. Raises ValueError if the fabric cannot take it."""
        ...


class ProgramsOfFabric:
    """Those of an emulated fabric: a program has the fabric's drop port, and its real interfaces if there are any."""

    def __init__(self, emulated: EmulatedFabric, *, drop_port: int, is_wired: bool) -> None:
        self._emulated = emulated
        self._drop_port = drop_port
        self._is_wired = is_wired

    def compile(self, device_config: bytes) -> Program:
        """See Programs."""
        try:
            program = compile_program(
                unwrapped(device_config).decode(), drop_port=self._drop_port, is_wired=self._is_wired
            )
        except UnsupportedError as error:
            raise unimplemented(f"the program cannot run: {error}") from None
        except ValueError as error:
            raise invalid_argument(f"the program cannot run: {error}") from None
        self._emulated.prepare_program(program)
        return program

    def load(self, switch: str, program: Program) -> None:
        """See Programs."""
        self._emulated.load_program(switch, program)
