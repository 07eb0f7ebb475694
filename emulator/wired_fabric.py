"""An emulated fabric whose hosts are real: frames of network interfaces pass its switches in wall-clock time.

Every NIC of a host may have an interface, a *wire*: what arrives there joins the queue of the host's link, and what
reaches the NIC leaves through it. A thread of machine code passes frames; it pauses where somebody else needs the
fabric (``exclusive``), and the kernel keeps what arrives meanwhile.
"""

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, closing, suppress
from pathlib import Path

from emulator.compiler.program import Program
from emulator.engine import state as s
from emulator.engine import wires as w
from emulator.engine.events import END_PS
from emulator.engine.packets import packet_words, take_captured, with_packets
from emulator.engine.queues import flush
from emulator.engine.transport import compile_inject
from emulator.fabric import PS_PER_S, EmulatedFabric
from emulator.host_options import HostOptions, wire_overhead
from emulator.interfaces import InterfaceError, Interfaces, missed_frames, watch
from emulator.observations import PacketIn
from emulator.ports import CPU_PORT
from emulator.wire_counts import Warner, WireCounts
from emulator.wire_memory import attached, know_interfaces
from topologies.addressing import FiveTuple
from topologies.fabric import Fabric

QUEUE_BYTES = 3_000_000
"""What a queue holds unless told otherwise: 120 ms at 200 Mbit/s. TCP starves others' queues where they are shorter."""

_PACKETS = 32_768
"""Frames in the fabric at a time. Their memory cannot grow, because the kernel writes into it."""
_BREATH_S = 0.0005
"""So long frames pass at least between two pauses."""
_STARTS_WITHIN_S = 60.0
_LOOK_S = 1.0
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
        self._thread: threading.Thread | None = None
        super().__init__(
            fabric,
            program,
            options,
            rate_scale=wire_overhead(options),
            queue_limit_bytes=queue_limit_bytes,
            cpu_port=cpu_port,
        )
        self._links = {link_of(fabric, *nic): name for nic, name in wires.items()}
        if len(set(wires.values())) < len(wires):
            raise InterfaceError("an interface can be the wire of one NIC only")
        self._indexes = dict.fromkeys(wires.values(), 0)
        self._carriers = dict.fromkeys(self._links, True)
        with ExitStack() as opened:
            self.interfaces = opened.enter_context(closing(Interfaces(namespace)))
            for name in wires.values():
                if self.interfaces.index(name) is None:
                    raise InterfaceError(f"there is no interface {name!r}")
            mtu_bytes = mtu_bytes or max((self.interfaces.mtu_bytes(name) for name in wires.values()), default=1500)
            self._packets = opened.enter_context(self.interfaces.packet_socket())
            self._bell, self._answer_bell = _new_bell(opened), _new_bell(opened)
            self._state = with_packets(self._state, _PACKETS)
            files = self._packets.fileno(), self._bell, self._answer_bell
            self._state = attached(self._state, *files, mtu_bytes)
            self._served, self._served_state = self._arena.words, self._state
            self._functions = next(iter(self._programs.numbers)).functions
            self._functions["arm_all"](self._state)
            # All is compiled now, because nobody is to wait for it once frames pass.
            take_captured(self._state)
            flush(self._state, 0, s.LINK_DOWN)
            compile_inject(self._state)
            self._state.wires[w.REQUEST] = w.STOP
            self._show_programs()
            self._know_loops()
            self._functions["serve"](self._state, self._served)
            self._opened = opened.pop_all()
        self._missed = 0
        self._warner = Warner()
        self._pauses = 0
        self._awaited_ps = 0
        self._resumed_s, self._rounds = time.monotonic(), 0
        self._has_ended = False
        self._failure: BaseException | None = None
        self._has_paused = asyncio.Event()
        self._has_news = asyncio.Event()
        self.is_passing = asyncio.Event()
        self.exclusive = PausingLock(self)

    # ---- passing ----------------------------------------------------------------------------------------------------

    async def serve(self, deliver: Callable[[Iterable[PacketIn]], None]) -> None:
        """Pass frames until cancelled, or until the clock ends. Call it once.

        Packets for control planes are handed to ``deliver``.

        Raises:
            RuntimeError: The engine has failed.
        """
        loop = asyncio.get_running_loop()
        loop.add_reader(self._answer_bell, self._hear)
        loop.add_reader(self.interfaces.changes, self._link_changes)
        try:
            async with self.exclusive, asyncio.timeout(_STARTS_WITHIN_S):
                await self._start()
            self.is_passing.set()
            while True:
                self._awaited_ps = self._timers.next_ps
                until_idle_s = max(0, self._awaited_ps - self._time_ps()) / PS_PER_S
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(_LOOK_S, until_idle_s)):
                        await self._has_news.wait()
                self._require_alive()
                if self.now_ps >= END_PS:
                    return
                self._warner.look(self.wire_counts)
                if not self._has_news.is_set() and self._timers.next_ps > self._time_ps():
                    continue
                async with self.exclusive:
                    self._has_news.clear()
                    self._update_wires()
                    self._collect()
                    self._timers.run(self._time_ps())
                deliver(self.packets_in())
        finally:
            loop.remove_reader(self._answer_bell)
            loop.remove_reader(self.interfaces.changes)
            with suppress(OSError):
                _LOG.info("frames: %s", self.wire_counts)
            self._end()

    async def _start(self) -> None:
        """Start the engine's thread, in a pause, and bring links and interfaces into line."""
        self._state.wires[w.START_NS] = time.monotonic_ns() - self.now_ps // 1000
        self._state.wires[w.REQUEST] = self._pauses = 1
        self._thread = threading.Thread(target=self._pass, name="frames", daemon=True)
        self._thread.start()
        await self._has_paused.wait()
        for link in self._links:
            self._update_link(link)
        self._carriers = {link: self.interfaces.is_up(name) for link, name in self._links.items()}
        for link in [link for link, is_up in self._carriers.items() if not is_up]:
            _LOG.warning("interface %s of %s has no carrier", self._links[link], nic_name(self.fabric, link))
            for direction in (link, self.fabric.reverse(link)):
                super()._update_link(direction)
        self._update_wires()

    async def pause(self) -> None:
        """Have the engine wait, once frames have passed since the last pause.

        Raises:
            RuntimeError: The engine has failed.
        """
        while self._thread is not None and not self._has_breathed():
            self._require_alive()
            await asyncio.sleep(_BREATH_S)
        if self._thread is None:
            return
        self._require_alive()
        self._pauses += 1
        self._has_paused.clear()
        self._ask(self._pauses)
        await self._has_paused.wait()
        self._require_alive()

    def resume(self) -> None:
        """Have the engine go on, with what has changed."""
        if self._thread is None:
            return
        self._show_programs()
        self._know_loops()
        state = self._state
        if self._timers.next_ps < self._awaited_ps:
            self._has_news.set()
        state.wires[w.HAS_TOLD] = 0
        self._resumed_s, self._rounds = time.monotonic(), int(state.wires[w.ROUNDS])
        # A larger arena lies elsewhere, as do links and programs that are new: the engine begins again with them.
        is_same = self._served is self._arena.words and self._served_state is state
        self._ask(w.GO if is_same else w.STOP)

    async def breathe(self) -> None:
        """Let frames pass for a moment, while ``exclusive`` is held."""
        self.resume()
        await self.pause()

    @property
    def wire_counts(self) -> WireCounts:
        """What has passed the wires so far."""
        self._missed += missed_frames(self._packets)
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

    def _fit(self, program: Program) -> None:
        """Refuse a program that needs more of a frame's memory, which cannot move."""
        parsed = min(program.longest_parse_bytes, s.OCTETS - w.TAG_BYTES)
        has_rows = packet_words(program.row_words) <= self._state.scalars[s.PACKET_WORDS]
        if not has_rows or parsed > self._state.wires[w.FIRST_BYTES]:
            raise ValueError(
                f"program {program.name!r} needs more memory for a frame than this fabric was started with; start it "
                "with this program for one of its switches"
            )
        super()._fit(program)

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
        if self._thread is None:
            return self.now_ps
        return max(self.now_ps, (time.monotonic_ns() - int(self._state.wires[w.START_NS])) * 1000)

    def _link_is_up(self, link: int) -> bool:
        carrier = self._carriers.get(link, self._carriers.get(self.fabric.reverse(link), True))
        return carrier and super()._link_is_up(link)

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _pass(self) -> None:
        """Run the engine, in its thread."""
        try:
            while True:
                if self._state.wires[w.REQUEST] == w.STOP:
                    self._state.wires[w.REQUEST] = w.GO
                if self._has_ended:
                    return
                self._served, self._served_state = self._arena.words, self._state
                self._functions["serve"](self._served_state, self._served)
        except BaseException as error:
            self._failure = error
            os.eventfd_write(self._answer_bell, 1)

    def _end(self) -> None:
        self._has_ended = True
        self._ask(w.STOP)
        if self._thread is not None:
            self._thread.join()
        self._thread = None
        self._has_paused.set()  # nobody waits for an engine that is gone
        self._opened.close()

    def _has_breathed(self) -> bool:
        """Return whether the engine has had its time since it was to go on, however late it came to it."""
        return time.monotonic() >= self._resumed_s + _BREATH_S and self._state.wires[w.ROUNDS] != self._rounds

    def _ask(self, request: int) -> None:
        self._state.wires[w.REQUEST] = request
        os.eventfd_write(self._bell, 1)

    def _require_alive(self) -> None:
        if self._failure is not None:
            raise RuntimeError(f"the emulator's engine has failed: {self._failure}") from self._failure

    def _hear(self) -> None:
        """React to the engine's bell: it has paused, or has packets for control planes."""
        with suppress(BlockingIOError):
            os.eventfd_read(self._answer_bell)
        if self._state.wires[w.PAUSED] == self._pauses or self._failure is not None:
            self._has_paused.set()
        if self._state.wires[w.HAS_TOLD] or self._failure is not None:
            self._has_news.set()

    def _link_changes(self) -> None:
        """React to the kernel's news of interfaces, whatever they say."""
        with suppress(BlockingIOError, OSError):
            while self.interfaces.changes.recv(65536):
                pass
        self._has_news.set()

    def _update_wires(self) -> None:
        """Take links up and down as interfaces are, and know interfaces that have come back under another index."""
        wires, changed = self._state.wires, False
        for link, name in self._links.items():
            index = self.interfaces.index(name) or 0
            if index != self._indexes[name]:
                changed = True
                self._indexes[name] = index
                self._state.links[self.fabric.reverse(link), s.LINK_WIRE] = index
            has_carrier = self.interfaces.is_up(name)
            if has_carrier != self._carriers[link]:
                self._carriers[link] = has_carrier
                what = "is up" if has_carrier else "is down" if index else "is gone"
                _LOG.warning("interface %s of %s %s", name, nic_name(self.fabric, link), what)
                for direction in (link, self.fabric.reverse(link)):
                    super()._update_link(direction)
        if changed:
            know_interfaces(wires, {self._indexes[name]: link for link, name in self._links.items()})
            watch(self._packets, filter(None, self._indexes.values()))

    def _update_link(self, link: int) -> None:
        """Set a link, and the interface at its end as the link is wanted."""
        super()._update_link(link)
        of_host = link if link in self._links else self.fabric.reverse(link)
        if of_host in self._links and self._thread is not None:
            both = (of_host, self.fabric.reverse(of_host))
            wanted = all(super(WiredFabric, self)._link_is_up(one) for one in both)
            self.interfaces.set_up(self._links[of_host], up=wanted)


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


def _new_bell(opened: ExitStack) -> int:
    bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
    opened.callback(os.close, bell)
    return bell


def link_of(fabric: Fabric, host: str, nic: int) -> int:
    """Return the link from a host's NIC. Raises ValueError where there is no such NIC."""
    for found in fabric.nics.get(host, ()):
        if found.index == nic:
            return found.link
    raise ValueError(f"the topology has no NIC {host}.{nic}")


def nic_name(fabric: Fabric, link: int) -> str:
    """Return the name of the NIC from which a link leads: ``HOST.NUMBER``."""
    found = fabric.links[link]
    return f"{found.source}.{found.source_port}"
