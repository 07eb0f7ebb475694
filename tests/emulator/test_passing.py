"""A program that changes nothing, with a CPU port and a drop port of its own: every packet leaves as it came."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.compiler.program import Program, compile_program
from emulator.engine.state import OCTETS
from emulator.fabric import EmulatedFabric
from emulator.ports import CPU_PORT, DROP_PORT
from tests.bmv2.small_programs import PASSING
from tests.emulator.fabrics import star
from tests.emulator.programs import trainyard

OTHER_CPU_PORT, OTHER_DROP_PORT = 400, 300
LATER_PS = 10**9


@pytest.fixture(scope="module")
def program() -> Program:
    return compile_program(PASSING.json.read_text(), drop_port=OTHER_DROP_PORT)


@pytest.fixture(scope="module")
def passing(program: Program) -> EmulatedFabric:
    result = EmulatedFabric(star(3), program, cpu_port=OTHER_CPU_PORT)
    result.switches["s"].clear()
    return result


def send(result: EmulatedFabric, port: int, octets: bytes, length: int | None = None) -> None:
    """Let a packet arrive by a port, and time pass until it is gone."""
    (link,) = (link.index for link in result.fabric.links if (link.destination, link.destination_port) == ("s", port))
    result.inject(link, octets, length)
    assert result.run(result.now_ps + LATER_PS) == ()


def ending_in(size: int, *values: bytes) -> st.SearchStrategy[bytes]:
    """So many random bytes, then one of the values or as many random ones."""
    end = st.one_of(st.sampled_from(values), st.binary(min_size=len(values[0]), max_size=len(values[0])))
    return st.builds(bytes.__add__, st.binary(min_size=size, max_size=size), end)


KINDS = (b"\x81\x00", b"\x08\x00", b"\x86\xdd")
packets = st.builds(
    lambda ethernet, tags, rest, payload, cut: b"".join([ethernet, *tags, *rest, payload])[:cut],
    ending_in(12, *KINDS),
    st.lists(ending_in(2, *KINDS), max_size=5),
    st.one_of(st.tuples(ending_in(17, b"\1", b"\2"), ending_in(41, b"\2")), st.tuples(ending_in(41, b"\2"))),
    st.binary(max_size=64),
    st.one_of(st.just(OCTETS), st.integers(0, 160)),
)


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(packets, st.integers(0, 100))
def test_a_packet_that_the_program_does_not_change_leaves_as_it_came(
    passing: EmulatedFabric, octets: bytes, zeros: int
) -> None:
    send(passing, 1, octets, len(octets) + zeros)
    (capture,) = passing.captured()
    assert passing.fabric.links[capture.link].source_port == 2
    assert capture.length == len(octets) + zeros
    assert capture.octets.ljust(capture.length, b"\0") == octets + bytes(zeros)


def test_the_other_cpu_port_leads_to_the_control_plane_and_back(passing: EmulatedFabric) -> None:
    send(passing, 2, b"upwards")
    assert [packet.octets for packet in passing.packets_in()] == [b"upwards"]
    dropped = passing.drops("s").by_program
    passing.packet_out("s", b"downwards")
    assert passing.run(passing.now_ps + LATER_PS) == ()
    # It comes by port 400, from which the program drops everything.
    assert passing.captured() == ()
    assert passing.drops("s").by_program == dropped + 1


def test_a_drop_by_the_other_port_is_one_by_the_program(passing: EmulatedFabric) -> None:
    before = passing.drops("s")
    send(passing, 3, b"unwanted")
    after = passing.drops("s")
    assert (after.by_program, after.no_such_port) == (before.by_program + 1, before.no_such_port)
    assert passing.captured() == ()


def test_the_drop_port_is_part_of_what_is_compiled(program: Program) -> None:
    usual = compile_program(PASSING.json.read_text())
    assert (usual.drop_port, program.drop_port) == (DROP_PORT, OTHER_DROP_PORT)
    assert usual.source != program.source


def test_ports_that_cannot_be_are_refused_by_name(program: Program) -> None:
    for port in (-1, 512):
        with pytest.raises(ValueError, match=f"the drop port must be within 0 to 511, not {port}"):
            compile_program(json.dumps({}), drop_port=port)
        with pytest.raises(ValueError, match=f"the CPU port must be within 0 to 511, not {port}"):
            EmulatedFabric(star(3), program, cpu_port=port)
    with pytest.raises(ValueError, match="the CPU port cannot be 2: switch 's' has a cable there"):
        EmulatedFabric(star(3), program, cpu_port=2)
    with pytest.raises(ValueError, match="the drop port cannot be 300: switch 's' has a cable there"):
        EmulatedFabric(star(300), program, cpu_port=CPU_PORT)
    with pytest.raises(ValueError, match="the CPU port and the drop port are both 511"):
        EmulatedFabric(star(3), trainyard(), cpu_port=DROP_PORT)
