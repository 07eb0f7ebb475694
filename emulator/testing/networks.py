"""A network under test: switches that run a program in virtual time, and what has come out of them."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from emulator.engine import state as s
from emulator.engine.events import END_PS
from emulator.fabric import PS_PER_S, EmulatedFabric
from emulator.observations import Drops, PacketIn
from emulator.snapshot import Snapshot
from emulator.testing.packets import Ignored, PacketLike, differences, like, summary
from emulator.testing.switches import Switch
from emulator.tracing.packet_trace import trace_on_copy
from emulator.tracing.text import as_text
from topologies.fabric import Fabric, Link

if TYPE_CHECKING:
    from emulator.testing.programs import Program

_STEP_S = 0.001
_SETTLES_WITHIN_S = 10.0
_MOST_HOPS = 1_000_000
_MOST_SHOWN = 5
_MOST_LINES = 200


@dataclass(frozen=True, slots=True)
class _Sent:
    """A packet, and the network as it was before."""

    snapshot: Snapshot
    link: int
    octets: bytes


class Network:
    """Switches by name, their cables, and hosts that send and receive single packets.

    Time passes when a packet is sent, until no packet is left in the network, or by ``run``.
    """

    def __init__(self, fabric: Fabric, program: "Program", cpu_port: int) -> None:
        self.emulated = EmulatedFabric(fabric, program.compiled, cpu_port=cpu_port)
        self._links: dict[tuple[str, int], Link] = {}
        for switch in fabric.switches:
            for link in fabric.links_from[switch]:
                self._links[switch, link.source_port] = link
        self._received: list[tuple[int, bytes]] = []
        self._packets_in: list[PacketIn] = []
        self._switches = {name: Switch(self, name, program) for name in fabric.switches}
        self._drops = {name: self.emulated.drops(name) for name in fabric.switches}
        self._last: _Sent | None = None

    def __getitem__(self, switch: str) -> Switch:
        """Return a switch. Raises KeyError."""
        return self._switches[switch]

    def __iter__(self) -> Iterator[Switch]:
        return iter(self._switches.values())

    # ---- packets of hosts -------------------------------------------------------------------------------------------

    def send(self, host: str, packet: PacketLike) -> None:
        """Send a packet from a host. Raises ValueError for an unknown host."""
        __tracebackhide__ = True
        link = self._host_link(host)
        self.inject(link, packet)

    def expect(self, host: str, packet: PacketLike, ignoring: Sequence[Ignored] = ()) -> None:
        """Require that a packet has reached a host, as ``Switch.expect`` does at a port."""
        __tracebackhide__ = True
        self.require(self.emulated.fabric.reverse(self._host_link(host)), f"host {host}", packet, ignoring)

    def expect_nothing(self) -> None:
        """Require that no further packet has reached any host. Raises AssertionError, which lists those that have."""
        __tracebackhide__ = True
        found, self._received = self._received, []
        if found:
            lines = ["packets that nobody has expected:", *self._listed(found), *self._trace()]
            raise AssertionError("\n".join(lines))

    # ---- time -------------------------------------------------------------------------------------------------------

    def run(self, duration_s: float) -> None:
        """Let time pass. Raises ValueError for a negative time, or one beyond the clock's end."""
        self._advance(self.emulated.now_ps + round(duration_s * PS_PER_S))

    @property
    def time_s(self) -> float:
        """The time that has passed."""
        return self.emulated.now_ps / PS_PER_S

    # ---- for switches -----------------------------------------------------------------------------------------------

    def inject(self, link: int, packet: PacketLike) -> None:
        """Let a packet arrive at the end of a link, and let all packets pass."""
        __tracebackhide__ = True
        octets = bytes(packet)
        self._last = _Sent(self.emulated.snapshot(), link, octets)
        self.emulated.inject(link, octets)
        self.settle()

    def settle(self) -> None:
        """Let time pass until no packet is left. Raises AssertionError where packets circle."""
        __tracebackhide__ = True
        hops, until_ps = self.emulated.packet_hops, self.emulated.now_ps + round(_SETTLES_WITHIN_S * PS_PER_S)
        while not self.emulated.is_at_rest:
            next_ps = max(self.emulated.next_event_ps, self.emulated.now_ps)
            self._advance(min(next_ps + round(_STEP_S * PS_PER_S), END_PS))
            if self.emulated.now_ps >= until_ps or self.emulated.packet_hops - hops > _MOST_HOPS:
                num_hops = self.emulated.packet_hops - hops
                raise AssertionError(f"packets still pass after {num_hops:,} hops: do they circle?")

    def link_behind(self, switch: str, port: int) -> int:
        """Return the link from a port of a switch. Raises ValueError where it has no cable."""
        if (switch, port) not in self._links:
            ports = ", ".join(str(number) for name, number in self._links if name == switch)
            raise ValueError(f"switch {switch} has no port {port}; it has {ports}")
        return self._links[switch, port].index

    def require(self, link: int, where: str, packet: PacketLike, ignoring: Sequence[Ignored]) -> None:
        """Take a packet that has passed a link. Raises AssertionError where there is none like it."""
        __tracebackhide__ = True
        at_place = [octets for passed, octets in self._received if passed == link]
        found = [(differences(packet, octets, ignoring), octets) for octets in at_place]
        for differing, octets in found:
            if not differing:
                self._received.remove((link, octets))
                return
        lines = [f"{where}: expected {summary(packet)}"]
        if found:
            differing, octets = min(found, key=lambda each: len(each[0]))
            lines += [f"  got {summary(like(packet, octets))}", *(f"    {each}" for each in differing)]
        else:
            lines.append("  nothing came there")
        others = [(passed, octets) for passed, octets in self._received if passed != link]
        if others:
            lines += ["elsewhere came:", *self._listed(others, packet)]
        lines += [*self._new_drops(), *self._trace()]
        raise AssertionError("\n".join(lines))

    def packet_out(self, switch: str, octets: bytes) -> None:
        """Send a packet from a switch's control plane, and let all packets pass; it is not traced."""
        __tracebackhide__ = True
        self.forget_last()
        self.emulated.packet_out(switch, octets)
        self.settle()

    def forget_last(self) -> None:
        """Trace the packet that was sent last no more: another one has come, or entries change."""
        self._last = None

    def take(self, link: int) -> list[bytes]:
        """Return the packets that have passed a link, which are then no longer expected."""
        taken = [octets for passed, octets in self._received if passed == link]
        self._received = [(passed, octets) for passed, octets in self._received if passed != link]
        return taken

    def take_packets_in(self, switch: str, *, digests: bool) -> list[PacketIn]:
        """Return what a switch has sent to its controller since the last call, its digests or its packets."""
        wanted = [each for each in self._packets_in if each.switch == switch and bool(each.digest) == digests]
        self._packets_in = [each for each in self._packets_in if each not in wanted]
        return wanted

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _advance(self, until_ps: int) -> None:
        while self.emulated.run(until_ps):
            pass
        for capture in self.emulated.captured():
            self._received.append((capture.link, capture.octets.ljust(capture.length, b"\0")))
        self._packets_in += self.emulated.packets_in()

    def _host_link(self, host: str) -> int:
        nics = self.emulated.fabric.nics.get(host)
        if nics is None:
            raise ValueError(f"there is no host {host!r}; there is {', '.join(self.emulated.fabric.hosts)}")
        return nics[0].link

    def _listed(self, packets: Sequence[tuple[int, bytes]], as_kind: PacketLike | None = None) -> list[str]:
        lines = []
        for link, octets in packets[:_MOST_SHOWN]:
            end = self.emulated.fabric.links[link]
            shown = octets if as_kind is None else like(as_kind, octets)
            lines.append(f"  {end.source} port {end.source_port}: {summary(shown)}")
        if len(packets) > _MOST_SHOWN:
            lines.append(f"  and {len(packets) - _MOST_SHOWN} more")
        return lines

    def _trace(self) -> list[str]:
        """Return what the packet that was sent last has met, once."""
        last, self._last = self._last, None
        if last is None:
            return []
        end = self.emulated.fabric.links[last.link]
        octets, length = last.octets[: s.OCTETS], len(last.octets)
        trace = trace_on_copy(self.emulated, last.snapshot, last.link, octets, length=length)
        lines = as_text(trace).splitlines()
        more = [f"  and {len(lines) - _MOST_LINES} lines more"] if len(lines) > _MOST_LINES else []
        first = f"trace of the packet that was sent last, to {end.destination} port {end.destination_port}:"
        return [first, *lines[:_MOST_LINES], *more]

    def _new_drops(self) -> list[str]:
        """Return a line for each switch that has dropped packets since the last time."""
        lines = []
        for name, before in self._drops.items():
            now = self._drops[name] = self.emulated.drops(name)
            counts = {reason: count - getattr(before, reason) for reason, count in asdict(now).items()}
            shown = ", ".join(f"{count} {_SHOWN[reason]}" for reason, count in counts.items() if count)
            if shown:
                lines.append(f"switch {name} has dropped: {shown}")
        return lines


_SHOWN = {reason: reason.replace("_", " ") for reason in Drops.__slots__}
