"""Reads p4testgen's tests for PTF: their steps are recorded instead of being run on a switch."""

import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from tests.p4src.tna.vectors import KeyPart, Output, RegisterCell, Vector, VectorEntry

_FIRST_TEST = re.compile(r"^class Test\d+\(AbstractTest\):", re.MULTILINE)


class _Recorder:
    """Stands for the class that p4testgen's tests inherit from; its methods have the names that they call."""

    def __init__(self) -> None:
        self.entries: list[VectorEntry] = []
        self.registers: list[RegisterCell] = []
        self.sent: tuple[int, bytes] | None = None
        self.expected: Output | None = None

    def insertTableEntry(  # noqa: N802
        self, table: str, key: list[KeyPart], action: str, data: list[tuple[str, int]]
    ) -> None:
        self.entries.append(VectorEntry(table, tuple(key), action, dict(data)))

    def overrideDefaultEntry(self, table: str, action: str, data: list[tuple[str, int]]) -> None:  # noqa: N802
        self.entries.append(VectorEntry(table, None, action, dict(data)))

    def setRegisterValue(self, register: str, value: int | list[tuple[str, int]], index: int) -> None:  # noqa: N802
        values = tuple(number for _, number in value) if isinstance(value, list) else (value,)
        self.registers.append(RegisterCell(register, index, values))


class _Mask:
    def __init__(self, octets: bytes) -> None:
        self.octets = octets
        self.ignored: list[tuple[int, int]] = []

    def set_do_not_care(self, at: int, bits: int) -> None:
        self.ignored.append((at, bits))


def _send(test: _Recorder, port: int, octets: bytes) -> None:
    test.sent = port, octets


def _verify(test: _Recorder, packet: _Mask, port: int) -> None:
    test.expected = Output(port, packet.octets.hex(), tuple(packet.ignored))


def vectors_of(source: str) -> Iterator[Vector]:
    """The vectors in a file of p4testgen's; it is executed, so it must come from there."""
    first = _FIRST_TEST.search(source)
    if first is None:
        return
    namespace: dict[str, Any] = {
        "AbstractTest": _Recorder,
        "gc": SimpleNamespace(KeyTuple=_key_part, DataTuple=lambda name, value: (name, value)),
        "Mask": _Mask,
        "send_packet": _send,
        "verify_packet": _verify,
    }
    exec(source[first.start() :], namespace)
    for name, kind in namespace.items():
        if re.fullmatch(r"Test\d+", name):
            test = kind()
            test.setupCtrlPlane()
            test.sendPacket()
            test.verifyPackets()
            port, octets = test.sent
            yield Vector(tuple(test.entries), tuple(test.registers), port, octets.hex(), test.expected)


def _key_part(name: str, value: int, mask: int | None = None, prefix_len: int | None = None) -> KeyPart:
    return KeyPart(name, value, mask, prefix_len)
