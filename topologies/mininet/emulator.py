"""The emulator, which runs all P4 switches of a network of Mininet in one process."""

from mininet.log import error

from topologies.mininet.programs import Program, alone, tell

_STARTS_WITHIN_S = 300.0
"""The first start compiles the P4 program."""


class Emulator:
    """The process that runs all switches of a fabric.

    Args:
        file: The file of the topology.
        namespace: The file of the network namespace with their ends of hosts' cables.

    Attributes:
        addresses: The P4Runtime address of every switch, once they run.
    """

    def __init__(self, file: str, namespace: str) -> None:
        self.addresses: dict[str, str] = {}
        self._file = file
        self._namespace = namespace
        self._program: Program | None = None

    def start(self, num_switches: int, wires: dict[str, str]) -> None:
        """Run the switches until ``stop``; return when they answer.

        Args:
            num_switches: How many there are.
            wires: By NIC, as ``h0.0``, the interface at the switch's end of its cable.

        Raises:
            NetworkError: The emulator refuses, or does not answer within five minutes; the text has its complaint.
        """
        options = [option for nic, interface in wires.items() for option in ("--wire", f"{nic}={interface}")]
        self._program = program = Program(
            alone(),
            *("emulator", "--topology", self._file, "--netns", self._namespace),
            *("--listen", "127.0.0.1:0", "--port-per-switch", *options),
        )
        _heading, *lines = program.first_lines(1 + num_switches, _STARTS_WITHIN_S)
        for line in lines:
            _, name, address = line.split()
            self.addresses[name] = address

    @property
    def runs(self) -> bool:
        """Whether the switches forward."""
        return self._program is not None and self._program.runs

    def set_port(self, switch: str, port: int, state: str) -> None:
        """Enable a port, for the state ``up``, or disable it. Raises NetworkError where the switch refuses."""
        tell("port", self.addresses[switch], switch, str(port), state)

    def stop(self) -> None:
        """End the process, and say so if it has ended before."""
        if self._program is not None:
            program, self._program = self._program, None
            if complaint := program.stop():
                error(f"*** {complaint}\n")
