"""The program for Tofino does what the one for v1model does, but for what ``docs/tofino.md`` names."""

from dataclasses import replace
from random import Random

import pytest

from emulator.compiler.program import Program
from emulator.ports import CPU_PORT
from tests.emulator.lone_switch import LoneSwitch
from tests.emulator.lone_switch import Sent as SentByV1model
from tests.emulator.programs import trainyard
from tests.p4src.packets import Instruction, IntMd, Ipv4, Protocol
from tests.p4src.tna.drawing import CONTROLLER_PORTS, DATA_PORTS, Arrival, Arrivals, draw_entries
from tests.p4src.tna.entries import Entries, NextHop, Prefix, write_to_tofino, write_to_v1model
from tests.p4src.tna.laws import claims_too_much, flow_of, is_cut_short, tofino_choice, v1model_choice
from tests.p4src.tna.plain_v1model import PlainControl, interpreter
from tests.p4src.tna.program import RunningProgram, TranslatedProgram
from tests.p4src.tna.stored import TRAINYARD, translated
from tests.p4src.tna.switch import Conditions, Sent, Switch

TOFINO_CPU_PORT = 192
HEADER_BYTES = 2
"""Of packet-in and packet-out: v1model counts frames as they come, Tofino as they leave."""

DROP_MALFORMED = 1
PACKETS = 100_000
PACKETS_PER_BATCH = 500
BATCHES_PER_TEST = 20


class Twins:
    """Both programs with the same entries; what they are sent they must answer equally.

    What P4 leaves undefined is drawn from ``undefined`` for the one on Tofino.
    """

    def __init__(self, v1model: Program, tofino: TranslatedProgram, entries: Entries, undefined: Random) -> None:
        self._v1model = LoneSwitch(v1model)
        self._program: RunningProgram = tofino.start(undefined)
        self._tofino = Switch(self._program)
        self._num_malformed_bytes = [0, 0]
        write_to_v1model(entries, self._v1model.control)
        self._counted = write_to_tofino(entries, self._program)

    def send(self, arrival: Arrival) -> None:
        """Let a frame come to both."""
        sent = self._on_tofino(arrival)
        if _only_tofino_drops(arrival):
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


def _only_tofino_drops(arrival: Arrival) -> bool:
    """Whether a frame has a whole IPv4 header, but lacks bytes behind it that it announces."""
    return not arrival.is_from_controller and is_cut_short(arrival.frame) and flow_of(arrival.frame) is not None


def _with_one_zero(octets: bytes) -> bytes:
    """A frame whose TCP checksum, where it is a zero of one's complement, is all ones."""
    is_tcp = octets[12:15] == b"\x08\x00\x45" and octets[23] == 6
    return octets[:50] + b"\xff\xff" + octets[52:] if is_tcp and octets[50:52] == b"\0\0" else octets


@pytest.fixture(scope="module")
def tofino() -> TranslatedProgram:
    return translated(TRAINYARD)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(PACKETS // PACKETS_PER_BATCH // BATCHES_PER_TEST))
def test_both_programs_answer_drawn_packets_equally(tofino: TranslatedProgram, seed: int) -> None:
    for batch in range(BATCHES_PER_TEST):
        random = Random(f"{seed}/{batch}")
        entries = draw_entries(random)
        twins, arrivals = Twins(trainyard(), tofino, entries, random), Arrivals(random, entries)
        for _ in range(PACKETS_PER_BATCH):
            twins.send(arrivals.draw())
        twins.check_counts()


def test_each_program_chooses_a_groups_member_by_its_own_law(tofino: TranslatedProgram) -> None:
    random = Random("groups")
    members = (1, 2, 3, 4, 5)
    entries = replace(
        draw_entries(random),
        next_hops={hop: NextHop(hop, 0, 0) for hop in members},
        routes={Prefix(0, 0): members},
        flows={},
    )
    v1model, program = LoneSwitch(trainyard()), tofino.start()
    write_to_v1model(entries, v1model.control)
    write_to_tofino(entries, program)
    switch, choices = Switch(program), set()
    for source_port in range(2000):
        frame = Ipv4(source_port=source_port, destination=random.getrandbits(32)).octets()
        flow = flow_of(frame)
        assert flow is not None
        expected = v1model_choice(entries, flow, members), tofino_choice(entries, flow, members)
        by_v1model, by_tofino = v1model.process(frame), switch.process(frame, 1, Conditions())
        assert by_v1model is not None
        assert by_tofino is not None
        assert (by_v1model.port, by_tofino.port) == expected
        choices.add(expected)
    assert len(choices) == len(members) ** 2


@pytest.mark.parametrize("protocol", [Protocol.UDP, Protocol.TCP])
def test_both_leave_a_stack_alone_that_would_be_longer_than_the_shim_can_tell(
    tofino: TranslatedProgram, protocol: Protocol
) -> None:
    random = Random("stacks")
    entries = replace(
        draw_entries(random),
        next_hops={1: NextHop(1, 7, 9)},
        routes={Prefix(0, 0): (1,)},
        flows={},
        mtu_bytes={},
        mtu_default_bytes=None,
        packet_in_bursts={},
    )
    plain, program = interpreter(), tofino.start()
    write_to_v1model(entries, PlainControl(plain))
    write_to_tofino(entries, program)
    growths = set()
    for stack_words in range(240, 253):
        instructions = random.choice((Instruction.NODE_ID, Instruction.QUEUE | Instruction.NODE_ID))
        hop_words = random.randint(2, 10)
        telemetry = IntMd(instructions=instructions, hop_words=hop_words, stack=random.randbytes(4 * stack_words))
        frame = Ipv4(dscp=1, protocol=protocol, telemetry=telemetry).octets()
        by_v1model = plain.process(frame, 1, (5, 0))
        by_tofino = Switch(program).process(frame, 1, Conditions(enqueue_depth_cells=5))
        assert by_v1model is not None
        assert by_tofino is not None
        assert by_tofino.octets == by_v1model.octets
        growths.add(len(by_tofino.octets) - len(frame) == 4 * hop_words)
    assert growths == {False, True}


def test_only_v1model_sees_that_a_probe_ends_behind_its_frame(tofino: TranslatedProgram) -> None:
    entries = replace(
        draw_entries(Random(1)),
        next_hops={1: NextHop(1, 0, 0)},
        routes={Prefix(0, 0): (1,)},
        flows={},
        mtu_bytes={},
        mtu_default_bytes=None,
    )
    telemetry = IntMd(instructions=Instruction.NODE_ID, hop_words=1)
    frame = Ipv4(dscp=1, telemetry=telemetry, payload=bytes(40)).octets()[:-1]
    assert claims_too_much(frame)
    v1model, program = LoneSwitch(trainyard()), tofino.start()
    write_to_v1model(entries, v1model.control)
    write_to_tofino(entries, program)
    by_v1model, by_tofino = v1model.process(frame), Switch(program).process(frame, 1, Conditions())
    assert by_v1model is not None
    assert by_tofino is not None
    assert len(by_v1model.octets) == len(frame)
    assert len(by_tofino.octets) == len(frame) + 4
