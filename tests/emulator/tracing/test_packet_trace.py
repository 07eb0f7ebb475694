"""Traces of packets: what they say is what becomes of the packet, and nothing changes."""

import json
from collections import Counter
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.compiler import jumps
from emulator.compiler.layout import UnsupportedError
from emulator.compiler.program import compile_program
from emulator.entries import ActionCall, GroupReference
from emulator.fabric import EmulatedFabric
from emulator.host_options import HostOptions
from emulator.tracing.packet_trace import trace_next, trace_packet
from emulator.tracing.steps import (
    Arrived,
    Condition,
    Copied,
    Delivered,
    DigestTold,
    Dropped,
    FieldChange,
    LeftQueue,
    PacketTrace,
    ParserState,
    Queued,
    Sent,
    TableApplied,
)
from emulator.tracing.text import as_json, as_text
from tests.bmv2.replication_sessions import CLONE, FOREVER, GROUP, MULTICAST, RECIRCULATE, RESUBMIT, request
from tests.bmv2.small_programs import LOOPS
from tests.emulator.drawn.scenarios import drawn
from tests.emulator.fabrics import advance, dumbbell, emulated, five_tuple, prioritise, star
from tests.emulator.interpreter import DROP_PORT, Interpreter
from tests.emulator.lone_switch import LoneSwitch
from tests.emulator.lone_switch import Sent as SentAlone
from tests.emulator.mixed_fabrics import COPIES, LEARNS, PROGRAM_OF, SUMS, Seen, compiled, interpret, lone, prepare, row
from tests.emulator.packets import ipv4_packet
from tests.emulator.programs import trainyard

_REPEATS = 40


def seen_by(trace: PacketTrace) -> Seen:
    """What has come out of a fabric by a trace."""
    seen = Seen()
    for step in trace.steps:
        if isinstance(step, Delivered):
            to = step.to.removeprefix("control plane of ")
            whole = step.octets.ljust(step.length, b"\0")
            (seen.at_hosts if to == step.to else seen.at_control)[to, whole] += 1
        elif isinstance(step, DigestTold):
            seen.digests[step.switch, step.number] += 1
    return seen


def test_a_trace_shows_states_keys_entries_arguments_changes_and_queues_hop_by_hop() -> None:
    fabric = dumbbell(1)
    result = emulated(fabric)
    flow = five_tuple(fabric, "h0", "h1")
    prioritise(result, flow, 5)
    trace = trace_packet(result, "t0", 1, ipv4_packet(flow, payload=bytes(30)), length=1000)
    assert trace.is_complete
    assert [step.switch for step in trace.steps if isinstance(step, Arrived)] == ["t0", "t1"]
    assert [step.name for step in trace.steps if isinstance(step, ParserState)][:2] == ["start", "parse_ethernet"]
    [first, _] = [step for step in trace.steps if isinstance(step, TableApplied) and step.table == "ingress.flow"]
    assert first.is_hit
    assert first.entry_action == ActionCall("ingress.prioritise", (5,))
    assert (first.action, [(found.name, found.value) for found in first.arguments]) == (
        "ingress.prioritise",
        [("level", 5)],
    )
    assert {value.value for value in first.key} >= {flow.source_address, flow.destination_address, 17}
    assert any(change.after == 5 for change in first.changes)
    routed = [step for step in trace.steps if isinstance(step, TableApplied) and step.table == "ingress.routing"]
    assert [type(step.entry_action) for step in routed] == 2 * [GroupReference]
    assert [step.member_id for step in routed] == [2, 1]
    queued = [step for step in trace.steps if isinstance(step, Queued)]
    assert [(step.switch, step.level, step.packets_ahead) for step in queued] == [("t0", 5, 0), ("t1", 5, 0)]
    changes = [change for step in trace.steps for change in getattr(step, "changes", ())]
    assert FieldChange("ipv4.time_to_live", 64, 63) in changes
    sent = [step for step in trace.steps if isinstance(step, Sent)]
    assert sent[1].octets == trace.delivered[0].octets
    assert sent[1].arrives_ps == trace.delivered[0].time_ps
    assert [step.to for step in trace.delivered] == ["h1"]
    text = as_text(trace)
    assert "table ingress.flow: hit" in text
    assert "action ingress.prioritise(level=0x5)" in text
    document = json.loads(json.dumps(as_json(trace)))
    assert document["is_complete"]
    assert [step["to"] for step in document["steps"] if step["step"] == "delivered"] == ["h1"]
    # Nothing has changed.
    assert result.packet_hops == 0
    assert result.run(10**9) == ()
    assert result.captured() == ()


def test_a_trace_shows_all_fields_of_a_header_also_after_a_packet_that_had_the_same() -> None:
    fabric = dumbbell(1)
    flow = five_tuple(fabric, "h0", "h1")
    result = emulated(fabric)
    before = _parsed(trace_packet(result, "t0", 1, ipv4_packet(flow)))
    result.inject(result.link_into("t0", 1), ipv4_packet(flow))
    advance(result, 10**9)
    assert result.packet_hops
    assert before
    assert _parsed(trace_packet(result, "t0", 1, ipv4_packet(flow))) == before


def _parsed(trace: PacketTrace) -> list[tuple[FieldChange, ...]]:
    return [step.changes for step in trace.steps if isinstance(step, ParserState)]


packets = st.builds(
    lambda what, port, value, rest: request(what, value=value, group=GROUP, port=port, payload=rest),
    st.sampled_from([0, CLONE, RESUBMIT, MULTICAST, RECIRCULATE, CLONE | RESUBMIT, MULTICAST | CLONE, RECIRCULATE | 8]),
    st.sampled_from([1, 2, 9, 510, 511]),
    st.integers(0, 255),
    st.binary(min_size=18, max_size=40),
)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from([(COPIES, 1), (LEARNS, 1), (LEARNS, 2), (SUMS, 2)]), packets)
def test_a_trace_tells_what_becomes_of_every_copy(where: tuple[str, int], octets: bytes) -> None:
    """Through switches with different programs; as the interpreters have it, which machine code agrees with."""
    result = EmulatedFabric(row(), {switch: compiled(program) for switch, program in PROGRAM_OF.items()})
    for switch in PROGRAM_OF:
        prepare(result, switch)
    references = {switch: lone(program) for switch, program in PROGRAM_OF.items()}
    trace = trace_packet(result, *where, octets)
    assert trace.is_complete
    assert seen_by(trace) == interpret(result.fabric, references, *where, octets)
    copies = [step.copy for step in trace.steps if isinstance(step, Copied)]
    assert copies == list(range(1, len(copies) + 1))


def test_endless_packets_are_told_as_dropped_and_unfinished_ones_as_under_way() -> None:
    result = EmulatedFabric(row(), {switch: compiled(program) for switch, program in PROGRAM_OF.items()})
    prepare(result, COPIES)
    trace = trace_packet(result, COPIES, 1, request(RESUBMIT | FOREVER, payload=bytes(20)))
    assert [step.reason for step in trace.steps if isinstance(step, Dropped)] == ["too_many_passes"]
    assert trace_packet(result, COPIES, 1, request(0, port=511)).steps[-1] == Dropped(0, 0, COPIES, "by_program")
    nowhere = trace_packet(result, SUMS, 2, bytes(30))
    assert nowhere.steps[-1] == Dropped(0, 0, SUMS, "no_pipeline")
    cut = trace_packet(result, COPIES, 1, request(0, port=1, payload=bytes(40)), within_ps=10)
    assert not cut.is_complete
    assert as_text(cut).endswith("still under way")


@pytest.mark.parametrize("seed", range(40))
def test_traces_of_drawn_programs_end_as_the_interpreter_says(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jumps, "MAX_REPEATS", _REPEATS)
    _compare(seed, with_machine_code=False)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 1278])
def test_traces_of_drawn_programs_end_as_machine_code_does(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jumps, "MAX_REPEATS", _REPEATS)
    _compare(seed, with_machine_code=True)


def _compare(seed: int, *, with_machine_code: bool) -> None:
    scenario = drawn(seed, num_packets=3)
    program = None
    with suppress(UnsupportedError):  # for a checksum in a wide field
        program = compile_program(json.dumps(scenario.program))
    if program is None:
        return
    result = EmulatedFabric(star(3), program)
    [name] = result.switches
    result.switches[name].clear()
    alone = LoneSwitch(program) if with_machine_code else None
    for table, entries in scenario.entries.items():
        for key, call in entries.items():
            result.switches[name].insert(table, key, call)
            if alone:
                alone.control.insert(table, key, call)
    for packet in scenario.packets:
        reference = Interpreter(scenario.program)
        reference.entries |= scenario.entries
        trace = trace_packet(result, name, 1, packet)
        assert trace.is_complete
        expected = reference.process(packet)
        sent = [step for step in trace.steps if isinstance(step, Sent)]
        found = [SentAlone(step.port, _level(trace), step.octets) for step in sent]
        wanted = [] if expected is None or expected.port == DROP_PORT else [expected]
        assert found == wanted
        if alone:
            assert found == [one for one in [alone.process(packet, times_us=(0, 0))] if one]


def _level(trace: PacketTrace) -> int:
    return next(step.level for step in trace.steps if isinstance(step, Queued))


@pytest.mark.parametrize("control", ["fixed", "dctcp"])
def test_the_next_packet_of_a_flow_is_traced_before_it_comes_and_the_fabric_does_the_same(control: str) -> None:
    fabric = dumbbell(2)
    result = emulated(fabric, HostOptions(congestion_controls=(control,)))
    flows = [result.add_flow(five_tuple(fabric, f"h{n}", f"h{n + 2}")) for n in range(2)]
    for flow in flows:
        result.start_transfer(flow, 200_000)
    result.run(3_000_000)
    second = five_tuple(fabric, "h1", "h3").source_address.to_bytes(4, "big")
    trace = trace_next(result, "t0", 2, lambda octets: octets[26:30] == second)
    assert trace is not None
    assert trace.is_complete
    assert [step.switch for step in trace.steps if isinstance(step, Arrived)] == ["t0", "t1"]
    # Two hosts share one cable at a fourth of their rate.
    [waited, _] = [step.waited_ps for step in trace.steps if isinstance(step, LeftQueue)]
    assert waited > 0
    assert trace_next(result, "t0", 2, lambda octets: octets[26:30] == b"nope", within_ps=10**7) is None
    assert result.now_ps == 3_000_000
    again = trace_next(result, "t0", 2, lambda octets: octets[26:30] == second)
    assert again == trace
    assert len(advance(result, 10**10)) == 2


def test_a_condition_is_told_by_its_source() -> None:
    result = EmulatedFabric(row(), compiled(LOOPS))
    prepare(result, SUMS)
    trace = trace_packet(result, SUMS, 2, bytes([1, 3, 2]) + bytes(30))
    [table] = [step for step in trace.steps if isinstance(step, TableApplied)]
    assert [value.value for value in table.key] == [1]
    assert FieldChange("request.result", 0, 9) in table.changes
    kinds = Counter(type(step) for step in trace.steps)
    assert kinds[Condition] == sum(1 for line in as_text(trace).splitlines() if " if " in line)


@pytest.mark.parametrize(
    ("switch", "port", "octets", "length", "named"),
    [
        ("t9", 1, b"", None, "no switch 't9'"),
        ("t0", 77, b"", None, "switch 't0' has no cable at port 77"),
        ("t0", 1, bytes(600), None, "a packet of 600 bytes keeps 512, not 600"),
        ("t0", 1, bytes(60), 20, "a packet of 20 bytes keeps 20, not 60"),
    ],
)
def test_what_cannot_be_traced_is_named(switch: str, port: int, octets: bytes, length: int | None, named: str) -> None:
    result = EmulatedFabric(dumbbell(1), trainyard())
    with pytest.raises(ValueError, match=named):
        trace_packet(result, switch, port, octets, length=length)
