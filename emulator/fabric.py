"""An emulated fabric: the switches of a topology running compiled programs, their links, and sending hosts.

``run`` advances the engine's clock to a given time. Between calls, time stands still and Python may change the fabric.
The same calls give the same results, to the picosecond, on every machine.
"""

from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from emulator.ageing import IdleTimers
from emulator.compiler.program import Program
from emulator.engine import state as s
from emulator.engine.build import first_state
from emulator.engine.events import END_PS
from emulator.fabric_switches import fabric_switches
from emulator.host_options import HostOptions, wire_overhead
from emulator.hosts import Hosts
from emulator.links import Links
from emulator.memory import Arena
from emulator.observations import PS_PER_S, Capture, Completion, Drops, PacketIn, Progress, Sender, TraceRow
from emulator.partition import partition
from emulator.parts import Parts
from emulator.port_files import LIMIT_BYTES, PortFiles
from emulator.ports import CPU_PORT, require_emulated, require_free
from emulator.programs_by_switch import ProgramsBySwitch
from emulator.queue_trace import QueueTrace
from emulator.running_programs import RunningPrograms
from emulator.single_packets import SinglePackets
from emulator.snapshot import Loop, Snapshot
from emulator.switch import EmulatedSwitch
from topologies.addressing import FiveTuple
from topologies.fabric import Fabric

__all__ = ["PS_PER_S", "EmulatedFabric"]


class EmulatedFabric:
    """Switches, links and hosts of a topology in virtual time.

    Rates of the topology are payload rates: links are faster by the share of headers and acknowledgements of full
    packets. ``rate_scale`` divides all rates (the caller divides sizes by the same factor). This shortens a run and
    changes only the times of single packets. Every queue holds ``queue_limit_bytes``. If ``trace_rows`` is above 0, the
    fabric keeps a trace of that many queue and link events, see ``take_trace``. ``cpu_port`` connects every switch to
    its control plane. ``cores`` threads share the work (``emulator.partition``); results do not depend on them.

    ``program`` is that of all switches, or that of each switch by its name. A switch that is left out has none, and
    drops what it receives, until ``load_program`` gives it one. On several cores all switches have the same one.

    Raises ValueError if the fabric cannot be divided among the cores, if ``cpu_port`` or the drop port is out of range
    or used by a cable, if a switch has another target, if programs have different drop ports, and if no switch has a
    program, or one that is not there.
    """

    def __init__(
        self,
        fabric: Fabric,
        program: Program | Mapping[str, Program],
        options: HostOptions | None = None,
        *,
        rate_scale: float = 1.0,
        queue_limit_bytes: int = 16_000_000,
        trace_rows: int = 0,
        cpu_port: int = CPU_PORT,
        cores: int = 1,
    ) -> None:
        self.fabric = fabric
        self.options = options or HostOptions()
        controls = self.options.controls
        require_emulated(fabric)
        require_free(fabric, "CPU port", cpu_port)
        programs = ProgramsBySwitch(fabric, program, controls)
        require_free(fabric, "drop port", programs.drop_port)
        if cpu_port == programs.drop_port:
            raise ValueError(f"the CPU port and the drop port are both {cpu_port}")
        self._cpu_port = cpu_port
        self._arena = Arena()
        self._timers = IdleTimers(self._time_ps)
        rate_scale /= wire_overhead(self.options)
        used = tuple(programs.numbers)
        arguments = fabric, used, programs.drop_port, cpu_port, rate_scale, queue_limit_bytes, trace_rows
        division = partition(fabric, cores)
        self._parts = Parts(
            fabric, division, [first_state(*arguments) for _ in range(cores)], used[0].run if cores > 1 else None
        )
        self.switches: Mapping[str, EmulatedSwitch] = fabric_switches(
            fabric, programs, self._arena, cpu_port, self._timers
        )
        self._programs = RunningPrograms(fabric, programs, controls, self._parts, self._arena, self.switches)
        self._links = Links(fabric, self._parts, self.switches)
        self._hosts = Hosts(fabric, self.options, self._parts)
        self._packets = SinglePackets(fabric, self._parts)
        self._trace = QueueTrace(self._parts)
        self._port_files: PortFiles | None = None

    @property
    def _state(self) -> s.State:
        return self._parts.first

    # ---- time -------------------------------------------------------------------------------------------------------

    @property
    def now_ps(self) -> int:
        """Current virtual time."""
        return self._parts.now_ps

    @property
    def next_event_ps(self) -> int:
        """Time of the next event unless Python acts before; later than any possible run if there is none."""
        return min(self._parts.next_event_ps, self._timers.next_ps)

    def run(self, until_ps: int) -> tuple[Completion, ...]:
        """Advance to ``until_ps``, or to the first moment at which a transfer is complete.

        Raises ValueError for a time in the past, or beyond the clock's end, ``END_PS``.
        """
        if until_ps < self.now_ps:
            raise ValueError(f"it is {self.now_ps} ps; time cannot run to {until_ps} ps")
        if until_ps > END_PS:
            raise ValueError(f"a fabric's clock ends at {END_PS} ps (26.7 days); time cannot run to {until_ps} ps")
        self._programs.show()
        loop = self._programs.loop
        while True:
            self._make_room()
            scalars = self._state.scalars
            scalars[s.IDLE_UNTIL_PS] = s.NONE
            pause_ps = min(until_ps, max(int(scalars[s.NOW_PS]), self._timers.next_ps))
            self._parts.run(loop, self._arena.words, pause_ps)
            self._collect()
            if completions := self._parts.take_completions():
                return completions
            if scalars[s.IDLE_UNTIL_PS] == pause_ps:
                self._timers.run(pause_ps)
                if pause_ps == until_ps:
                    return ()

    # ---- hosts ------------------------------------------------------------------------------------------------------

    def add_flow(self, five_tuple: FiveTuple, congestion_control: str | None = None) -> int:
        """Open a connection between two NICs and return its number.

        ``congestion_control`` is one of the names in ``options``, the first one if None. Raises ValueError for an
        unknown address or name.
        """
        return self._hosts.add_flow(five_tuple, congestion_control)

    def set_flow_level(self, flow: int, level: int) -> None:
        """Set the queue in which the sending host's NIC puts the flow's packets; packets do not show it.

        Raises ValueError for an unknown flow or level.
        """
        self._hosts.set_level(flow, level)

    def start_transfer(self, flow: int, size_bytes: int) -> None:
        """Send ``size_bytes`` of payload, at least one; the flow's previous transfer must be complete.

        Raises ValueError if it is not, for a size that is not positive, and for an unknown flow.
        """
        self._make_room()
        self._hosts.start_transfer(flow, size_bytes, self._programs.begin_transfer)

    # ---- single packets ---------------------------------------------------------------------------------------------

    def inject(self, link: int, octets: bytes, length: int | None = None) -> None:
        """Let a packet arrive now at the end of a link; bytes up to ``length`` that are not given are zeros.

        Without a ``length`` the packet keeps all its bytes, as ``emulator.tails`` has it. Raises ValueError for more
        bytes than a packet stores or has, and for an unknown link.
        """
        self._require_link(link)
        self._inject(link, octets, length)

    def prepare_packets(self) -> None:
        """Compile what single packets need, so that the first one takes no time; call it before there are any."""
        self._packets.prepare()

    def packet_out(self, switch: str, octets: bytes) -> None:
        """Send a packet from a switch's control plane into its CPU port now.

        Raises ValueError for more bytes than a packet of its program may have, and for an unknown switch.
        """
        self._require_switch(switch)
        self._inject(self._cpu_link(switch), octets)

    def packets_in(self) -> tuple[PacketIn, ...]:
        """Return the packets that have reached the switches' control planes since the last call.

        Those of one moment are in the order of the switches.
        """
        return self._packets.take_packets_in()

    def captured(self) -> tuple[Capture, ...]:
        """Return the injected packets that have reached a NIC since the last call.

        Those of one moment are in the order of the links.
        """
        return self._packets.take_captured()

    # ---- programs ---------------------------------------------------------------------------------------------------

    @property
    def programs(self) -> Mapping[str, Program]:
        """Program of every switch that has one, by its name."""
        return self._programs.by_switch

    def prepare_program(self, program: Program) -> None:
        """Compile a program's event loop, or load it from the cache, so that ``load_program`` takes no time.

        Any thread may do this while the fabric runs.
        """
        self._programs.prepare(program)

    def load_program(self, switch: str, program: Program) -> None:
        """Give a switch another program; it is empty then, and drops packets until it is cleared.

        Packets that wait in the switch are lost. Nothing happens where the switch has this program. Raises ValueError
        for an unknown switch, and for a program with another drop port than the fabric's.
        """
        self._require_switch(switch)
        self._programs.load(switch, program)

    # ---- copies -----------------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Return a copy of the engine as it stands, which runs by ``loop`` and leaves the fabric alone.

        Raises ValueError for a fabric on several cores.
        """
        if len(self._parts.states) > 1:
            raise ValueError("a fabric on several cores cannot be copied; trace packets on one core")
        self._programs.show()
        return Snapshot(self._state, self._arena.words)

    @property
    def loop(self) -> Loop:
        """Event loop of the programs that the switches have: that of the one program, or those of all in turn."""
        return self._programs.loop

    @property
    def program_numbers(self) -> Mapping[Program, int]:
        """Programs that the switches have, with the numbers by which the engine knows them."""
        return self._programs.numbers

    def link_into(self, switch: str, port: int) -> int:
        """Return the link by which packets arrive at a port. Raises ValueError for an unknown switch or port."""
        self._require_switch(switch)
        if port == self._cpu_port:
            return self._cpu_link(switch)
        for link in self.fabric.links_from[switch]:
            if link.source_port == port:
                return self.fabric.reverse(link.index)
        raise ValueError(f"switch {switch!r} has no cable at port {port}")

    # ---- failures ---------------------------------------------------------------------------------------------------

    def set_link(self, link: int, *, up: bool) -> None:
        """Take one direction of a cable down, or bring it up again.

        Packets that wait for the link, or reach its end while it is down, are lost. Raises ValueError for an unknown
        link.
        """
        self._require_link(link)
        self._links.set_cable(link, up)

    def set_switch(self, switch: str, *, up: bool) -> None:
        """Take a switch down with all its links, or bring it up empty, without a pipeline.

        A switch that goes down ends its controllers' connections and accepts none until it is up. A link comes up with
        it, unless something else holds it down. Raises ValueError for an unknown switch.
        """
        self._require_switch(switch)
        self._links.set_switch(switch, up)

    def set_port(self, switch: str, port: int, *, enabled: bool) -> None:
        """Disable a switch's port, which takes both directions of its cable down, or enable it again.

        The cable then comes up, unless something else holds it down. Raises ValueError for an unknown switch or port.
        """
        self._require_switch(switch)
        if port not in self.switches[switch].ports:
            raise ValueError(f"switch {switch!r} has no port {port}")
        self._links.set_port(switch, port, enabled)

    def is_up(self, link: int) -> bool:
        """Return whether a link carries packets. Raises ValueError for an unknown link."""
        self._require_link(link)
        return self._links.is_up(link)

    # ---- what has happened ------------------------------------------------------------------------------------------

    @property
    def packet_hops(self) -> int:
        """Number of packets that switches have taken from a queue so far."""
        return sum(self.packet_hops_by_core)

    @property
    def packet_hops_by_core(self) -> tuple[int, ...]:
        """The packet-hops of each core."""
        return self._parts.packet_hops

    @property
    def critical_packet_hops(self) -> int:
        """The packet-hops of the core with the most between two meetings of all, summed: nothing makes them parallel.

        ``packet_hops`` divided by it bounds the gain from several cores.
        """
        return self._parts.critical_packet_hops

    @property
    def thread_ids(self) -> tuple[int, ...]:
        """The kernel's numbers of the threads that run beside the caller's own."""
        return self._parts.thread_ids

    @property
    def misdelivered(self) -> int:
        """Number of packets of flows that have reached a NIC with another address."""
        return self._parts.misdelivered

    def drops(self, switch: str) -> Drops:
        """Return the drop counts of a switch. Raises ValueError for an unknown switch."""
        self._require_switch(switch)
        return self._parts.drops(self.fabric.switch_index[switch])

    def retransmissions(self, flow: int) -> int:
        """Return the number of retransmitted packets of a flow. Raises ValueError for an unknown flow."""
        return self._hosts.retransmissions(flow)

    def progress(self, flow: int) -> Progress:
        """Return the progress of a flow's sender. Raises ValueError for an unknown flow."""
        return self._hosts.progress(flow)

    def sender(self, flow: int) -> Sender:
        """Return what a flow's congestion control holds. Raises ValueError for an unknown flow or one without."""
        return self._hosts.sender(flow)

    def sent_bytes(self) -> NDArray[np.int64]:
        """Return the bytes that every link has sent by level, shape (links, 8); acknowledgements count as level 7."""
        return self._parts.by_level(s.LINK_SENT_BYTES)

    def queued_bytes(self) -> NDArray[np.int64]:
        """Return the bytes that wait for every link by level, shape (links, 8); acknowledgements count as level 7."""
        return self._parts.by_level(s.LINK_BYTES)

    @property
    def ps_per_byte(self) -> NDArray[np.float64]:
        """Return the picoseconds that each link takes for a byte on the wire, shape (links,)."""
        return self._state.ps_per_byte[: len(self.fabric.links)].copy()

    def take_trace(self) -> list[TraceRow]:
        """Return the queue and link events since the last call; empty without a trace.

        Those of one moment are in the order of the links, and at each link in order.
        """
        return self._trace.take()

    def host_drops(self) -> Drops:
        """Return the packets that hosts have lost before or on their own links."""
        return self._parts.drops(s.NONE)

    @property
    def is_at_rest(self) -> bool:
        """Whether no packet is anywhere in the fabric."""
        return self._parts.is_at_rest

    def record_packets(
        self,
        folder: Path,
        ports: Collection[tuple[str, int]] | None = None,
        *,
        limit_bytes: int = LIMIT_BYTES,
        starts_ns: int = 0,
    ) -> None:
        """Write what passes ports into files from now on, in the place of those before; see ``PortFiles``.

        All is in the files when ``run`` returns.
        """
        self._collect()
        self._port_files = PortFiles(self.fabric, folder, ports, limit_bytes=limit_bytes, starts_ns=starts_ns)
        self._parts.keep_records()

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _inject(self, link: int, octets: bytes, length: int | None = None) -> None:
        self._make_room()
        self._packets.inject(link, octets, length)

    def _time_ps(self) -> int:
        """Return the time up to which packets have been processed, for entries that age."""
        return self.now_ps

    def _make_room(self) -> None:
        """Have room in the engine's arrays for what a single event may bring."""
        if self._trace.is_nearly_full:
            self._collect()
        self._parts.grow_packets()

    def _collect(self) -> None:
        """Move what the engine has to tell out of its arrays."""
        if self._port_files is not None:
            self._port_files.collect(self._parts.states, self._packets.tails)
        self._packets.collect()
        self._trace.collect()

    def _cpu_link(self, switch: str) -> int:
        return len(self.fabric.links) + 2 * self.fabric.switch_index[switch]

    def _require_link(self, link: int) -> None:
        num_links = len(self.fabric.links)
        if not 0 <= link < num_links:
            raise ValueError(f"there is no link {link}; links are numbered from 0, and there are {num_links}")

    def _require_switch(self, switch: str) -> None:
        if switch not in self.switches:
            raise ValueError(f"there is no switch {switch!r}")
