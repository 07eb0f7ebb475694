"""Traces one packet through the switches of a fabric: what it meets at every step, without changing anything.

A trace runs on a copy of the fabric, whose engine is executed as the plain Python that it is written in, with calls at
every step. The copy does what the fabric would: other packets, queues, counters and random numbers are as they are. The
fabric itself stays as it is, and its machine code knows nothing of traces.
"""

import re
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from emulator.compiler.functions import TELL
from emulator.engine import state as s
from emulator.fabric import EmulatedFabric
from emulator.single_packets import put_on_link
from emulator.snapshot import Snapshot
from emulator.tracing.plain import PlainFunctions, executed
from emulator.tracing.recorder import Recorder
from emulator.tracing.steps import PacketTrace

WITHIN_PS = 10_000_000_000
"""10 ms: how long a packet is followed, unless told otherwise."""

MOST_EVENTS = 100_000
"""Events of a fabric in one trace, at about 20,000 in a second; a packet that is still under way then is left there."""

_TELL = re.compile(rf"^( *){TELL}", re.MULTILINE)


def trace_packet(
    emulated: EmulatedFabric,
    switch: str,
    port: int,
    octets: bytes,
    *,
    length: int | None = None,
    within_ps: int = WITHIN_PS,
) -> PacketTrace:
    """Return what would happen to a packet that arrives now by a port of a switch.

    Args:
        emulated: The fabric, which does not change.
        switch: The name of the switch.
        port: A port with a cable, or the CPU port for a packet of the control plane.
        octets: The packet's first bytes.
        length: Its whole length in bytes; what is not given is zeros. None: that of ``octets``.
        within_ps: How long it is followed.

    Raises:
        ValueError: There is no such switch or port, or there are more bytes than a packet stores or has.
    """
    link = emulated.link_into(switch, port)
    return trace_on_copy(emulated, emulated.snapshot(), link, octets, length=length, within_ps=within_ps)


def trace_on_copy(
    emulated: EmulatedFabric,
    snapshot: Snapshot,
    link: int,
    octets: bytes,
    *,
    length: int | None = None,
    within_ps: int = WITHIN_PS,
) -> PacketTrace:
    """Return what would have happened to a packet at the end of a link when a copy was made, which is used up.

    Entries must not have changed since. Raises ValueError as ``trace_packet``.
    """
    length = len(octets) if length is None else length
    snapshot.make_room()
    packet = put_on_link(snapshot.state, link, octets, length)
    return _followed(emulated, snapshot, packet, within_ps)


def trace_next(
    emulated: EmulatedFabric,
    switch: str,
    port: int,
    matches: Callable[[bytes], bool] = bool,
    *,
    within_ps: int = WITHIN_PS,
) -> PacketTrace | None:
    """Return what will happen to the next packet on the cable into a port for whose first bytes ``matches`` holds.

    The copy runs on, by machine code, until such a packet is on the cable; it looks at every packet there. The fabric
    itself does not change, and does the same when it runs. None: there is no such packet within ``within_ps``.

    Raises:
        ValueError: There is no such switch or port, or the fabric has real interfaces, whose frames nobody can foresee.
    """
    link = emulated.link_into(switch, port)
    snapshot = emulated.snapshot()
    if len(snapshot.state.wires):
        raise ValueError("what comes by real interfaces cannot be foreseen; trace a packet of your own")
    end_ps = snapshot.now_ps + within_ps
    while True:
        packet = _on_link(snapshot.state, link, matches)
        if packet is not None:
            return _followed(emulated, snapshot, packet, within_ps)
        # A packet is on its link for longer than an event lasts: none is missed.
        next_ps = snapshot.next_event_ps
        if next_ps > end_ps:
            return None
        snapshot.run(emulated.loop, next_ps)


def _on_link(state: s.State, link: int, matches: Callable[[bytes], bool]) -> int | None:
    """Return the first packet on a link that matches."""
    packet = int(state.links[link, s.LINK_FIRST])
    while packet != s.NONE:
        at = 8 * (packet * int(state.scalars[s.PACKET_WORDS]) + s.PACKET_OCTETS)
        if matches(state.octets[at : at + int(state.packets[packet, s.PACKET_STORED])].tobytes()):
            return packet
        packet = int(state.packets[packet, s.PACKET_NEXT])
    return None


def _followed(emulated: EmulatedFabric, snapshot: Snapshot, packet: int, within_ps: int) -> PacketTrace:
    """Run a copy until nothing is left of a packet."""
    recorder = Recorder(emulated, snapshot.memory)
    recorder.track(packet)
    loop = _plain_loop(emulated, recorder)
    end_ps, events = snapshot.now_ps + within_ps, 0
    with np.errstate(all="ignore"):
        while recorder.tracked and events < MOST_EVENTS and snapshot.next_event_ps <= end_ps:
            snapshot.run(loop, snapshot.next_event_ps)
            events += 1
    return PacketTrace(tuple(recorder.steps), is_complete=not recorder.tracked)


def _plain_loop(emulated: EmulatedFabric, recorder: Recorder) -> Callable[[s.State, NDArray[np.uint64], int], None]:
    """Return the event loop of all programs of a fabric, as Python that tells the recorder what happens."""
    plain = PlainFunctions(recorder.wrappers)
    runs = {
        number: plain.namespace(executed(_TELL.sub(r"\1", program.source), program.names), tell=recorder)["run"]
        for program, number in emulated.program_numbers.items()
    }

    def loop(state: s.State, memory: NDArray[np.uint64], until_ps: int) -> None:
        while True:
            state.scalars[s.WANTED_PROGRAM] = 0
            runs[int(state.scalars[s.PROGRAM])](state, memory, np.int64(until_ps))
            if not state.scalars[s.WANTED_PROGRAM]:
                return
            state.scalars[s.PROGRAM] = state.scalars[s.WANTED_PROGRAM]

    return loop
