"""Clones, multicast, resubmission and recirculation: as the plain interpreter has it, and never without end."""

import json
from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.compiler.program import compile_program
from emulator.entries import AlreadyExistsError, InvalidRequestError, NotFoundError, ResourceExhaustedError, SwitchError
from emulator.observations import Drops
from emulator.replication import Replica, Replication, Replicator
from tests.bmv2.replication_sessions import (
    CLONE,
    CLONE_EGRESS,
    FOREVER,
    GROUP,
    MULTICAST,
    RECIRCULATE,
    REPLICAS,
    RESUBMIT,
    SESSION,
    WIDE_SESSION,
    request,
)
from tests.bmv2.session import CPU_PORT, Packet
from tests.bmv2.small_programs import REPLICATION, EmulatedProgram
from tests.emulator.programs import Json, trainyard_json
from tests.emulator.replicating_interpreter import MAX_PASSES, ReplicatingInterpreter

PORTS = (1, 2, 3, CPU_PORT)
NO_CABLE = 9

replicas = st.builds(Replica, st.sampled_from(PORTS), st.sampled_from([0, 1, 0xFFFF]))
groups = st.builds(Replication, st.lists(replicas, max_size=5, unique=True).map(tuple))
sessions = st.builds(
    Replication,
    st.lists(replicas, max_size=3, unique=True).map(tuple),
    longest_bytes=st.none() | st.integers(1, 40),
    level=st.none() | st.integers(0, 7),
)
packets = st.builds(
    lambda what, value, port, payload: request(what, value=value, port=port, payload=payload),
    st.integers(0, FOREVER - 1) | st.sampled_from([RESUBMIT | FOREVER, RESUBMIT | CLONE | FOREVER]),
    st.integers(0, 255),
    st.sampled_from([*PORTS, NO_CABLE, 511]),
    st.binary(max_size=30),
)


@cache
def switch() -> EmulatedProgram:
    """The program that does what packets ask for, compiled once."""
    return EmulatedProgram(REPLICATION)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(groups, sessions, st.lists(st.tuples(st.integers(1, 3), packets), min_size=1, max_size=6))
def test_copies_are_those_of_the_interpreter(
    group: Replication, session: Replication, arrivals: list[tuple[int, bytes]]
) -> None:
    emulated, reference = switch(), ReplicatingInterpreter(json.loads(REPLICATION.json.read_text()))
    emulated.clear()
    emulated.control.replication(Replicator.GROUP).insert(GROUP, group)
    emulated.control.replication(Replicator.SESSION).insert(SESSION, session)
    reference.multicast_groups[GROUP], reference.sessions[SESSION] = group, session
    before = lost(emulated).too_many_passes
    for port, octets in arrivals:
        leaving = reference.process_all(octets, port)
        expected = [(sent.port, sent.octets) for sent in leaving if sent.port != NO_CABLE]
        assert [(sent.port, sent.octets) for sent in emulated.send(Packet(port, octets))] == sorted(expected)
    assert lost(emulated).too_many_passes - before == reference.lost


def lost(emulated: EmulatedProgram) -> Drops:
    """What the switch has dropped since it was made."""
    return emulated.fabric.drops(emulated.control.name)


@pytest.mark.parametrize("what", [RESUBMIT, RESUBMIT | CLONE, RECIRCULATE, RECIRCULATE | CLONE_EGRESS])
@pytest.mark.parametrize("port", [1, CPU_PORT])
def test_a_packet_that_comes_back_forever_is_dropped_and_counted(what: int, port: int) -> None:
    emulated = switch()
    emulated.clear()
    emulated.control.replication(Replicator.SESSION).insert(SESSION, Replication((Replica(2), Replica(CPU_PORT))))
    before = lost(emulated)
    sent = emulated.send(Packet(1, request(what | FOREVER, port=port)))
    after = lost(emulated)
    ended = after.too_many_passes + after.too_long - before.too_many_passes - before.too_long
    assert ended >= 1
    assert len(sent) <= 2 * (MAX_PASSES + 1)
    assert all(packet.port in (2, CPU_PORT) for packet in sent)


def test_recirculation_takes_the_time_of_the_port() -> None:
    """At 1 Tbit/s, 26 bytes take 0.208 ns; a packet that is resubmitted takes no time."""
    emulated = switch()
    emulated.clear()
    emulated.send(Packet(1, request(0)))
    times = []
    for what in (0, RESUBMIT, RECIRCULATE):
        start_ps = emulated.fabric.now_ps
        emulated.fabric.inject(0, request(what, port=2))
        emulated.fabric.run(start_ps + 1_000_000)
        [capture] = emulated.fabric.captured()
        times.append((capture.time_ps - start_ps, capture.length))
    (plain_ps, plain_bytes), (resubmitted_ps, _), (recirculated_ps, recirculated_bytes) = times
    assert resubmitted_ps == plain_ps
    assert recirculated_bytes == plain_bytes + 18
    assert recirculated_ps == pytest.approx(plain_ps + plain_ps * recirculated_bytes / plain_bytes, abs=2)


def test_a_group_without_replicas_is_a_drop_by_reason() -> None:
    emulated = switch()
    emulated.clear()
    before = lost(emulated)
    assert emulated.send(Packet(1, request(MULTICAST))) == []
    emulated.control.replication(Replicator.GROUP).insert(GROUP, Replication(()))
    assert emulated.send(Packet(1, request(MULTICAST))) == []
    assert lost(emulated).no_group - before.no_group == 2


def test_groups_change_and_go_while_packets_come() -> None:
    emulated = switch()
    emulated.clear()
    memory = emulated.control.replication(Replicator.GROUP)
    everyone = Replication(tuple(Replica(port, instance) for port in (1, 2, 3) for instance in range(170)))
    octets = request(MULTICAST | CLONE, session=WIDE_SESSION)
    memory.insert(GROUP, everyone)
    sessions_memory = emulated.control.replication(Replicator.SESSION)
    sessions_memory.insert(WIDE_SESSION, Replication((Replica(1), *everyone.replicas[1:])))
    assert len(emulated.send(Packet(1, octets))) == 2 * 510
    memory.modify(GROUP, Replication((Replica(3),)))
    sessions_memory.delete(WIDE_SESSION)
    assert [packet.port for packet in emulated.send(Packet(1, octets))] == [3]
    memory.delete(GROUP)
    assert emulated.send(Packet(1, octets)) == []


WRONG: dict[str, tuple[int, Replication, type[SwitchError]]] = {
    "number 0": (0, Replication(()), InvalidRequestError),
    "number too high": (1 << 16, Replication(()), InvalidRequestError),
    "unknown port": (1, Replication((Replica(4),)), InvalidRequestError),
    "instance too high": (1, Replication((Replica(1, 1 << 16),)), InvalidRequestError),
    "replica given twice": (1, Replication((Replica(1, 1), Replica(1, 1))), InvalidRequestError),
    "level too high": (1, Replication((), level=8), InvalidRequestError),
    "too many": (1, Replication(tuple(Replica(1, n) for n in range(512))), ResourceExhaustedError),
    "there already": (GROUP, Replication(()), AlreadyExistsError),
}


@pytest.mark.parametrize(("number", "replication", "error"), WRONG.values(), ids=WRONG.keys())
def test_what_cannot_be_replicated_is_refused(number: int, replication: Replication, error: type[SwitchError]) -> None:
    emulated = switch()
    emulated.clear()
    memory = emulated.control.replication(Replicator.GROUP)
    memory.insert(GROUP, Replication(tuple(Replica(*place) for place in REPLICAS[GROUP])))
    with pytest.raises(error):
        memory.insert(number, replication)
    for change in (lambda: memory.modify(8, Replication(())), lambda: memory.delete(8)):
        with pytest.raises(NotFoundError):
            change()
    assert [number for number, _ in memory] == [GROUP]
    assert len(emulated.send(Packet(1, request(MULTICAST)))) == len(REPLICAS[GROUP])


GROUP_FIELD = {"type": "field", "value": ["standard_metadata", "mcast_grp"]}
NUMBER = {"type": "hexstr", "value": "0x1"}
WINDOW = {"type": "register_array", "value": "egress.window"}
CRC = {"type": "calculation", "value": "calc"}


def _done(operation: str, *parameters: object) -> dict[str, object]:
    return {"op": operation, "parameters": list(parameters)}


def _in_an_action(program: Json, operation: str, *parameters: object) -> None:
    program["actions"][0]["primitives"].append(_done(operation, *parameters))


def _in_the_parser(program: Json, operation: str, *parameters: object) -> None:
    program["parsers"][0]["parse_states"][0]["parser_ops"].append(_done(operation, *parameters))


@pytest.mark.parametrize(
    "ask",
    [
        lambda program: _in_an_action(program, "assign", GROUP_FIELD, NUMBER),
        lambda program: _in_an_action(program, "register_read", GROUP_FIELD, WINDOW, NUMBER),
        lambda program: _in_an_action(program, "modify_field_rng_uniform", GROUP_FIELD, NUMBER, NUMBER),
        lambda program: _in_an_action(program, "modify_field_with_hash_based_offset", GROUP_FIELD, NUMBER, CRC, NUMBER),
        lambda program: _in_the_parser(program, "set", GROUP_FIELD, NUMBER),
    ],
    ids=["assignment", "register", "random number", "hash", "parser"],
)
def test_whatever_writes_a_group_asks_for_copies(ask: Callable[[Json], None]) -> None:
    program = trainyard_json()
    assert not compile_program(json.dumps(program)).resources.replicates
    ask(program)
    assert compile_program(json.dumps(program)).resources.replicates
