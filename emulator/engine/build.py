"""Initial arrays of the engine for a topology, and larger ones when they fill up or programs need more."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emulator.compiler.program import Program
from emulator.engine import state as s
from emulator.engine.border import border_of, meeting_of
from emulator.engine.events import NEVER_PS, calendar_of
from emulator.engine.packets import packet_words, with_packets, with_rows
from emulator.engine.recording import RECORD_COLUMNS
from emulator.partition import Partition
from emulator.ports import NUM_PORTS
from topologies.fabric import Fabric

_FIRST_PACKETS = 4096
_FIRST_FLOWS = 256
_COMPLETIONS = 256
_CAPTURES = 256
_PS_PER_S = 1e12
FLOW_ARRAYS = ("flows", "templates", "senders", "windows")
"""Arrays of a state with a row per flow, which all parts of a fabric share."""


def first_state(
    fabric: Fabric,
    programs: Sequence[Program],
    drop_port: int,
    cpu_port: int,
    rate_scale: float,
    queue_limit_bytes: int,
    trace_rows: int,
) -> s.State:
    """Return the arrays of a fabric at rest.

    The fabric's links come first. Then come two links per switch, from and to its control plane, and one for packets to
    ports without a cable; they take no time. If a program copies packets, one more link per switch brings packets back
    to it. No switch has a program yet, and there is room for all ``programs``. ``cpu_port`` connects a switch to its
    control plane, and ``drop_port`` is where packets go that a program drops. Rates are divided by ``rate_scale``.
    """
    num_links, num_switches = len(fabric.links), len(fabric.switches)
    more_links = 3 * num_switches
    links = np.zeros((num_links + more_links, s.LINK_COLUMNS), dtype=np.int64)
    links[:, s.LINK_UP] = 1
    links[:, s.LINK_FIRST] = s.NONE
    links[:, [s.LINK_ARRIVES_PS, s.LINK_STARTS_PS]] = NEVER_PS
    links[:, s.LINK_QUEUE_LIMIT_BYTES] = queue_limit_bytes
    port_links = np.full((len(fabric.switches), NUM_PORTS), s.NONE, dtype=np.int64)
    for link in fabric.links:
        row = links[link.index]
        row[s.LINK_SOURCE_SWITCH] = fabric.switch_index.get(link.source, s.NONE)
        row[s.LINK_SOURCE_PORT] = link.source_port
        row[s.LINK_DESTINATION_SWITCH] = fabric.switch_index.get(link.destination, s.NONE)
        row[s.LINK_DESTINATION_PORT] = link.destination_port
        row[s.LINK_DELAY_PS] = round(link.delay_s * _PS_PER_S)
        if link.source in fabric.switch_index:
            port_links[fabric.switch_index[link.source], link.source_port] = link.index
        else:
            nic = fabric.nics[link.source][link.source_port]
            links[fabric.reverse(link.index), s.LINK_ADDRESS] = nic.address
    for switch in range(len(fabric.switches)):
        from_cpu, to_cpu = links[num_links + 2 * switch], links[num_links + 2 * switch + 1]
        from_cpu[s.LINK_SOURCE_SWITCH], from_cpu[s.LINK_DESTINATION_SWITCH] = s.NONE, switch
        from_cpu[s.LINK_DESTINATION_PORT] = to_cpu[s.LINK_SOURCE_PORT] = cpu_port
        to_cpu[s.LINK_SOURCE_SWITCH], to_cpu[s.LINK_DESTINATION_SWITCH] = switch, s.NONE
        to_cpu[s.LINK_ADDRESS] = s.CONTROL_PLANE
        port_links[switch, cpu_port] = num_links + 2 * switch + 1
    for switch, nowhere in enumerate(links[num_links + 2 * num_switches :]):
        nowhere[s.LINK_SOURCE_SWITCH], nowhere[s.LINK_DESTINATION_SWITCH] = switch, s.NONE
        nowhere[s.LINK_SOURCE_PORT], nowhere[s.LINK_ADDRESS] = s.NONE, s.NOWHERE
        empty = port_links[switch] == s.NONE
        empty[drop_port] = False
        port_links[switch, empty] = num_links + 2 * num_switches + switch
    rates = [8 * _PS_PER_S * rate_scale / link.rate_bps for link in fabric.links]
    controls = [control for program in programs for control in program.controls]
    window_words = 1 + max((control.num_words for control in controls), default=0)
    scalars = np.zeros(s.SCALARS, dtype=np.int64)
    scalars[s.FREE_PACKET] = s.NONE
    scalars[s.PACKET_WORDS] = packet_words(0)
    scalars[s.IDLE_UNTIL_PS] = s.NONE
    scalars[s.FIRST_NOWHERE] = num_links + 2 * num_switches
    scalars[s.FIRST_WAY_BACK] = s.NONE
    nothing = np.zeros(0, dtype=np.uint64)
    state = s.State(
        scalars=scalars,
        calendar=calendar_of(len(links)),
        timers=calendar_of(_FIRST_FLOWS),
        packets=nothing.view(np.int64).reshape(0, scalars[s.PACKET_WORDS]),
        words=nothing,
        octets=nothing.view(np.uint8),
        phv=np.zeros(0, dtype=np.uint64),
        links=links,
        ps_per_byte=np.array(rates + [0.0] * more_links),
        port_links=port_links,
        programs=np.zeros(num_switches + 1, dtype=np.int64),
        blocks=np.zeros(num_switches, dtype=np.int64),
        loops=np.zeros(0, dtype=np.int64),
        drops=np.zeros((len(fabric.switches) + 1, s.DROP_REASONS), dtype=np.int64),
        flows=np.zeros((_FIRST_FLOWS, s.FLOW_COLUMNS), dtype=np.int64),
        templates=np.zeros((_FIRST_FLOWS, 2, s.TEMPLATE), dtype=np.uint8),
        senders=np.zeros((_FIRST_FLOWS if controls else 0, s.SENDER_COLUMNS), dtype=np.int64),
        windows=np.zeros((_FIRST_FLOWS if controls else 0, window_words), dtype=np.float64),
        completions=np.zeros((_COMPLETIONS, 2), dtype=np.int64),
        captures=np.zeros((_CAPTURES, 3), dtype=np.int64),
        kicks=np.zeros(len(links), dtype=np.int64),
        trace=np.zeros((trace_rows + s.RESERVE if trace_rows else 0, s.TRACE_COLUMNS), dtype=np.int64),
        records=np.zeros((0, RECORD_COLUMNS), dtype=np.int64),
        recorded=np.zeros(0, dtype=np.uint8),
        wires=np.zeros(0, dtype=np.int64),
        payloads=np.zeros(0, dtype=np.uint8),
        border=np.zeros(0, dtype=np.int64),
        meeting=np.zeros(0, dtype=np.int64),
    )
    for program in programs:
        state = with_program(state, program)
    return with_packets(state, _FIRST_PACKETS)


def with_program(state: s.State, program: Program) -> s.State:
    """Return a state with room for what a program needs; packets keep their numbers, and what has happened stays."""
    state.scalars[s.PARSE_BYTES] = max(state.scalars[s.PARSE_BYTES], program.longest_parse_bytes)
    if program.layout.num_words > len(state.phv):
        state = state._replace(phv=np.zeros(program.layout.num_words, dtype=np.uint64))
    if program.resources.replicates and state.scalars[s.FIRST_WAY_BACK] == s.NONE:
        state = _with_ways_back(state)
    return with_rows(state, program.row_words)


def _with_ways_back(state: s.State) -> s.State:
    """Return a state with one more link per switch, which brings packets back to it."""
    num_switches, first = len(state.blocks), len(state.links)
    more = np.zeros((num_switches, s.LINK_COLUMNS), dtype=np.int64)
    more[:, s.LINK_UP] = 1
    more[:, s.LINK_FIRST] = s.NONE
    more[:, [s.LINK_ARRIVES_PS, s.LINK_STARTS_PS]] = NEVER_PS
    more[:, s.LINK_QUEUE_LIMIT_BYTES] = state.links[-1, s.LINK_QUEUE_LIMIT_BYTES]
    more[:, s.LINK_SOURCE_SWITCH] = more[:, s.LINK_DESTINATION_SWITCH] = np.arange(num_switches)
    more[:, s.LINK_DESTINATION_PORT] = s.NONE
    state.scalars[s.FIRST_WAY_BACK] = first
    return state._replace(
        calendar=calendar_of(first + num_switches, state.calendar),
        links=np.concatenate([state.links, more]),
        ps_per_byte=np.concatenate([state.ps_per_byte, np.zeros(num_switches)]),
        kicks=np.concatenate([state.kicks, np.zeros(num_switches, dtype=np.int64)]),
    )


def with_borders(states: Sequence[s.State], parts: Partition) -> list[s.State]:
    """Return the states of a fabric's parts, made from as many states of the whole fabric.

    They share what only Python changes, the flows, of which sender and receiver change different columns, and the words
    of ``emulator.engine.border`` by which they meet.
    """
    if len(states) == 1:
        return list(states)
    first, meeting = states[0], meeting_of(parts.cores)
    names = ("ps_per_byte", "port_links", "programs", "blocks", *FLOW_ARRAYS)
    shared = {name: getattr(first, name) for name in names}
    return [
        state._replace(
            **shared,
            meeting=meeting,
            border=border_of(part, parts.cores, parts.lookahead_ps, parts.cuts(part), parts.host_links(part)),
        )
        for part, state in enumerate(states)
    ]


def grown(array: NDArray[Any]) -> NDArray[Any]:
    """Return the same rows followed by as many zero rows."""
    return np.concatenate([array, np.zeros_like(array)])


def grown_flows(state: s.State) -> s.State:
    """Return a state with room for twice as many flows; existing flows keep their numbers."""
    flows = grown(state.flows)
    timers = calendar_of(len(flows), state.timers)
    senders, windows = grown(state.senders), grown(state.windows)
    return state._replace(
        flows=flows, templates=grown(state.templates), timers=timers, senders=senders, windows=windows
    )


def grown_packets(state: s.State) -> s.State:
    """Return a state with twice as many packets; packets in use keep their numbers."""
    return with_packets(state, 2 * len(state.packets))
