"""An emulated fabric: the switches of a topology running compiled programs, their links, and sending hosts.

``run`` advances the engine's clock to a given time. Between calls, time stands still and Python may change the fabric.
The same calls give the same results, to the picosecond, on every machine.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from emulator.ageing import IdleTimers
from emulator.compiler.digests import NUMBER_BYTES
from emulator.compiler.program import Program
from emulator.congestion.control import CongestionControl
from emulator.engine import state as s
from emulator.engine.build import (
    FLOW_ARRAYS,
    first_state,
    grown_flows,
    grown_packets,
    with_borders,
    with_program,
)
from emulator.engine.controlled_transport import ECT_0
from emulator.engine.events import END_PS
from emulator.engine.packets import take_captured
from emulator.engine.programs import address_of, run_mixed
from emulator.engine.queues import flush, lose_arrivals
from emulator.engine.transport import begin_transfer, inject
from emulator.engine.windows import CRITICAL_HOPS, next_event_ps
from emulator.headers import template
from emulator.host_options import HostOptions, wire_overhead
from emulator.memory import Arena
from emulator.observations import Capture, Completion, Drops, PacketIn, Progress, Sender, TraceKind, TraceRow
from emulator.part_threads import PartThreads
from emulator.partition import partition
from emulator.ports import CPU_PORT, require_emulated, require_free, spare_ports
from emulator.programs_by_switch import ProgramsBySwitch
from emulator.snapshot import Loop, Snapshot
from emulator.switch import EmulatedSwitch
from emulator.tails import ROOM_BYTES, Tails
from topologies.addressing import FiveTuple, switch_mac
from topologies.fabric import Fabric

PS_PER_S = 1_000_000_000_000


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
        self._controls = self.options.controls
        require_emulated(fabric)
        require_free(fabric, "CPU port", cpu_port)
        if isinstance(program, Mapping):
            program = {name: self._controlled(one) for name, one in program.items()}
        else:
            program = self._controlled(program)
        self._programs = ProgramsBySwitch(fabric, program)
        drop_port = self._programs.drop_port
        require_free(fabric, "drop port", drop_port)
        if cpu_port == drop_port:
            raise ValueError(f"the CPU port and the drop port are both {cpu_port}")
        self._cpu_port = cpu_port
        self._arena = Arena()
        self._timers = IdleTimers(self._time_ps)
        shapes = {name: self._programs.resources_of(name) for name in fabric.switches}
        blocks = {name: self._arena.allocate(shape.block_words) for name, shape in shapes.items()}
        rate_scale /= wire_overhead(self.options)
        used = tuple(self._programs.numbers)
        arguments = fabric, used, drop_port, cpu_port, rate_scale, queue_limit_bytes, trace_rows
        self._partition = partition(fabric, cores)
        self._states = with_borders([first_state(*arguments) for _ in range(cores)], self._partition)
        self._state.blocks[:] = [blocks[name] for name in fabric.switches]
        self._require_one_program(*used)
        self._threads = PartThreads(used[0].run) if cores > 1 else None
        self.switches: Mapping[str, EmulatedSwitch] = {
            name: EmulatedSwitch(
                name,
                fabric.device_ids[name],
                self._arena,
                blocks[name],
                shapes[name],
                (*(link.source_port for link in fabric.links_from[name]), *spare_ports(fabric, name)),
                cpu_port,
                fabric.port_names[name],
                self._timers,
            )
            for name in fabric.switches
        }
        for name, switch in self.switches.items():
            for port in spare_ports(fabric, name):
                switch.set_port(port, False)
        self._is_wanted = [True] * len(fabric.links)
        self._num_flows = 0
        self._captured: list[Capture] = []
        self._tails = Tails()
        self._packets_in: list[PacketIn] = []
        self._traced: list[TraceRow] = []

    @property
    def _state(self) -> s.State:
        """State of the first part, which has what all parts share."""
        return self._states[0]

    @_state.setter
    def _state(self, state: s.State) -> None:
        self._states[0] = state

    # ---- time -------------------------------------------------------------------------------------------------------

    @property
    def now_ps(self) -> int:
        """Current virtual time."""
        return int(self._state.scalars[s.NOW_PS])

    @property
    def next_event_ps(self) -> int:
        """Time of the next event unless Python acts before; later than any possible run if there is none."""
        return min(next_event_ps(self._states), self._timers.next_ps)

    def run(self, until_ps: int) -> tuple[Completion, ...]:
        """Advance to ``until_ps``, or to the first moment at which a transfer is complete.

        Raises ValueError for a time in the past, or beyond the clock's end, ``END_PS``.
        """
        if until_ps < self.now_ps:
            raise ValueError(f"it is {self.now_ps} ps; time cannot run to {until_ps} ps")
        if until_ps > END_PS:
            raise ValueError(f"a fabric's clock ends at {END_PS} ps (26.7 days); time cannot run to {until_ps} ps")
        self._show_programs()
        run = self.loop
        while True:
            self._make_room()
            self._state.scalars[s.IDLE_UNTIL_PS] = s.NONE
            pause_ps = min(until_ps, max(self.now_ps, self._timers.next_ps))
            if self._threads is None:
                run(self._state, self._arena.words, pause_ps)
            else:
                self._threads.run(self._states, self._arena.words, pause_ps)
            self._collect()
            if completions := self._take_completions():
                return completions
            if self._state.scalars[s.IDLE_UNTIL_PS] == pause_ps:
                self._timers.run(pause_ps)
                if pause_ps == until_ps:
                    return ()

    # ---- hosts ------------------------------------------------------------------------------------------------------

    def add_flow(self, five_tuple: FiveTuple, congestion_control: str | None = None) -> int:
        """Open a connection between two NICs and return its number.

        ``congestion_control`` is one of the names in ``options``, the first one if None. Raises ValueError for an
        unknown address or name.
        """
        for address in (five_tuple.source_address, five_tuple.destination_address):
            if address not in self.fabric.nic_by_address:
                raise ValueError(f"no NIC has the address of {five_tuple}")
        source = self.fabric.nic_by_address[five_tuple.source_address]
        destination = self.fabric.nic_by_address[five_tuple.destination_address]
        flow = self._num_flows
        if flow == len(self._state.flows):
            self._grow_flows()
        row = self._state.flows[flow]
        row[s.FLOW_SOURCE_LINK], row[s.FLOW_DESTINATION_LINK] = source.link, destination.link
        row[s.FLOW_MTU_BYTES], row[s.FLOW_WINDOW] = self.options.mtu_bytes, self.options.window_packets
        row[s.FLOW_ACKNOWLEDGE_EVERY] = self.options.acknowledge_every
        row[s.FLOW_RETRANSMITTED] = -1
        self._set_control(flow, congestion_control)
        for direction, (one_way, nic) in enumerate(((five_tuple, source), (five_tuple.reverse, destination))):
            header = template(one_way, nic.mac or switch_mac(0, 0))
            row[s.FLOW_HEADER_BYTES] = len(header)
            self._state.templates[flow, direction, : len(header)] = np.frombuffer(header, dtype=np.uint8)
        self._num_flows += 1
        return flow

    def set_flow_level(self, flow: int, level: int) -> None:
        """Set the queue in which the sending host's NIC puts the flow's packets; packets do not show it.

        Raises ValueError for an unknown flow or level.
        """
        self._require_flow(flow)
        if not 0 <= level < s.LEVELS:
            raise ValueError(f"flow {flow}: the level must be within 0 to {s.LEVELS - 1}, not {level}")
        self._state.flows[flow, s.FLOW_LEVEL] = level

    def start_transfer(self, flow: int, size_bytes: int) -> None:
        """Send ``size_bytes`` of payload, at least one; the flow's previous transfer must be complete.

        Raises ValueError if it is not, for a size that is not positive, and for an unknown flow.
        """
        self._require_flow(flow)
        row = self._state.flows[flow]
        if row[s.FLOW_EXPECTED] != row[s.FLOW_LAST]:
            raise ValueError(f"flow {flow} has not finished its last transfer")
        if size_bytes < 1:
            raise ValueError(f"flow {flow}: a transfer has at least one byte, not {size_bytes}")
        self._make_room()
        num_packets = math.ceil(size_bytes / self.options.mtu_bytes)
        begin = next(iter(self._programs.numbers)).functions["begin_transfer"] if self._controls else begin_transfer
        begin(
            self._from(int(row[s.FLOW_SOURCE_LINK])),
            flow,
            num_packets,
            size_bytes - (num_packets - 1) * self.options.mtu_bytes,
        )

    # ---- single packets ---------------------------------------------------------------------------------------------

    def inject(self, link: int, octets: bytes, length: int | None = None) -> None:
        """Let a packet arrive now at the end of a link; bytes up to ``length`` that are not given are zeros.

        Without a ``length`` the packet keeps all its bytes, as ``emulator.tails`` has it. Raises ValueError for more
        bytes than a packet stores or has, and for an unknown link.
        """
        self._require_link(link)
        self._inject(link, octets, length)

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
        index = self.fabric.switch_index
        found = sorted(self._packets_in, key=lambda packet: (packet.time_ps, index[packet.switch]))
        self._packets_in = []
        return tuple(found)

    def captured(self) -> tuple[Capture, ...]:
        """Return the injected packets that have reached a NIC since the last call.

        Those of one moment are in the order of the links.
        """
        found = sorted(self._captured, key=lambda capture: (capture.time_ps, capture.link))
        self._captured = []
        return tuple(found)

    # ---- programs ---------------------------------------------------------------------------------------------------

    @property
    def programs(self) -> Mapping[str, Program]:
        """Program of every switch that has one, by its name."""
        return self._programs.by_switch

    def prepare_program(self, program: Program) -> None:
        """Compile a program's event loop, or load it from the cache, so that ``load_program`` takes no time.

        Any thread may do this while the fabric runs.
        """
        address_of(self._controlled(program).run, self._state, self._arena.words)

    def load_program(self, switch: str, program: Program) -> None:
        """Give a switch another program; it is empty then, and drops packets until it is cleared.

        Packets that wait in the switch are lost. Nothing happens where the switch has this program. Raises ValueError
        for an unknown switch, and for a program with another drop port than the fabric's.
        """
        self._require_switch(switch)
        if self._programs.by_switch.get(switch) == program:
            return
        program = self._controlled(program)
        self._programs.require_fitting(program)
        self._require_one_program(*self._programs.numbers, program)
        self._fit(program)
        for link in self._links_out_of(switch):
            flush(self._state, link, s.NO_PIPELINE)
        if self._state.scalars[s.FIRST_WAY_BACK] != s.NONE:
            way_back = int(self._state.scalars[s.FIRST_WAY_BACK]) + self.fabric.switch_index[switch]
            lose_arrivals(self._state, way_back, s.NO_PIPELINE)
        block = self._arena.allocate(program.resources.block_words)
        self.switches[switch].load(block, program.resources)
        self._state.blocks[self.fabric.switch_index[switch]] = block
        self._programs.put(switch, program)
        self._state = self._state._replace(loops=self._state.loops[:0])

    # ---- copies -----------------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Return a copy of the engine as it stands, which runs by ``loop`` and leaves the fabric alone.

        Raises ValueError for a fabric on several cores.
        """
        if len(self._states) > 1:
            raise ValueError("a fabric on several cores cannot be copied; trace packets on one core")
        self._show_programs()
        return Snapshot(self._state, self._arena.words)

    @property
    def loop(self) -> Loop:
        """Event loop of the programs that the switches have: that of the one program, or those of all in turn."""
        if len(self._programs.numbers) == 1:
            return next(iter(self._programs.numbers)).run
        self._know_loops()
        return run_mixed

    @property
    def program_numbers(self) -> Mapping[Program, int]:
        """Programs that the switches have, with the numbers by which the engine knows them."""
        return MappingProxyType(self._programs.numbers)

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
        self._is_wanted[link] = up
        self._update_link(link)

    def set_switch(self, switch: str, *, up: bool) -> None:
        """Take a switch down with all its links, or bring it up empty, without a pipeline.

        A switch that goes down ends its controllers' connections and accepts none until it is up. A link comes up with
        it, unless something else holds it down. Raises ValueError for an unknown switch.
        """
        self._require_switch(switch)
        found = self.switches[switch]
        if found.power.is_on == up:
            return
        if up:
            found.power.turn_on()
        else:
            found.shut_down()
        for link in self.fabric.links:
            if switch in (link.source, link.destination):
                self._update_link(link.index)

    def set_port(self, switch: str, port: int, *, enabled: bool) -> None:
        """Disable a switch's port, which takes both directions of its cable down, or enable it again.

        The cable then comes up, unless something else holds it down. Raises ValueError for an unknown switch or port.
        """
        self._require_switch(switch)
        if port not in self.switches[switch].ports:
            raise ValueError(f"switch {switch!r} has no port {port}")
        if self.switches[switch].ports.enable(port, enabled):
            for link in self.fabric.links_from[switch]:
                if link.source_port == port:
                    self._update_link(link.index)
                    self._update_link(self.fabric.reverse(link.index))

    def is_up(self, link: int) -> bool:
        """Return whether a link carries packets. Raises ValueError for an unknown link."""
        self._require_link(link)
        return bool(self._state.links[link, s.LINK_UP])

    # ---- what has happened ------------------------------------------------------------------------------------------

    @property
    def packet_hops(self) -> int:
        """Number of packets that switches have taken from a queue so far."""
        return sum(self.packet_hops_by_core)

    @property
    def packet_hops_by_core(self) -> tuple[int, ...]:
        """The packet-hops of each core."""
        return tuple(int(state.scalars[s.HOPS]) for state in self._states)

    @property
    def critical_packet_hops(self) -> int:
        """The packet-hops of the core with the most between two meetings of all, summed: nothing makes them parallel.

        ``packet_hops`` divided by it bounds the gain from several cores.
        """
        return int(self._state.border[CRITICAL_HOPS]) if self._threads else self.packet_hops

    @property
    def thread_ids(self) -> tuple[int, ...]:
        """The kernel's numbers of the threads that run beside the caller's own."""
        return self._threads.thread_ids if self._threads else ()

    @property
    def misdelivered(self) -> int:
        """Number of packets of flows that have reached a NIC with another address."""
        return sum(int(state.scalars[s.MISDELIVERED]) for state in self._states)

    def drops(self, switch: str) -> Drops:
        """Return the drop counts of a switch. Raises ValueError for an unknown switch."""
        self._require_switch(switch)
        return self._drops(self.fabric.switch_index[switch])

    def retransmissions(self, flow: int) -> int:
        """Return the number of retransmitted packets of a flow. Raises ValueError for an unknown flow."""
        self._require_flow(flow)
        return int(self._state.flows[flow, s.FLOW_RETRANSMISSIONS])

    def progress(self, flow: int) -> Progress:
        """Return the progress of a flow's sender. Raises ValueError for an unknown flow."""
        self._require_flow(flow)
        row = self._state.flows[flow]
        return Progress(int(row[s.FLOW_NEXT]), int(row[s.FLOW_UNACKNOWLEDGED]))

    def sender(self, flow: int) -> Sender:
        """Return what a flow's congestion control holds. Raises ValueError for an unknown flow or one without."""
        self._require_flow(flow)
        control = self._control(flow)
        if control is None:
            raise ValueError(f"flow {flow} has a fixed window")
        row, words = self._state.senders[flow], self._state.windows[flow].tolist()
        return Sender(
            window_packets=words[s.WINDOW],
            round_trip_s=int(row[s.SENDER_RTT_PS]) / PS_PER_S,
            delivered_packets=int(row[s.SENDER_DELIVERED]),
            marked_packets=int(row[s.SENDER_MARKED]),
            timeouts=int(row[s.SENDER_TIMEOUTS]),
            words=dict(zip((*control.parameters, *control.state), words[s.WINDOW + 1 :], strict=False)),
        )

    def sent_bytes(self) -> NDArray[np.int64]:
        """Return the bytes that every link has sent by level, shape (links, 8); acknowledgements count as level 7."""
        return self._by_level(s.LINK_SENT_BYTES)

    def queued_bytes(self) -> NDArray[np.int64]:
        """Return the bytes that wait for every link by level, shape (links, 8); acknowledgements count as level 7."""
        return self._by_level(s.LINK_BYTES)

    @property
    def ps_per_byte(self) -> NDArray[np.float64]:
        """Return the picoseconds that each link takes for a byte on the wire, shape (links,)."""
        return self._state.ps_per_byte[: len(self.fabric.links)].copy()

    def take_trace(self) -> list[TraceRow]:
        """Return the queue and link events since the last call; empty without a trace.

        Those of one moment are in the order of the links, and at each link in order.
        """
        self._collect()
        found = sorted(self._traced, key=lambda row: (row.time_ps, row.link, row.level != s.NONE))
        self._traced = []
        return found

    def host_drops(self) -> Drops:
        """Return the packets that hosts have lost before or on their own links."""
        return self._drops(s.NONE)

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _controlled(self, program: Program) -> Program:
        """Return a program with the congestion controls of the hosts compiled in."""
        return program if program.controls == self._controls else program.controlled_by(self._controls)

    def _set_control(self, flow: int, name: str | None) -> None:
        """Give a new flow its congestion control."""
        names = self.options.control_names
        if name is not None and name not in names:
            raise ValueError(f"no flow can have congestion control {name!r}: the hosts have {', '.join(names)}")
        if not self._controls:
            return
        row, name = self._state.senders[flow], name or names[0]
        row[s.SENDER_CONTROL], row[s.SENDER_NEWEST] = s.NONE, -1
        for index, control in enumerate(self._controls):
            if control.name == name:
                row[s.SENDER_CONTROL], row[s.SENDER_TOS] = index, ECT_0 if control.is_ecn_capable else 0
                values = tuple(control.parameters.values())
                self._state.windows[flow, s.WINDOW + 1 : s.WINDOW + 1 + len(values)] = values

    def _control(self, flow: int) -> CongestionControl | None:
        if not self._controls or self._state.senders[flow, s.SENDER_CONTROL] == s.NONE:
            return None
        return self._controls[int(self._state.senders[flow, s.SENDER_CONTROL])]

    def _by_level(self, first: int) -> NDArray[np.int64]:
        """Return a column of every link's queues, from that of level 0 on; acknowledgements count as level 7."""
        levels = np.zeros((len(self.fabric.links), s.LEVELS), dtype=np.int64)
        for state in self._states:  # in all but that of its part, a link's columns are 0
            by_queue = state.links[: len(levels), first :: s.QUEUE_COLUMNS]
            levels += by_queue[:, : s.LEVELS]
            levels[:, -1] += by_queue[:, s.LEVELS]
        return levels

    def _fit(self, program: Program) -> None:
        """Make room for what a program needs of a packet and of links."""
        self._state = with_program(self._state, program)

    def _require_one_program(self, *programs: Program) -> None:
        if len(self._states) > 1 and len({*programs}) > 1:
            raise ValueError("on several cores all switches of a fabric have the same program")

    def _show_programs(self) -> None:
        """Tell the engine which switches have which program, and let it go on with any of them."""
        for state in self._states:
            state.scalars[s.PROGRAM] = next(iter(self._programs.numbers.values()))
        numbers = [self._programs.number(name) if switch.is_ready else 0 for name, switch in self.switches.items()]
        self._state.programs[: len(numbers)] = numbers

    def _know_loops(self) -> None:
        """Tell the engine where the loops of all programs are; a new one is compiled, or loaded from the cache."""
        if len(self._state.loops):
            return
        loops = np.zeros(1 + max(self._programs.numbers.values()), dtype=np.int64)
        for program, number in self._programs.numbers.items():
            loops[number] = address_of(program.run, self._state, self._arena.words)
        self._state = self._state._replace(loops=loops)

    def _links_out_of(self, switch: str) -> list[int]:
        """Return the links from a switch, those to its control plane, to nowhere and back to itself included."""
        of_state = self._state.links[:, s.LINK_SOURCE_SWITCH] == self.fabric.switch_index[switch]
        return [int(link) for link in np.flatnonzero(of_state)]

    def _drops(self, row: int) -> Drops:
        return Drops(
            *(sum(int(state.drops[row, reason]) for state in self._states) for reason in range(s.DROP_REASONS))
        )

    def _from(self, link: int) -> s.State:
        """Return the state of the part in which a link of the fabric begins."""
        return self._states[self._partition.of_source(self.fabric.links[link])]

    def _to(self, link: int) -> s.State:
        """Return the state of the part in which a link ends."""
        if link < len(self.fabric.links):
            return self._states[self._partition.of_destination(self.fabric.links[link])]
        switch = self.fabric.switches[(link - len(self.fabric.links)) // 2]
        return self._states[self._partition.part[switch]]

    def _take_completions(self) -> tuple[Completion, ...]:
        """Return the completions of the moment; all parts are there then."""
        for state in self._states:
            completed = int(state.scalars[s.COMPLETIONS])
            if completed:
                state.scalars[s.COMPLETIONS] = 0
                for other in self._states:
                    other.scalars[s.NOW_PS] = state.scalars[s.NOW_PS]
                return tuple(Completion(*row) for row in state.completions[:completed].tolist())
        return ()

    def _grow_flows(self) -> None:
        first = grown_flows(self._state)
        grown = [first, *(grown_flows(state) for state in self._states[1:])]
        shared = {name: getattr(first, name) for name in FLOW_ARRAYS}
        self._states = [state._replace(**shared) for state in grown]

    def _require_flow(self, flow: int) -> None:
        if not 0 <= flow < self._num_flows:
            raise ValueError(f"there is no flow {flow}; flows are numbered from 0, and there are {self._num_flows}")

    def _require_link(self, link: int) -> None:
        num_links = len(self.fabric.links)
        if not 0 <= link < num_links:
            raise ValueError(f"there is no link {link}; links are numbered from 0, and there are {num_links}")

    def _require_switch(self, switch: str) -> None:
        if switch not in self.switches:
            raise ValueError(f"there is no switch {switch!r}")

    def _inject(self, link: int, octets: bytes, length: int | None = None) -> None:
        number = s.NONE
        if length is None:
            length, parsed = len(octets), int(self._state.scalars[s.PARSE_BYTES])
            if length > s.OCTETS and parsed < s.OCTETS:
                kept = max(s.OCTETS - ROOM_BYTES, parsed)
                number = self._tails.keep(octets[kept:], len(self._states) == 1 and self.is_at_rest)
                octets = octets[:kept]
        if len(octets) > min(s.OCTETS, length):
            raise ValueError(f"a packet of {length} bytes keeps {min(s.OCTETS, length)}, not {len(octets)}")
        self._make_room()
        state = self._to(link)
        packet = state.scalars[s.FREE_PACKET]
        inject(state, link, np.frombuffer(octets, dtype=np.uint8), length)
        state.packets[packet, s.PACKET_NUMBER] = number

    @property
    def is_at_rest(self) -> bool:
        """Whether no packet is anywhere in the fabric."""
        return all(int(state.scalars[s.FREE_PACKETS]) == len(state.packets) for state in self._states)

    def _time_ps(self) -> int:
        """Return the time up to which packets have been processed, for entries that age."""
        return self.now_ps

    def _cpu_link(self, switch: str) -> int:
        return len(self.fabric.links) + 2 * self.fabric.switch_index[switch]

    def _link_is_up(self, link: int) -> bool:
        """Return whether a link's cable is wanted, and at its ends switches are on and their ports enabled."""
        end = self.fabric.links[link]
        ends = (end.source, end.source_port), (end.destination, end.destination_port)
        at = [(self.switches[name], port) for name, port in ends if name in self.switches]
        return self._is_wanted[link] and all(
            switch.power.is_on and switch.ports.is_enabled(port) for switch, port in at
        )

    def _update_link(self, link: int) -> None:
        """Set a link up or down, as it now should be."""
        end, up = self.fabric.links[link], self._link_is_up(link)
        for state in self._states:
            state.links[link, s.LINK_UP] = up
        if not up:
            flush(self._from(link), link, s.LINK_DOWN)
        if end.source in self.switches:
            self.switches[end.source].set_port(end.source_port, up)

    def _make_room(self) -> None:
        """Grow the arrays that a single event might overfill."""
        for part, state in enumerate(self._states):
            if len(state.trace) and state.scalars[s.TRACED] + s.RESERVE > len(state.trace):
                self._collect()
            if state.scalars[s.FREE_PACKETS] < s.RESERVE:
                self._states[part] = grown_packets(state)

    def _collect(self) -> None:
        """Move captures and trace rows out of the engine's arrays."""
        for state in self._states:
            if state.scalars[s.CAPTURES] or state.scalars[s.TRACED]:
                self._collect_from(state)

    def _collect_from(self, state: s.State) -> None:
        for link, time_ps, octets, length, number in take_captured(state):
            octets += self._tails.of(number, length - len(octets))
            if link < len(self.fabric.links):
                self._captured.append(Capture(link, time_ps, octets, length))
                continue
            own_link, switches = link - len(self.fabric.links), self.fabric.switches
            if own_link < 2 * len(switches):
                self._packets_in.append(PacketIn(switches[own_link // 2], time_ps, octets.ljust(length, b"\0")))
            else:
                number, values = int.from_bytes(octets[:NUMBER_BYTES], "big"), octets[NUMBER_BYTES:]
                self._packets_in.append(PacketIn(switches[own_link - 2 * len(switches)], time_ps, values, number))
        for time_ps, kind, *rest in state.trace[: state.scalars[s.TRACED]].tolist():
            self._traced.append(TraceRow(time_ps, TraceKind(kind), *rest))
        state.scalars[s.TRACED] = 0
