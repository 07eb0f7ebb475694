"""Windows shrink where switches mark congestion."""

import json
from functools import cache

import pytest

from emulator.compiler.program import Program, compile_program
from emulator.fabric import HostOptions, TraceKind
from tests.emulator.fabrics import advance, emulated, five_tuple, star
from tests.emulator.programs import trainyard_json


@cache
def marking() -> Program:
    """Trainyard's program, but every packet that it forwards has experienced congestion."""
    program = trainyard_json()
    forward = next(action for action in program["actions"] if action["name"] == "ingress.forward")
    congested = {"type": "hexstr", "value": "0x03"}
    forward["primitives"].append(
        {"op": "assign", "parameters": [{"type": "field", "value": ["ipv4", "ecn"]}, congested]}
    )
    return compile_program(json.dumps(program))


@pytest.mark.parametrize(("acknowledge_every", "least"), [(1, 1), (4, 4)])
def test_window_shrinks_to_what_one_acknowledgement_answers_and_the_flow_goes_on(
    acknowledge_every: int, least: int
) -> None:
    options = HostOptions(window_packets=32, acknowledge_every=acknowledge_every)
    result = emulated(star(2), options, trace_rows=1000, program=marking())
    flow = result.add_flow(five_tuple(result.fabric, "h0", "h1"))
    result.start_transfer(flow, 2000 * 4096)
    (completion,) = advance(result, 10**13)
    assert completion.time_ps < 10**11, "the flow has waited for a timeout"
    assert result.retransmissions(flow) == 0
    nic_link = result.fabric.nics["h0"][0].link
    acknowledged = max_in_flight = 0
    for row in result.take_trace():
        if row.kind is TraceKind.STARTED and row.link == result.fabric.reverse(nic_link):
            acknowledged = row.number
        elif row.kind is TraceKind.QUEUED and row.link == nic_link and row.number > 1500:
            max_in_flight = max(max_in_flight, row.number + 1 - acknowledged)
    assert max_in_flight == least
