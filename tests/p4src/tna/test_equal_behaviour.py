"""The program for Tofino does what the one for v1model does, but for what ``docs/tofino.md`` names."""

from random import Random

import pytest

from emulator.compiler.program import Program
from emulator.ports import CPU_PORT
from tests.emulator.lone_switch import LoneSwitch
from tests.emulator.lone_switch import Sent as SentByV1model
from tests.emulator.programs import trainyard
from tests.p4src.tna.drawing import CONTROLLER_PORTS, DATA_PORTS, Arrival, Arrivals, draw_entries
from tests.p4src.tna.entries import Entries, write_to_tofino, write_to_v1model
from tests.p4src.tna.laws import flow_of, is_cut_short
from tests.p4src.tna.program import RunningProgram, TranslatedProgram
from tests.p4src.tna.stored import translated
from tests.p4src.tna.switch import Conditions, Sent, Switch

TOFINO_CPU_PORT = 192
HEADER_BYTES = 2
"""Of packet-in and packet-out: v1model counts frames as they come, Tofino as they leave."""

DROP_MALFORMED = 1
PACKETS = 100_000
PACKETS_PER_BATCH = 500
BATCHES_PER_TEST = 20


class Twins:
    """Both programs with the same entries; what they are sent they must answer equally."""

    def __init__(self, v1model: Program, tofino: TranslatedProgram, entries: Entries) -> None:
        self._v1model = LoneSwitch(v1model)
        self._program: RunningProgram = tofino.start()
        self._tofino = Switch(self._program)
        self._num_malformed_bytes = [0, 0]
        write_to_v1model(entries, self._v1model.control)
        self._counted = write_to_tofino(entries, self._program)

    def send(self, arrival: Arrival) -> None:
        """Let a frame come to both."""
        sent = self._on_tofino(arrival)
        if not arrival.is_from_controller and is_cut_short(arrival.frame) and flow_of(arrival.frame) is not None:
            assert sent is None, arrival
            self._num_malformed_bytes[0] += 1
            self._num_malformed_bytes[1] += len(arrival.frame)
            return
        expected = self._on_v1model(arrival)
        assert (sent is None) == (expected is None), (arrival, sent, expected)
        if sent is not None and expected is not None:
            assert sent.queue == expected.level, arrival
            assert sent.port == (TOFINO_CPU_PORT if expected.port == CPU_PORT else expected.port), arrival
            assert _with_one_zero(sent.octets) == _with_one_zero(expected.octets), (arrival, sent, expected)

    def _on_v1model(self, arrival: Arrival) -> SentByV1model | None:
        port = CPU_PORT if arrival.is_from_controller else arrival.port
        times_us = arrival.ingress_time, arrival.egress_time
        return self._v1model.process(arrival.frame, port, (arrival.depth, 0), times_us)

    def _on_tofino(self, arrival: Arrival) -> Sent | None:
        port = TOFINO_CPU_PORT if arrival.is_from_controller else arrival.port
        conditions = Conditions(arrival.ingress_time, arrival.egress_time, arrival.depth)
        return self._tofino.process(arrival.frame, port, conditions)

    def check_counts(self) -> None:
        """Compare all counters, and what the ports remember of their windows."""
        for reason in range(1, 8):
            expected = list(self._v1_counter("ingress.drop_counter", reason))
            if reason == DROP_MALFORMED:
                expected = [n + more for n, more in zip(expected, self._num_malformed_bytes, strict=True)]
            assert self._counter("ingress.drop_counter", reason) == expected, reason
        for port in DATA_PORTS:
            not_int = self._v1_counter("ingress.not_int_counter", port)
            assert self._counter("ingress.not_int_counter", port) == [*not_int], port
            for cell in range(port * 8, port * 8 + 8):
                assert self._counter("egress.level_counter", cell) == [*self._v1_counter("egress.level_counter", cell)]
            self._check_registers(port)
        self._check_controller_ports()
        for (table, key), counted in self._counted.items():
            if table in ("ingress.flow", "ingress.job"):
                expected_cell = self._v1model.control.direct_counter(table, key)
                assert counted == [expected_cell.packets, expected_cell.bytes], (table, key)

    def _check_controller_ports(self) -> None:
        """The controller's packets, whose headers only one of the programs counts."""
        packets, num_bytes = self._v1_counter("egress.level_counter", CPU_PORT * 8 + 7)
        assert self._counter("egress.level_counter", TOFINO_CPU_PORT * 8 + 7) == [
            packets,
            num_bytes + packets * HEADER_BYTES,
        ]
        for port in CONTROLLER_PORTS:
            packets, num_bytes = self._v1_counter("egress.level_counter", port * 8 + 7)
            assert self._counter("egress.level_counter", port * 8 + 7) == [packets, num_bytes - packets * HEADER_BYTES]

    def _check_registers(self, port: int) -> None:
        control, objects = self._v1model.control, self._program.objects
        assert objects["egress.window"].cells[port] == control.register("egress.window", port) % (1 << 32)
        names = ("egress.window_bytes", "egress.last_window_bytes")
        assert objects["egress.window_bytes"].cells[port] == tuple(control.register(name, port) for name in names)

    def _v1_counter(self, name: str, index: int) -> tuple[int, int]:
        cell = self._v1model.control.counter(name, index)
        return cell.packets, cell.bytes

    def _counter(self, name: str, index: int) -> list[int]:
        return list(self._program.objects[name].cells.get(index, (0, 0)))


def _with_one_zero(octets: bytes) -> bytes:
    """A frame whose TCP checksum, where it is a zero of one's complement, is all ones."""
    is_tcp = octets[12:15] == b"\x08\x00\x45" and octets[23] == 6
    return octets[:50] + b"\xff\xff" + octets[52:] if is_tcp and octets[50:52] == b"\0\0" else octets


@pytest.fixture(scope="module")
def tofino() -> TranslatedProgram:
    return translated(TOFINO)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(PACKETS // PACKETS_PER_BATCH // BATCHES_PER_TEST))
def test_both_programs_answer_drawn_packets_equally(tofino: TranslatedProgram, seed: int) -> None:
    for batch in range(BATCHES_PER_TEST):
        random = Random(f"{seed}/{batch}")
        entries = draw_entries(random)
        twins, arrivals = Twins(trainyard(), tofino, entries), Arrivals(random, entries)
        for _ in range(PACKETS_PER_BATCH):
            twins.send(arrivals.draw())
        twins.check_counts()
