"""Records what becomes of one packet and its copies, while the engine runs as plain Python."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emulator.engine import state as s
from emulator.fabric import EmulatedFabric
from emulator.observations import Drops
from emulator.tracing import steps
from emulator.tracing.fields import Fields, value
from emulator.tracing.plain import Wrapper

_REASONS = [field.name for field in fields(Drops)]
_NO_ACTION = 0xFFFFFFFF


class Recorder:
    """Steps of the packets in ``tracked``, which has their numbers in the trace by those of the engine.

    The generated code calls the methods without an underscore, and functions of the engine are wrapped by ``wrappers``.
    """

    def __init__(self, emulated: EmulatedFabric, memory: NDArray[np.uint64]) -> None:
        self.steps: list[steps.AnyStep] = []
        self.tracked: dict[int, int] = {}
        self.state: s.State | None = None
        self._emulated = emulated
        self._fabric = emulated.fabric
        self._memory = memory
        self._names = list(emulated.fabric.switches)
        self._fields = {name: Fields(program.layout) for name, program in emulated.programs.items()}
        self._next_number = 1
        self._packet = -1  # the tracked packet that is processed, as the engine numbers it
        self._switch = s.NONE
        self._before: NDArray[np.uint64] | None = None
        self._lost: NDArray[np.int64] | None = None
        self._reason_of_copy = ""

    def track(self, packet: int) -> None:
        """Follow a packet, as the next one of the trace."""
        self.tracked[packet] = 0

    @property
    def wrappers(self) -> dict[str, Wrapper]:
        """What stands in place of functions of the engine and of generated ones."""
        return {
            "arrive": self._wrap_arrive,
            "start": self._wrap_start,
            "dequeue": self._wrap_dequeue,
            "enqueue": self._wrap_enqueue,
            "drop": self._wrap_drop,
            "deliver": self._wrap_deliver,
            "send_frame": self._wrap_send_frame,
            "put_on_link": self._wrap_put_on_link,
            "copy_packet": self._wrap_copy_packet,
            "release_packet": self._wrap_release_packet,
            "clone": self._wrap_copying("clone"),
            "replicate": self._wrap_copying("replica"),
            "pass_again": self._wrap_pass_again,
            "learn": self._wrap_learn,
            "forward": self._wrap_pass,
            "deparse": self._wrap_pass,
            "verify_checksums": self._wrap_checksums(is_update=False),
            "update_checksums": self._wrap_checksums(is_update=True),
            "prefetch": _nothing,
        }

    # ---- what generated code tells ----------------------------------------------------------------------------------

    def parser_state(self, name: str) -> None:
        """Note that the parser has come to a state."""
        if self._begins():
            self.steps.append(steps.ParserState(*self._now(), name, ()))

    def condition(self, name: str, source: str, is_true: bool) -> None:
        """Note the result of a condition."""
        if self._begins():
            self.steps.append(steps.Condition(*self._now(), name, source, bool(is_true)))

    def statement(self, action: str) -> None:
        """Note that a control executes an action without looking anything up."""
        if self._begins():
            self.steps.append(steps.Executed(*self._now(), action, ()))

    def applies(self) -> None:
        """Note that a table is applied; what changes from now on belongs to it."""
        self._begins()

    def table(self, name: str, slot: int, call: int) -> None:
        """Note that a table was applied: the offsets of the slot that matched, and of the action, or 0."""
        if self._packet not in self.tracked:
            return
        assert self.state is not None
        switch = self._emulated.switches[self._names[self._switch]]
        table = self._emulated.programs[switch.name].resources.tables[name]
        key = tuple(
            steps.KeyValue(field.name, field.kind.value, _key_value(field, self.state.phv), field.field.bits)
            for field in table.key
        )
        entry = entry_action = member = action = None
        arguments: tuple[steps.Argument, ...] = ()
        if slot:
            entry, entry_action = switch.entry_at(name, int(slot))
            if table.profile and call:
                member = switch.member_at(table.profile.name, int(call))
        number = int(self._memory[int(call)]) if call else _NO_ACTION
        for one in table.actions:
            if one.number == number:
                action, arguments = one.name, self._arguments(one, int(call) + 1)
        self.steps.append(
            steps.TableApplied(*self._now(), name, key, entry, entry_action, member, action, arguments, ())
        )

    def _arguments(self, action: Any, at: int) -> tuple[steps.Argument, ...]:
        starts = action.parameter_words
        return tuple(
            steps.Argument(
                name,
                sum(int(self._memory[at + word]) << 64 * n for n, word in enumerate(range(start, end))),
                bits,
            )
            for name, bits, start, end in zip(
                action.parameter_names, action.parameter_bits, starts, starts[1:], strict=False
            )
        )

    # ---- bookkeeping ------------------------------------------------------------------------------------------------

    def _now(self, packet: int | None = None) -> tuple[int, int]:
        """Return the time and the number of a packet in the trace."""
        assert self.state is not None
        return int(self.state.scalars[s.NOW_PS]), self.tracked[self._packet if packet is None else packet]

    def _begins(self) -> bool:
        """Return whether a step of a tracked packet begins; the changes since the last one belong to that."""
        if self._packet not in self.tracked:
            return False
        self._end_step()
        assert self.state is not None
        self._before = self._fields[self._names[self._switch]].copy(self.state.phv)
        return True

    def _end_step(self) -> None:
        """Give the changes of fields to the step that has made them."""
        if self._before is not None and self.state is not None and self._packet in self.tracked:
            changes = self._fields[self._names[self._switch]].changes(self._before, self.state.phv)
            last = self.steps[-1]
            if isinstance(last, steps.ParserState | steps.TableApplied | steps.Executed | steps.ChecksumsDone):
                self.steps[-1] = replace(last, changes=changes)
        self._before = None

    def _enter(self, state: s.State, packet: int, switch: int) -> None:
        self.state, self._packet, self._switch, self._before = state, int(packet), int(switch), None
        self._lost = state.drops[switch].copy()

    def _leave(self) -> None:
        self._packet, self._before = -1, None

    def _octets(self, state: s.State, packet: int) -> tuple[bytes, int]:
        """Return the bytes of a packet, zeros up to its length behind those that are stored, and the length."""
        row = state.packets[packet]
        at = 8 * (packet * int(state.scalars[s.PACKET_WORDS]) + s.PACKET_OCTETS)
        length = int(row[s.PACKET_LENGTH])
        return state.octets[at : at + int(row[s.PACKET_STORED])].tobytes()[:length], length

    # ---- wrappers of the engine's functions -------------------------------------------------------------------------

    def _wrap_arrive(self, arrive: Callable[..., Any]) -> Callable[..., Any]:
        def watched(state: s.State, memory: Any, link: int, packet: int) -> None:
            if packet not in self.tracked:
                arrive(state, memory, link, packet)
                return
            switch = int(state.links[link, s.LINK_DESTINATION_SWITCH])
            self._enter(state, packet, switch)
            if switch != s.NONE and state.links[link, s.LINK_UP]:
                port = int(state.links[link, s.LINK_DESTINATION_PORT])
                came_by = None if port == s.NONE else port
                self.steps.append(
                    steps.Arrived(*self._now(), self._names[switch], came_by, *self._octets(state, int(packet)))
                )
            arrive(state, memory, link, packet)
            self._leave()

        return watched

    def _wrap_start(self, start: Callable[..., Any]) -> Callable[..., Any]:
        def watched(state: s.State, memory: Any, link: int) -> None:
            start(state, memory, link)
            self._leave()

        return watched

    def _wrap_dequeue(self, dequeue: Callable[..., Any]) -> Callable[..., Any]:
        def watched(state: s.State, link: int, level: int) -> int:
            packet = int(dequeue(state, link, level))
            self._leave()
            switch = int(state.links[link, s.LINK_SOURCE_SWITCH])
            if packet in self.tracked and switch != s.NONE:
                self._enter(state, packet, switch)
                waited_ps = int(state.scalars[s.NOW_PS] - state.packets[packet, s.PACKET_ENQUEUED_PS])
                port = self._port(state, link, packet)
                self.steps.append(steps.LeftQueue(*self._now(), self._names[switch], port, waited_ps))
            return packet

        return watched

    def _wrap_enqueue(self, enqueue: Callable[..., Any]) -> Callable[..., Any]:
        def watched(state: s.State, link: int, packet: int, level: int) -> None:
            switch = int(state.links[link, s.LINK_SOURCE_SWITCH])
            if packet in self.tracked and switch != s.NONE:
                self.state = state
                queue = s.QUEUE_COLUMNS * int(level)
                ahead = (int(state.links[link, column + queue]) for column in (s.LINK_PACKETS, s.LINK_BYTES))
                where = self._names[switch], self._port(state, link, packet)
                self.steps.append(steps.Queued(*self._now(int(packet)), *where, min(int(level), s.LEVELS - 1), *ahead))
            enqueue(state, link, packet, level)

        return watched

    def _port(self, state: s.State, link: int, packet: int) -> int:
        port = int(state.links[link, s.LINK_SOURCE_PORT])
        return int(state.packets[packet, s.PACKET_PORT]) if port == s.NONE else port

    def _wrap_drop(self, drop: Callable[..., Any]) -> Callable[..., Any]:
        def watched(state: s.State, reason: int, link: int, level: int, packet: int) -> None:
            if packet in self.tracked:
                self.state = state
                source = int(state.links[link, s.LINK_SOURCE_SWITCH])
                where = "" if source == s.NONE else self._names[source]
                self.steps.append(steps.Dropped(*self._now(int(packet)), where, _REASONS[int(reason)]))
                del self.tracked[int(packet)]
            drop(state, reason, link, level, packet)

        return watched

    def _wrap_release_packet(self, release: Callable[..., Any]) -> Callable[..., Any]:
        def watched(state: s.State, packet: int) -> None:
            if packet in self.tracked:
                if self._lost is not None and self._switch != s.NONE:
                    more = np.flatnonzero(state.drops[self._switch] != self._lost)
                    if len(more):
                        self._end_step()
                        name = self._names[self._switch]
                        self.steps.append(steps.Dropped(*self._now(int(packet)), name, _REASONS[int(more[0])]))
                        self._lost = state.drops[self._switch].copy()
                del self.tracked[int(packet)]
            release(state, packet)

        return watched

    def _wrap_deliver(self, deliver: Callable[..., Any]) -> Callable[..., Any]:
        def watched(state: s.State, link: int, packet: int) -> None:
            self._delivered(state, int(link), int(packet))
            deliver(state, link, packet)

        return watched

    def _wrap_send_frame(self, _: Callable[..., Any]) -> Callable[..., Any]:
        """Send nothing through a real interface."""

        def watched(state: s.State, link: int, packet: int) -> None:
            self._delivered(state, int(link), int(packet))
            state.packets[packet, s.PACKET_NEXT] = state.scalars[s.FREE_PACKET]
            state.scalars[s.FREE_PACKET] = packet
            state.scalars[s.FREE_PACKETS] += 1

        return watched

    def _delivered(self, state: s.State, link: int, packet: int) -> None:
        if packet not in self.tracked:
            return
        self.state = state
        own_link = link - len(self._fabric.links)
        to = self._fabric.links[link].destination if own_link < 0 else f"control plane of {self._names[own_link // 2]}"
        self.steps.append(steps.Delivered(*self._now(packet), to, *self._octets(state, packet)))
        del self.tracked[packet]

    def _wrap_put_on_link(self, put_on_link: Callable[..., Any]) -> Callable[..., Any]:
        def watched(state: s.State, link: int, packet: int, arrives_ps: int) -> None:
            switch = int(state.links[link, s.LINK_SOURCE_SWITCH])
            back = int(state.scalars[s.FIRST_WAY_BACK])
            if packet == self._packet and switch != s.NONE and not (0 <= back <= link):
                where = self._names[switch], self._port(state, link, packet)
                self.steps.append(steps.Sent(*self._now(), *where, *self._octets(state, int(packet)), int(arrives_ps)))
            put_on_link(state, link, packet, arrives_ps)

        return watched

    def _wrap_copy_packet(self, copy_packet: Callable[..., Any]) -> Callable[..., Any]:
        def watched(state: s.State, packet: int) -> int:
            other = int(copy_packet(state, packet))
            if packet in self.tracked:
                self._end_step()
                self.state = state
                self.steps.append(steps.Copied(*self._now(int(packet)), self._next_number, self._reason_of_copy))
                self.tracked[other] = self._next_number
                self._next_number += 1
            return other

        return watched

    def _wrap_copying(self, reason: str) -> Wrapper:
        def wrapper(function: Callable[..., Any]) -> Callable[..., Any]:
            def watched(*arguments: Any) -> Any:
                before, self._reason_of_copy = self._reason_of_copy, reason
                try:
                    return function(*arguments)
                finally:
                    self._reason_of_copy = before

            return watched

        return wrapper

    def _wrap_pass_again(self, pass_again: Callable[..., Any]) -> Callable[..., Any]:
        def watched(state: s.State, switch: int, packet: int, lists: int, instance: int, time_ps: int) -> None:
            self._reason_of_copy = "resubmit" if instance == 6 else "recirculate"
            pass_again(state, switch, packet, lists, instance, time_ps)

        return watched

    def _wrap_learn(self, learn: Callable[..., Any]) -> Callable[..., Any]:
        def watched(state: s.State, switch: int) -> None:
            if self._packet in self.tracked:
                self._end_step()
                layout = self._emulated.programs[self._names[switch]].layout
                number = int(state.phv[layout.digest_word])
                self.steps.append(steps.DigestTold(*self._now(), self._names[switch], number))
            learn(state, switch)

        return watched

    def _wrap_pass(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any) -> Any:
            self._end_step()
            return function(*arguments)

        return watched

    def _wrap_checksums(self, *, is_update: bool) -> Wrapper:
        def wrapper(function: Callable[..., Any]) -> Callable[..., Any]:
            def watched(*arguments: Any) -> None:
                if self._begins():
                    self.steps.append(steps.ChecksumsDone(*self._now(), is_update, ()))
                    function(*arguments)
                    self._end_step()
                    last = self.steps[-1]
                    if isinstance(last, steps.ChecksumsDone) and not last.changes:
                        self.steps.pop()
                else:
                    function(*arguments)

            return watched

        return wrapper


def _key_value(field: Any, words: NDArray[np.uint64]) -> int:
    if field.valid_word is not None and not words[field.valid_word]:
        return 0
    return int(value(field.field, words) & field.visible)


def _nothing(_: Callable[..., Any]) -> Callable[..., Any]:
    """Do nothing in place of what only speeds machine code up."""
    return lambda *_: None
