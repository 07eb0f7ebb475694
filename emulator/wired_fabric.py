"""An emulated fabric whose hosts are real: frames of network interfaces pass its switches in wall-clock time.

Every NIC of a host may have an interface, a *wire*: what arrives there joins the queue of the host's link, and what
reaches the NIC leaves through it. A thread of machine code passes frames; it pauses where somebody else needs the
fabric (``exclusive``), and the kernel keeps what arrives meanwhile.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, closing, suppress
from pathlib import Path

from emulator.compiler.program import Program
from emulator.engine import state as s
from emulator.engine import wires as w
from emulator.engine.events import END_PS
from emulator.engine.packets import packet_words, with_packets
from emulator.engine.queues import flush
from emulator.fabric import PS_PER_S, EmulatedFabric
from emulator.frame_thread import FrameThread, new_bell
from emulator.host_options import HostOptions, wire_overhead
from emulator.interfaces import InterfaceError, Interfaces, missed_frames
from emulator.observations import PacketIn
from emulator.ports import CPU_PORT
from emulator.wire_counts import Warner, WireCounts
from emulator.wire_memory import attached
from emulator.wired_links import WiredLinks, link_of
from topologies.addressing import FiveTuple
from topologies.fabric import Fabric

QUEUE_BYTES = 3_000_000
"""What a queue holds unless told otherwise: 120 ms at 200 Mbit/s. TCP starves others' queues where they are shorter."""

_PACKETS = 32_768
"""Frames in the fabric at a time. Their memory cannot grow, because the kernel writes into it."""
_STARTS_WITHIN_S = 60.0
_LOOK_S = 1.0
_RECORDS_S = 0.2
"""So often packets that were recorded are written."""
_LOG = logging.getLogger(__name__)


class WiredFabric(EmulatedFabric):
    """Switches of a topology, with hosts that are reached through real interfaces.

    Frames pass as soon as ``is_passing``, while ``serve`` runs; somebody else has the fabric who holds ``exclusive``.
    Rates of the topology are those of frames, without preamble and gap. A link is up while its interface is there, up,
    and has a carrier; a link that ``set_link`` takes down takes its interface down.

    Args:
        fabric: The topology.
        program: A program that was compiled with ``is_wired``, or such a program for each switch by its name.
        wires: By host and number of its NIC, the name of an interface.
        namespace: A file of the interfaces' network namespace; None: that of the process.
        mtu_bytes: The longest IP packet; None: that of the interfaces, the longest where they differ.
        queue_limit_bytes: What each queue holds.
        cpu_port: Connects every switch to its control plane.

    Raises:
        InterfaceError: An interface is not there or has another one's wire, or real interfaces are not permitted.
        ValueError: A wire names no NIC of the topology, or a port is taken.
    """

    def __init__(
        self,
        fabric: Fabric,
        program: Program | Mapping[str, Program],
        wires: Mapping[tuple[str, int], str],
        *,
        namespace: Path | None = None,
        mtu_bytes: int | None = None,
        queue_limit_bytes: int = QUEUE_BYTES,
        cpu_port: int = CPU_PORT,
    ) -> None:
        options = HostOptions()
        self.is_passing = asyncio.Event()  # entries of the program that age ask for the time already
        super().__init__(
            fabric,
            program,
            options,
            rate_scale=wire_overhead(options),
            queue_limit_bytes=queue_limit_bytes,
            cpu_port=cpu_port,
        )
        names = {link_of(fabric, *nic): name for nic, name in wires.items()}
        if len(set(wires.values())) < len(wires):
            raise InterfaceError("an interface can be the wire of one NIC only")
        with ExitStack() as opened:
            self.interfaces = opened.enter_context(closing(Interfaces(namespace)))
            for name in names.values():
                if self.interfaces.index(name) is None:
                    raise InterfaceError(f"there is no interface {name!r}")
            mtu_bytes = mtu_bytes or max((self.interfaces.mtu_bytes(name) for name in names.values()), default=1500)
            self._socket = opened.enter_context(self.interfaces.packet_socket())
            bell, self._answer_bell = new_bell(opened), new_bell(opened)
            state = with_packets(self._state, _PACKETS)
            self._parts.first = attached(state, self._socket.fileno(), bell, self._answer_bell, mtu_bytes)
            self._wired_links = WiredLinks(fabric, self._parts, self._links, self.interfaces, self._socket, names)
            functions = self._programs.first.functions
            functions["arm_all"](self._state)
            self._frames = FrameThread(self._parts, self._arena, bell, self._answer_bell, functions["serve"])
            self._compile()
            self._opened = opened.pop_all()
        self._missed = 0
        self._warner = Warner()
        self._awaited_ps = 0
        self.exclusive = PausingLock(self)

    # ---- passing ----------------------------------------------------------------------------------------------------

    async def serve(self, deliver: Callable[[Iterable[PacketIn]], None]) -> None:
        """Pass frames until cancelled, or until the clock ends. Call it once.

        Packets for control planes are handed to ``deliver``.

        Raises:
            RuntimeError: The engine has failed.
        """
        loop = asyncio.get_running_loop()
        loop.add_reader(self._answer_bell, self._frames.hear)
        loop.add_reader(self.interfaces.changes, self._link_changes)
        try:
            async with self.exclusive, asyncio.timeout(_STARTS_WITHIN_S):
                await self._frames.start()
                self._wired_links.start()
            self.is_passing.set()
            while True:
                self._awaited_ps = self._timers.next_ps
                until_idle_s = max(0, self._awaited_ps - self._time_ps()) / PS_PER_S
                with suppress(TimeoutError):
                    look_s = _LOOK_S if self._port_files is None else _RECORDS_S
                    async with asyncio.timeout(min(look_s, until_idle_s)):
                        await self._frames.has_news.wait()
                self._frames.require_alive()
                if self.now_ps >= END_PS:
                    return
                self._warner.look(self.wire_counts)
                has_news = self._frames.has_news.is_set() or self._state.scalars[s.RECORDED] > 0
                if not has_news and self._timers.next_ps > self._time_ps():
                    continue
                async with self.exclusive:
                    self._frames.has_news.clear()
                    self._wired_links.update()
                    self._collect()
                    self._timers.run(self._time_ps())
                deliver(self.packets_in())
        finally:
            loop.remove_reader(self._answer_bell)
            loop.remove_reader(self.interfaces.changes)
            with suppress(OSError):
                _LOG.info("frames: %s", self.wire_counts)
            self._frames.end()
            self._wired_links.end()
            self._collect()
            self._opened.close()

    async def pause(self) -> None:
        """Have the engine wait, once frames have passed since the last pause.

        Raises:
            RuntimeError: The engine has failed.
        """
        await self._frames.pause()

    def resume(self) -> None:
        """Have the engine go on, with what has changed."""
        if not self._frames.is_running:
            return
        self._programs.show()
        self._programs.know_loops()
        if self._timers.next_ps < self._awaited_ps:
            self._frames.has_news.set()
        self._frames.resume()

    async def breathe(self) -> None:
        """Let frames pass for a moment, while ``exclusive`` is held."""
        self.resume()
        await self.pause()

    @property
    def wire_counts(self) -> WireCounts:
        """What has passed the wires so far."""
        self._missed += missed_frames(self._socket)
        dropped = self.host_drops()
        elsewhere = {"missed": self._missed, "queue_full": dropped.queue_full, "link_down": dropped.link_down}
        words = {name: getattr(w, name.upper()) for name in WireCounts.__slots__ if name not in elsewhere}
        return WireCounts(**elsewhere, **{name: int(self._state.wires[word]) for name, word in words.items()})

    # ---- what differs from virtual time -----------------------------------------------------------------------------

    def run(self, until_ps: int) -> tuple[()]:
        """Refuse: time passes by itself."""
        raise ValueError(f"a fabric with real interfaces follows the machine's clock, not to {until_ps} ps")

    def add_flow(self, five_tuple: FiveTuple, congestion_control: str | None = None) -> int:  # noqa: ARG002
        """Refuse: the hosts are real."""
        raise ValueError(f"a fabric with real interfaces has no hosts of its own, for {five_tuple}")

    def load_program(self, switch: str, program: Program) -> None:
        """Give a switch another program, which must not need more of a frame's memory: that cannot move."""
        parsed = min(program.longest_parse_bytes, s.OCTETS - w.TAG_BYTES)
        has_rows = packet_words(program.row_words) <= self._state.scalars[s.PACKET_WORDS]
        if not has_rows or parsed > self._state.wires[w.FIRST_BYTES]:
            raise ValueError(
                f"program {program.name!r} needs more memory for a frame than this fabric was started with; start it "
                "with this program for one of its switches"
            )
        super().load_program(switch, program)

    def _inject(self, link: int, octets: bytes, length: int | None = None) -> None:
        """Lose and count a packet where memory is short."""
        if length not in (None, len(octets)):
            raise ValueError(f"a frame of {length} bytes has all of them, not {len(octets)}")
        if self._state.scalars[s.FREE_PACKETS] < 2 * s.RESERVE:
            self._state.wires[w.NO_MEMORY] += 1
        else:
            super()._inject(link, octets, len(octets))

    def _time_ps(self) -> int:
        """Return the machine's time while frames pass: the engine's stands still while there are none."""
        return self._frames.time_ps if self.is_passing.is_set() and self._frames.is_running else self.now_ps

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _link_changes(self) -> None:
        """React to the kernel's news of interfaces, whatever they say."""
        with suppress(BlockingIOError, OSError):
            while self.interfaces.changes.recv(65536):
                pass
        self._frames.has_news.set()

    def _compile(self) -> None:
        """Compile all now, because nobody is to wait for it once frames pass."""
        self._packets.prepare()
        flush(self._state, 0, s.LINK_DOWN)
        self._programs.show()
        self._programs.know_loops()
        self._frames.compile()


class PausingLock(asyncio.Lock):
    """Held while a wired fabric stands still."""

    def __init__(self, fabric: WiredFabric) -> None:
        super().__init__()
        self._fabric = fabric

    async def acquire(self) -> bool:  # type: ignore[override]
        """Have the fabric pause."""
        await super().acquire()
        try:
            await self._fabric.pause()
        except BaseException:
            self.release()
            raise
        return True

    def release(self) -> None:
        """Have the fabric go on."""
        self._fabric.resume()
        super().release()
