"""Compares congestion controls: ``python benchmarks/congestion.py [NAME ...] [--json]``.

The names are those of registered controls, ``fixed``, or ``module:attribute``. Hosts of 40 Gbit/s share a cable of 10
Gbit/s, with 1,500-byte packets, an acknowledgement for each, and Trainyard's program in switches that mark from 20
packets and hold 100. A packet takes 28 us there and back where it waits nowhere. Everything happens in virtual time,
so that the figures are the same on every machine.

Four flows send for 40 ms; the last 20 ms are measured. Then 200 transfers of 20 kB go one after the other beside two
flows that send all the time. Then 32 hosts send 64 kB each to one at once, five times.
"""

import argparse
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.provenance import print_figures, provenance
from emulator.base_entries import install_routing
from emulator.compiler.program import compile_program
from emulator.congestion import FIXED
from emulator.congestion.registry import CongestionControlError, control_names, load_control
from emulator.entries import ActionCall
from emulator.fabric import PS_PER_S, EmulatedFabric
from emulator.host_options import HostOptions
from p4src import PROGRAM
from topologies.addressing import UDP_PROTOCOL, FiveTuple
from topologies.ecmp import hash_multipliers
from topologies.fabric import Fabric
from topologies.routing import Routing
from topologies.specification import DumbbellSpecification, StarSpecification

PAYLOAD_BYTES, PACKET_BYTES = 1458, 1500
MARK_FROM_PACKETS, BUFFER_PACKETS = 20, 100
SWIFT_TARGET_S = 40e-6
SENDERS, PART_BYTES, ROUNDS = 32, 64_000, 5
SHORT_BYTES, SHORT_TRANSFERS = 20_000, 200
STEP_PS = PS_PER_S // 50_000


@dataclass(frozen=True)
class Figures:
    """What a control achieves; times in microseconds, queues in packets."""

    goodput_gbps: float
    fairness: float
    queue_mean: float
    queue_max: float
    short_transfer_mean_us: float
    short_transfer_p99_us: float
    incast_over_ideal: float
    incast_timeouts: int | None
    incast_drops: int


def measure(names: list[str]) -> dict[str, Figures]:
    """Return the figures of each control; all are compiled in together."""
    controls = tuple(FIXED if name == FIXED else load_control(name) for name in names)
    controls = tuple(
        one if one == FIXED or one.name != "swift" else one.with_parameters({"base_target_s": SWIFT_TARGET_S})
        for one in controls
    )
    options = HostOptions(PAYLOAD_BYTES, acknowledge_every=1, congestion_controls=controls)
    return {
        name: Figures(*_long_flows(options, name), *_short_transfers(options, name), *_incast(options, name))
        for name in options.control_names
    }


def _long_flows(options: HostOptions, control: str) -> tuple[float, float, float, float]:
    emulated = _emulated(_dumbbell(4), options)
    flows = [_flow(emulated, f"h{number}", f"h{4 + number}", control) for number in range(4)]
    for flow in flows:
        emulated.start_transfer(flow, PS_PER_S)
    _pass(emulated, PS_PER_S // 50)
    (link,) = [link.index for link in emulated.fabric.links if (link.source, link.destination) == ("t0", "t1")]
    before, queue, start_ps = [emulated.progress(flow).acknowledged for flow in flows], [], emulated.now_ps
    while emulated.now_ps < start_ps + PS_PER_S // 50:
        _pass(emulated, STEP_PS)
        queue.append(emulated.queued_bytes()[link].sum() / PACKET_BYTES)
    sent = [emulated.progress(flow).acknowledged - first for flow, first in zip(flows, before, strict=True)]
    goodput_gbps = sum(sent) * PAYLOAD_BYTES * 8 / 1e9 / ((emulated.now_ps - start_ps) / PS_PER_S)
    fairness = sum(sent) ** 2 / (len(sent) * sum(packets**2 for packets in sent))
    return goodput_gbps, fairness, statistics.mean(queue), max(queue)


def _short_transfers(options: HostOptions, control: str) -> tuple[float, float]:
    emulated = _emulated(_dumbbell(3), options)
    short, *long = (_flow(emulated, f"h{number}", f"h{3 + number}", control) for number in range(3))
    for flow in long:
        emulated.start_transfer(flow, 10 * PS_PER_S)
    _pass(emulated, PS_PER_S // 100)
    took_us = []
    for _ in range(SHORT_TRANSFERS):
        start_ps = emulated.now_ps
        emulated.start_transfer(short, SHORT_BYTES)
        (completion,) = emulated.run(start_ps + PS_PER_S)
        took_us.append((completion.time_ps - start_ps) / 1e6)
        _pass(emulated, PS_PER_S // 10_000)
    return statistics.mean(took_us), statistics.quantiles(took_us, n=100)[-1]


def _incast(options: HostOptions, control: str) -> tuple[float, int | None, int]:
    emulated = _emulated(StarSpecification(kind="star", hosts=SENDERS + 1, host_link_gbps=10).build(), options)
    flows = [_flow(emulated, f"h{number}", f"h{SENDERS}", control) for number in range(SENDERS)]
    took_s = []
    for _ in range(ROUNDS):
        start_ps, missing = emulated.now_ps, len(flows)
        for flow in flows:
            emulated.start_transfer(flow, PART_BYTES)
        while missing:
            missing -= len(emulated.run(start_ps + 10 * PS_PER_S))
        took_s.append((emulated.now_ps - start_ps) / PS_PER_S)
    ideal_s = SENDERS * PART_BYTES * 8 / 10e9
    timeouts = None if control == FIXED else sum(emulated.sender(flow).timeouts for flow in flows)
    (switch,) = emulated.switches
    return statistics.mean(took_s) / ideal_s, timeouts, emulated.drops(switch).queue_full


def _dumbbell(pairs: int) -> Fabric:
    return DumbbellSpecification(
        kind="dumbbell", hosts_per_side=pairs, host_link_gbps=40, bottleneck_gbps=10, delay_us=4
    ).build()


def _emulated(fabric: Fabric, options: HostOptions) -> EmulatedFabric:
    program, limit_bytes = compile_program(PROGRAM.read_text()), BUFFER_PACKETS * PACKET_BYTES
    emulated = EmulatedFabric(fabric, program, options, queue_limit_bytes=limit_bytes)
    install_routing(emulated, Routing(fabric, hash_multipliers(fabric.switches, 1)))
    for switch in emulated.switches.values():
        switch.set_default("egress.ecn", ActionCall("egress.mark_from", (MARK_FROM_PACKETS,)))
    return emulated


def _flow(emulated: EmulatedFabric, source: str, destination: str, control: str) -> int:
    nics = emulated.fabric.nics
    ends = nics[source][0].address, nics[destination][0].address
    return emulated.add_flow(FiveTuple(*ends, UDP_PROTOCOL, 49152, 4791), control)


def _pass(emulated: EmulatedFabric, time_ps: int) -> None:
    """Let time pass whatever completes."""
    until_ps = emulated.now_ps + time_ps
    while emulated.run(until_ps):
        pass


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", default=list(control_names()))
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    try:
        measured = measure(arguments.names)
    except CongestionControlError as error:
        parser.error(str(error))
    figures = {
        f"{name}_{key}": value if value is None or isinstance(value, int) else round(float(value), 3)
        for name, found in measured.items()
        for key, value in vars(found).items()
    }
    print_figures(figures | provenance(("numba", "numpy")), as_json=arguments.json)


if __name__ == "__main__":
    main()
