"""The star on the packet-level emulator, in virtual time: the compiled P4 program forwards every packet.

The streams of others are flows without end that have filled their windows before a collective begins. A message of a
ring is sent once the one before it on the same link has arrived, and once its sender has received what it sends on. A
cable delays by half of ``hop_s``, so that a message without content takes that. Hosts send with the emulator's fixed
windows, and streams keep so much in the queues: a message waits behind it.

A collective under one condition takes the same time whenever it begins, so each is emulated once in a process. Where
the condition changes under way, the share of its time that has passed counts as done; what is left takes the same share
of the time that all of it takes under the next condition.
"""

from functools import cache
from itertools import pairwise

from emulator.base_entries import install_routing
from emulator.compiler.program import Program, compile_program
from emulator.engine.events import END_PS
from emulator.fabric import PS_PER_S, EmulatedFabric
from experiments.compression.conditions import FAST_BPS, Conditions
from experiments.compression.star import HOP_S, HOSTS, PAIRS, SLOW_HOSTS, STREAM_ENDS, Transfer
from p4src import PROGRAM
from topologies.addressing import FIRST_SOURCE_PORT, FLOW_DESTINATION_PORT, UDP_PROTOCOL, FiveTuple
from topologies.ecmp import hash_multipliers
from topologies.fabric import Cable, Fabric
from topologies.routing import Routing

_SWITCH = "s"
_ENDLESS_BYTES = 10**15


class EmulatedStar:
    """The network under conditions; see ``star.Star``."""

    def __init__(self, conditions: Conditions, hop_s: float = HOP_S) -> None:
        self._conditions = conditions
        self._hop_s = hop_s

    def finish_s(self, transfer: Transfer, start_s: float) -> float:
        """Return when all hosts have all of a collective that starts at a time, both in seconds."""
        left = 1.0
        while True:
            condition, change_s = self._conditions.at(start_s), self._conditions.change_after(start_s)
            whole_s = _took_s(transfer, condition.rate_bps, condition.streams, self._hop_s)
            if start_s + left * whole_s <= change_s:
                return start_s + left * whole_s
            left -= (change_s - start_s) / whole_s
            start_s = change_s


@cache
def _took_s(transfer: Transfer, rate_bps: float, streams: int, hop_s: float) -> float:
    """Return how long a collective takes under one condition, in seconds."""
    star = _star(rate_bps, hop_s)
    for number in range(streams):
        for source, sink in STREAM_ENDS:
            star.start_transfer(_flow(star, source, sink, number), _ENDLESS_BYTES)
    star.run(round(2 * streams * _window_bits(star) / rate_bps * PS_PER_S))
    start_ps = star.now_ps
    _carry(star, transfer)
    return (star.now_ps - start_ps) / PS_PER_S


def _carry(star: EmulatedFabric, transfer: Transfer) -> None:
    """Carry all messages of a collective. Those of an exchange wait for nothing."""
    flows = [_flow(star, source, sink) for source, sink in PAIRS[transfer.pattern]]
    number_of = {flow: number for number, flow in enumerate(flows)}
    ends_bytes = [round(transfer.flow_bytes * messages / transfer.hops) for messages in range(transfer.hops + 1)]
    sizes_bytes = [max(1, end - begin) for begin, end in pairwise(ends_bytes)]
    sent, arrived = [0] * len(flows), [0] * len(flows)

    def send(number: int) -> None:
        star.start_transfer(flows[number], sizes_bytes[sent[number]])
        sent[number] += 1

    for number in range(len(flows)):
        send(number)
    while min(arrived) < transfer.hops:
        for completion in star.run(END_PS):
            ended = number_of.get(completion.flow)
            if ended is None:
                continue
            arrived[ended] += 1
            # In a ring, flow n ends where flow n + 1 begins.
            for number in (ended, (ended + 1) % len(flows)):
                if sent[number] < transfer.hops and sent[number] == arrived[number] <= arrived[number - 1]:
                    send(number)


def _star(rate_bps: float, hop_s: float) -> EmulatedFabric:
    """Return hosts 0 to 8 at one switch, the slow ones with links of this rate."""
    hosts = tuple(f"h{number}" for number in range(HOSTS + 1))
    rates_bps = [rate_bps if number in SLOW_HOSTS else FAST_BPS for number in range(len(hosts))]
    cables = (Cable((host, _SWITCH), host_bps, hop_s / 2) for host, host_bps in zip(hosts, rates_bps, strict=True))
    star = EmulatedFabric(Fabric(hosts, (_SWITCH,), tuple(cables), gpus_per_host=1), _program())
    install_routing(star, Routing(star.fabric, hash_multipliers(star.fabric.switches, seed=1)))
    return star


def _flow(star: EmulatedFabric, source: int, sink: int, number: int = 0) -> int:
    """Open a connection from one host to another, each with a number of its own."""
    own, other = (star.fabric.nics[star.fabric.hosts[host]][0].address for host in (source, sink))
    return star.add_flow(FiveTuple(own, other, UDP_PROTOCOL, FIRST_SOURCE_PORT + number, FLOW_DESTINATION_PORT))


def _window_bits(star: EmulatedFabric) -> int:
    return 8 * star.options.window_packets * star.options.mtu_bytes


@cache
def _program() -> Program:
    return compile_program(PROGRAM.read_text())
