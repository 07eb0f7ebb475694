"""One switch that runs a program, without fabric or clock: a packet in, a packet out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from emulator.compiler.deparsers import HALTED
from emulator.compiler.program import Program
from emulator.engine.state import OCTETS
from emulator.entries import ActionCall
from emulator.memory import Arena
from emulator.switch import EmulatedSwitch
from emulator.tracing.plain import PlainFunctions, executed
from tests.emulator.fabrics import exact
from tests.emulator.programs import trainyard

HOPS = range(1, 8)

_ODD_WORD, _ODD_BYTE = 0x0DDB_A11, 0xA5


@dataclass(frozen=True, slots=True)
class Sent:
    """A packet that has left: by this port, from the queue of this level."""

    port: int
    level: int
    octets: bytes


class LoneSwitch:
    """Calls a program's machine code for single packets; ``control`` is the switch's control side.

    With ``is_python`` the program runs as the Python that it is written in, which needs no compilation.
    """

    def __init__(self, program: Program, *, is_python: bool = False) -> None:
        self._program = program
        self._arena = Arena()
        self.control = EmulatedSwitch("lone", 1, self._arena, program.resources)
        self.control.clear()
        functions: Mapping[str, Any] = program.functions
        if is_python:
            functions = PlainFunctions({}).namespace(executed(program.source, program.names))
        names = "receive", "transmit", "store", "load"
        self._receive, self._transmit, self._store, self._load = (functions[name] for name in names)

    def process(
        self, packet: bytes, port: int = 1, depths: tuple[int, int] = (0, 0), times_us: tuple[int, int] = (7, 9)
    ) -> Sent | None:
        """What becomes of a packet of at most ``OCTETS`` bytes.

        ``depths`` are the queue's when it comes and leaves, ``times_us`` the clock's at ingress and egress. The machine
        code must leave the memory around the packet alone.
        """
        row, num_words = self._program.row_words, self._program.layout.num_words
        rows = np.full(3 * row, _ODD_WORD, dtype=np.uint64)
        words = np.full(2 * num_words, _ODD_WORD, dtype=np.uint64)
        octets = np.full(3 * OCTETS, _ODD_BYTE, dtype=np.uint8)
        octets[OCTETS : OCTETS + len(packet)] = list(packet)
        memory = self._arena.words
        at, place, block = np.uint64(OCTETS), np.uint64(row), np.uint64(self.control.block)
        egress_port = int(self._receive(words, octets, at, len(packet), port, times_us[0], memory, block))
        sent = None
        if egress_port not in (self._program.drop_port, HALTED):
            level = int(words[self._program.layout.field(["standard_metadata", "priority"]).word])
            payload = int(words[self._program.layout.payload_word])
            self._store(words, rows, place)
            words[:num_words] = _ODD_WORD
            self._load(words, rows, place)
            times_and_depths = *times_us, *depths
            size = int(self._transmit(words, octets, at, len(packet), egress_port, *times_and_depths, memory, block))
            if size >= 0:
                length = len(packet) + size - payload
                if self._program.layout.longest_word is not None and words[self._program.layout.longest_word]:
                    length = min(length, int(words[self._program.layout.longest_word]) - 1)
                sent = Sent(egress_port, level, octets[OCTETS : OCTETS + length].tobytes())
        assert (rows[:row] == _ODD_WORD).all()
        assert (rows[2 * row :] == _ODD_WORD).all()
        assert (words[num_words:] == _ODD_WORD).all()
        assert (octets[:OCTETS] == _ODD_BYTE).all()
        assert (octets[2 * OCTETS :] == _ODD_BYTE).all()
        return sent


def with_next_hops() -> LoneSwitch:
    """A switch with Trainyard's program, on which next hop n leads to port n."""
    switch = LoneSwitch(trainyard())
    for hop in HOPS:
        switch.control.insert("ingress.next_hop", exact((hop, 16)), ActionCall("ingress.forward", (hop, 0, 0)))
    return switch
