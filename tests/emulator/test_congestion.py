"""Windows are narrow where switches mark congestion, and widen where they do not."""

import json
from collections.abc import Callable
from functools import cache

import pytest

from emulator.compiler.program import Program, compile_program
from emulator.fabric import HostOptions
from emulator.observations import TraceKind
from tests.emulator.fabrics import advance, emulated, five_tuple, star
from tests.emulator.programs import trainyard, trainyard_json


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


@pytest.mark.parametrize(("program", "in_flight"), [(marking, 8), (trainyard, 32)])
def test_window_is_the_flows_own_where_packets_are_marked_and_widens_where_not(
    program: Callable[[], Program], in_flight: int
) -> None:
    options = HostOptions(window_packets=8, widest_window_packets=32)
    result = emulated(star(2), options, trace_rows=1000, program=program())
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
    assert max_in_flight == in_flight
