"""Switches of one fabric with programs of their own: each does what it does alone."""

import json
from functools import cache

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from emulator.compiler.program import compile_program
from emulator.entries import CounterValue, InvalidRequestError
from emulator.fabric import EmulatedFabric
from p4src import PROGRAM
from tests.bmv2.replication_sessions import CLONE, FOREVER, GROUP, MULTICAST, RECIRCULATE, RESUBMIT, request
from tests.bmv2.small_programs import DIGESTS, LOOPS, REPLICATION, SmallProgram
from tests.emulator.fabrics import advance, dumbbell, emulated, five_tuple, routing_of, write_entries
from tests.emulator.interpreter import Interpreter
from tests.emulator.mixed_fabrics import (
    COPIES,
    GROUPS,
    LATER_PS,
    LEARNS,
    PROGRAM_OF,
    SUMS,
    EndlessError,
    Seen,
    compiled,
    emulate,
    interpret,
    link_into,
    lone,
    prepare,
    row,
    seen_in,
)
from tests.emulator.programs import trainyard
from tests.emulator.single_packets import drops

PORTS = {COPIES: (1, 2), LEARNS: (1, 2, 3), SUMS: (1, 2)}
COUNTER = "Done.instances"

packets = st.one_of(
    st.builds(
        lambda what, port, value, rest: request(what, value=value, group=GROUP, port=port, payload=rest),
        st.integers(0, FOREVER - 1),
        st.sampled_from([1, 2, 3, 9, 510, 511]),
        st.integers(0, 255),
        st.binary(min_size=18, max_size=40),
    ),
    st.builds(
        lambda what, count, port, rest: bytes([what, count, port]) + rest,
        st.integers(0, 6),
        st.integers(0, 9),
        st.integers(1, 3),
        st.binary(min_size=20, max_size=40),
    ),
)
arrivals = st.sampled_from([(switch, port) for switch, ports in PORTS.items() for port in ports])


@cache
def mixed() -> EmulatedFabric:
    """The row with the programs that its switches are named after."""
    return EmulatedFabric(row(), {switch: compiled(program) for switch, program in PROGRAM_OF.items()})


def given_programs(programs: dict[str, SmallProgram]) -> tuple[EmulatedFabric, dict[str, Interpreter]]:
    """The row with these programs, and interpreters of them."""
    result = mixed()
    for switch, program in programs.items():
        result.load_program(switch, compiled(program))
        prepare(result, switch)
    seen_in(result)
    return result, {switch: lone(program) for switch, program in programs.items()}


def test_each_switch_runs_the_program_it_was_made_with() -> None:
    result, references = given_programs(PROGRAM_OF)
    octets = request(0, port=2, payload=bytes(30))
    seen = emulate(result, COPIES, 1, octets)
    assert seen == interpret(result.fabric, references, COPIES, 1, octets)
    assert [host for host, _ in seen.at_hosts] == ["b"]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.tuples(*(st.sampled_from([REPLICATION, DIGESTS, LOOPS]) for _ in range(3))), st.data())
def test_switches_do_what_each_does_alone(programs: tuple[SmallProgram, ...], data: st.DataObject) -> None:
    """Whatever the programs are, packets, copies, digests, PacketIns and counters are the interpreters'."""
    result, references = given_programs(dict(zip((COPIES, LEARNS, SUMS), programs, strict=True)))
    for (switch, port), octets in data.draw(st.lists(st.tuples(arrivals, packets), min_size=1, max_size=5)):
        try:
            expected = interpret(result.fabric, references, switch, port, octets)
        except EndlessError:
            reject()
        assert emulate(result, switch, port, octets) == expected
    for switch, reference in references.items():
        if result.programs[switch].resources.counters:
            for name, counter in result.programs[switch].resources.counters.items():
                for index in range(counter.size):
                    wanted = CounterValue(*reference.counters.get((name, index), [0, 0]))
                    assert result.switches[switch].counter(name, index) == wanted


def test_a_program_is_swapped_while_packets_wait_and_others_forward() -> None:
    """What waits in the switch is lost and counted; what is on a cable, and the other switches, go on."""
    result, references = given_programs(PROGRAM_OF)
    octets = request(RECIRCULATE, port=2, payload=bytes(30))
    link = link_into(result.fabric, COPIES, 1)
    before = result.drops(COPIES).no_pipeline
    for _ in range(50):
        result.inject(link, octets)
    result.run(result.now_ps + 1000)  # of 0.4 ns that each packet takes
    result.load_program(COPIES, compiled(LOOPS))
    lost = result.drops(COPIES).no_pipeline - before
    assert lost > 0
    prepare(result, COPIES)
    result.run(result.now_ps + LATER_PS)
    assert sum(seen_in(result).at_hosts.values()) == 50 - lost
    references[COPIES] = lone(LOOPS)
    again = bytes([0, 5, 2]) + bytes(30)
    assert emulate(result, COPIES, 1, again) == interpret(result.fabric, references, COPIES, 1, again)
    with pytest.raises(InvalidRequestError, match=r"no counter 'Done\.instances'"):
        result.switches[COPIES].counter(COUNTER, 0)


def test_a_switch_without_a_program_drops_until_it_has_one() -> None:
    result = EmulatedFabric(row(), {LEARNS: compiled(DIGESTS)})
    result.switches[LEARNS].clear()
    result.switches[COPIES].clear()
    assert dict(result.programs) == {LEARNS: compiled(DIGESTS)}
    octets = request(MULTICAST | CLONE | RESUBMIT, group=GROUP, payload=bytes(30))
    assert emulate(result, COPIES, 1, octets) == Seen()
    assert drops(result, COPIES) == {"no_pipeline": 1}
    # The first program that copies packets brings links, larger rows and more words with it.
    result.load_program(COPIES, compiled(REPLICATION))
    assert emulate(result, COPIES, 1, octets) == Seen()
    prepare(result, COPIES)
    references = {COPIES: lone(REPLICATION), LEARNS: lone(DIGESTS)}
    expected = interpret(result.fabric, references, COPIES, 1, octets)
    assert emulate(result, COPIES, 1, octets) == expected
    assert len(expected.at_control) == len(GROUPS.replicas) - 1
    result.set_switch(COPIES, up=False)
    result.set_switch(COPIES, up=True)
    assert emulate(result, COPIES, 1, octets) == Seen()


def test_packets_under_way_survive_that_a_larger_program_comes() -> None:
    result = EmulatedFabric(row(), {LEARNS: compiled(DIGESTS), SUMS: compiled(LOOPS)})
    for switch in (LEARNS, SUMS):
        result.switches[switch].clear()
    octets = [bytes([0]) + number.to_bytes(6, "big") + bytes(40) for number in range(20)]
    for each in octets:
        result.inject(link_into(result.fabric, LEARNS, 3), each)
    result.run(result.now_ps + 1000)
    result.load_program(COPIES, compiled(REPLICATION))
    result.run(result.now_ps + LATER_PS)
    assert seen_in(result).at_hosts == {("b", bytes(47)): 20}


def test_equal_programs_are_one_and_change_nothing() -> None:
    """Byte for byte and to the picosecond: transfers, counters and trace of a fabric with one program."""
    fabric = dumbbell(2)
    twin = compile_program(json.dumps(json.loads(json.dumps(json.loads(_text())))))
    assert twin == trainyard()
    other = compile_program(json.dumps({**json.loads(_text()), "program": "another name"}))
    assert other != trainyard()
    seen = []
    for second in (trainyard(), twin, other):
        result = emulated(fabric, program={"t0": trainyard(), "t1": second}, trace_rows=100_000)
        flows = [result.add_flow(five_tuple(fabric, f"h{n}", f"h{n + 2}")) for n in range(2)]
        for flow in flows:
            result.start_transfer(flow, 300_000)
        completions = advance(result, 10**9)
        assert len(completions) == 2
        counted = [result.drops(name) for name in fabric.switches]
        seen.append((completions, result.take_trace(), counted, result.packet_hops, result.sent_bytes().tolist()))
    assert seen[0] == seen[1] == seen[2]


def test_programs_are_swapped_during_a_run() -> None:
    """A transfer goes on when a switch in its way gets its program, under another name, and its entries anew."""
    fabric = dumbbell(1)
    other = compile_program(json.dumps({**json.loads(_text()), "program": "another name"}))
    result = emulated(fabric)
    flow = result.add_flow(five_tuple(fabric, "h0", "h1"))
    result.start_transfer(flow, 3_000_000)
    for until_ps, program in ((10**8, other), (15 * 10**7, trainyard())):
        assert result.run(until_ps) == ()
        result.load_program("t0", program)
        result.switches["t0"].clear()
        write_entries(result.switches["t0"], routing_of(fabric))
    [completion] = advance(result, 10**13)
    assert completion.flow == flow
    assert result.retransmissions(flow) > 0


def test_what_does_not_fit_is_named() -> None:
    own = compiled(LOOPS)
    elsewhere = compile_program(LOOPS.json.read_text(), drop_port=300)
    wired = compile_program(LOOPS.json.read_text(), is_wired=True)
    with pytest.raises(ValueError, match="switch 'leaf', which the fabric does not have"):
        EmulatedFabric(row(), {"leaf": own})
    with pytest.raises(ValueError, match="no switch has a program"):
        EmulatedFabric(row(), {})
    with pytest.raises(ValueError, match="has drop port 300, and the fabric's is 511"):
        EmulatedFabric(row(), {COPIES: own, SUMS: elsewhere})
    result = EmulatedFabric(row(), own)
    with pytest.raises(ValueError, match="has drop port 300"):
        result.load_program(SUMS, elsewhere)
    with pytest.raises(ValueError, match="compiled with real interfaces, and the fabric's others without"):
        result.load_program(SUMS, wired)
    with pytest.raises(ValueError, match="no switch 'leaf'"):
        result.load_program("leaf", own)
    assert set(result.programs.values()) == {own}


def _text() -> str:
    return PROGRAM.read_text()
