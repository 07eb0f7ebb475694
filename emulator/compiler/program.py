"""Compiled programs: BMv2 JSON in, cached machine code for ingress, egress and the event loop out.

The generated source defines

- ``receive(phv, octets, at, length, port, now_us, memory, block)``: parse, verify checksums, ingress; returns the
  egress port, or HALTED. ``phv`` holds the words in which packets are processed; the packet's bytes start at
  ``octets[at]``.
- ``store(phv, rows, row)`` and ``load(phv, rows, row)``: save the packet's words while it waits in a queue, and
  restore them.
- ``transmit(phv, octets, at, stored, port, times and depths…, memory, block)``: egress, checksums, deparse; returns
  the number of bytes before the payload, or DROPPED, TOO_LARGE or HALTED.
- ``run(...)``: the event loop of ``emulator.engine`` with these two compiled into it.
- ``serve(...)``, where real interfaces are attached: the loop in wall-clock time, with their frames.

A program that copies packets or sends them through again (``emulator.compiler.replication``) also has
``receive_again``, which starts with the metadata of the row, and ``finish``, which follows ``transmit`` after egress.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from emulator import hashing, memory, meters
from emulator.compiler import octets as compiler_octets
from emulator.compiler import support
from emulator.compiler.actions import ActionCompiler
from emulator.compiler.clock import set_clock, with_clock
from emulator.compiler.control import ControlCompiler
from emulator.compiler.deparsers import DROPPED, HALTED, TOO_LARGE, deparser_function
from emulator.compiler.digests import digest_function
from emulator.compiler.expressions import word
from emulator.compiler.extractions import longest_parse_bytes
from emulator.compiler.functions import Function
from emulator.compiler.hashes import HashCompiler
from emulator.compiler.layout import Json, Layout, UnsupportedError
from emulator.compiler.parsers import parser_functions
from emulator.compiler.parts import NotBmv2Error, check_parts
from emulator.compiler.replication import (
    ARRIVAL_PORT,
    CopyCompiler,
    hidden_word,
    invalidate,
    parse_call,
    replicates,
    with_hidden_metadata,
)
from emulator.compiler.resources import Resources, resources
from emulator.compiler.survivors import everything, survivors
from emulator.compiler.validation import CorruptProgramError, validate
from emulator.compiler.wide import wide_functions
from emulator.congestion.compilation import BEGIN_SOURCE, require_compilable, transport_of
from emulator.congestion.control import CongestionControl
from emulator.engine import events, loop, packets, programs, queues, recording, state, transport, windows, wires
from emulator.engine import replication as engine_replication
from emulator.engine.controlled_transport import Functions
from emulator.engine.loop import loop_source
from emulator.engine.state import OCTETS
from emulator.native.callable import Entry
from emulator.native.module import generated
from emulator.ports import DROP_PORT, NUM_PORTS

_MODULES = (
    compiler_octets,
    support,
    events,
    packets,
    programs,
    queues,
    recording,
    state,
    transport,
    windows,
    wires,
    loop,
    engine_replication,
    hashing,
    memory,
    meters,
)
"""Modules whose names the generated functions may use."""


_SHAPELESS = (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Exceptions raised while reading a JSON with a missing or malformed part."""


@dataclass(frozen=True)
class Program:
    """A program that the emulator can run; ``source`` holds its functions, which use ``constants`` by name.

    A packet to be dropped has ``drop_port`` as its egress port. Programs are equal where their ``digest`` is, that of
    the JSON, and where they were compiled alike. ``controls`` are the congestion controls of flows that have one.
    """

    name: str = field(compare=False)
    layout: Layout = field(compare=False)
    resources: Resources = field(compare=False)
    longest_parse_bytes: int = field(compare=False)
    row_words: int = field(compare=False)
    drop_port: int
    source: str = field(compare=False)
    constants: Mapping[str, int] = field(compare=False)
    is_wired: bool
    digest: str
    controls: tuple[CongestionControl, ...] = field(default=(), compare=False)
    plain: "Program | None" = field(default=None, compare=False, repr=False)
    """The same program without controls; None where it is the program itself."""

    @cached_property
    def functions(self) -> Mapping[str, Entry]:
        """The functions, by name; each is compiled at its first call and then loaded from the cache on disk.

        The cache is ``~/.cache/trainyard``, or the folder in ``TRAINYARD_CACHE``. Programs that are compiled alike
        share their functions.
        """
        return _functions(self.source, tuple(self.constants.items()), self._reactions)

    @cached_property
    def names(self) -> Mapping[str, Any]:
        """What the functions use by name, besides each other."""
        return _names(tuple(self.constants.items()), self._reactions)

    @property
    def _reactions(self) -> tuple[Functions, ...]:
        return tuple(control.functions for control in self.controls)

    def controlled_by(self, controls: tuple[CongestionControl, ...]) -> "Program":
        """Return the program with these congestion controls in place of its own; flows may still do without.

        Raises ValueError for a control whose functions cannot be compiled; it says where and why.
        """
        if controls == self.controls:
            return self
        plain = self.plain or self
        if not controls:
            return plain
        for control in controls:
            require_compilable(control)
        return replace(plain, source=plain.source + BEGIN_SOURCE, controls=controls, plain=plain)

    @property
    def run(self) -> Entry:
        """Event loop with this program compiled into it."""
        return self.functions["run"]


@lru_cache(maxsize=16)
def _functions(
    source: str, constants: tuple[tuple[str, int], ...], controls: tuple[Functions, ...]
) -> Mapping[str, Entry]:
    return {name: Entry(function) for name, function in generated(source, _names(constants, controls)).items()}


def _names(constants: tuple[tuple[str, int], ...], controls: tuple[Functions, ...]) -> Mapping[str, Any]:
    known = {name: value for module in _MODULES for name, value in vars(module).items()}
    return {**known, **transport_of(controls), "U": np.uint64, **dict(constants)}


def compile_program(text: str, *, drop_port: int = DROP_PORT, is_wired: bool = False) -> Program:
    """Compile BMv2 JSON; packets to be dropped get ``drop_port`` as their egress port.

    The program of a fabric with real interfaces must be ``is_wired``; any other one is faster without.

    Raises UnsupportedError for a construct that the emulator does not execute. Raises ValueError for text that is not
    BMv2 JSON, for a reference to a missing object, and for an invalid drop port.
    """
    if not 0 <= drop_port < NUM_PORTS:
        raise ValueError(f"the drop port must be within 0 to {NUM_PORTS - 1}, not {drop_port}")
    try:
        program: Json = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"the program is not JSON: {error}") from error
    try:
        check_parts(program)
        validate(program)
        return _compiled(program, drop_port, is_wired=is_wired)
    except (CorruptProgramError, NotBmv2Error):
        raise
    except _SHAPELESS as error:
        raise CorruptProgramError(f"a part has the wrong form ({type(error).__name__}: {error})") from error


def _compiled(program: Json, drop_port: int, *, is_wired: bool) -> Program:
    digest = hashlib.sha256(json.dumps(program, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    copies = replicates(program)
    program = with_clock(program)
    if copies:
        program = with_hidden_metadata(program)
    layout = Layout(program)
    found = resources(program, layout, replicates=copies)
    hashes = HashCompiler(program, layout)
    actions = ActionCompiler(program["actions"], layout, hashes, found, drop_port)
    functions = parser_functions(program, layout, actions, found)
    functions += [hashes.verify_function(), hashes.update_function()]
    functions += actions.functions()
    pipelines = {pipeline["name"]: pipeline for pipeline in program["pipelines"]}
    if sorted(pipelines) != ["egress", "ingress"] or len(program["pipelines"]) != len(pipelines):
        raise UnsupportedError(f"a program of the pipelines {[pipeline['name'] for pipeline in program['pipelines']]}")
    for pipeline in pipelines.values():
        functions += ControlCompiler(pipeline, layout, found, hashes, actions).functions()
    functions.append(deparser_function(program, layout, actions))
    if layout.digest_word is not None:
        functions.append(digest_function(program, layout))
    own = {"HALT_WORD": layout.halt_word, "DIGEST_WORD": layout.digest_word, "CUT_WORD": layout.longest_word}
    own["PS_WORD"] = layout.now_word
    constants = {name: index for name, index in own.items() if index is not None}
    if copies:
        copier = CopyCompiler(program, layout)
        functions += copier.functions()
        functions += [_receive_again(layout, hashes), _first_receive(layout), _egress(layout), _finish(layout, hashes)]
        constants |= copier.constants() | {"GROUPS": found.group_descriptor, "SESSIONS": found.session_descriptor}
        kept = everything(layout)
    else:
        functions += [_receive(layout, hashes), _transmit(layout, hashes)]
        # The event loop cuts a packet once it has been transmitted.
        needed = [] if layout.longest_word is None else [layout.longest_word]
        kept = survivors(layout, functions, ["receive"], ["transmit"], needed)
    functions += kept.functions
    name = str(program.get("program", "program"))
    body = "\n\n".join(function.source() for function in functions)
    body = "\n\n".join([*(function.source() for function in wide_functions(body)), body])
    constants |= {
        "DROP_PORT": drop_port,
        "DROPPED": DROPPED,
        "TOO_LARGE": TOO_LARGE,
        "HALTED": HALTED,
        "PRIORITY_WORD": layout.field(["standard_metadata", "priority"]).word,
        "PAYLOAD_WORD": layout.payload_word,
    }
    source = loop_source(
        replicates=copies,
        halts=layout.halt_word is not None,
        learns=layout.digest_word is not None,
        truncates=layout.longest_word is not None,
        ages=layout.now_word is not None,
        is_wired=is_wired,
    )
    longest = OCTETS if hashes.has_payload else longest_parse_bytes(program, layout)
    if hashes.has_payload and is_wired:
        raise UnsupportedError("a checksum of the payload, where real interfaces are attached,")
    source = f"{body}\n\n{source}"
    return Program(name, layout, found, longest, kept.row_words, drop_port, source, constants, is_wired, digest)


def _standard(layout: Layout, name: str) -> str:
    return word(layout.field(["standard_metadata", name]).word)


_RECEIVE = "phv, octets, at, length, port, now_us, memory, block"
_RECEIVE_AGAIN = "phv, octets, at, length, now_us, memory, block"
_TRANSMIT = "phv, octets, at, stored, port, enqueued_us, now_us, depth_then, depth_now, memory, block"
_FINISH = "phv, octets, at, stored"


def _receive(layout: Layout, hashes: HashCompiler) -> Function:
    return Function("receive", _RECEIVE, [*_arrival(layout), *_ingress(layout, hashes)])


def _first_receive(layout: Layout) -> Function:
    """Return ``receive``; if a packet may return, ingress is a separate function that both entries call."""
    lines = [*_arrival(layout), f"{word(hidden_word(layout, ARRIVAL_PORT))} = U(port)"]
    return Function("receive", _RECEIVE, [*lines, f"return receive_again({_RECEIVE_AGAIN})"])


def _receive_again(layout: Layout, hashes: HashCompiler) -> Function:
    return Function("receive_again", _RECEIVE_AGAIN, [*invalidate(layout), *_ingress(layout, hashes)])


def _arrival(layout: Layout) -> list[str]:
    return [
        f"for index in range(U({layout.initial_words})):",
        "    phv[index] = U(0)",
        f"{_standard(layout, 'ingress_port')} = U(port)",
        f"{_standard(layout, 'packet_length')} = U(length)",
        f"{_standard(layout, 'ingress_global_timestamp')} = U(now_us)",
    ]


def _ingress(layout: Layout, hashes: HashCompiler) -> list[str]:
    return [
        *set_clock(layout),
        parse_call(layout),
        *_unless_halted(layout, by_parser=True),
        _checksum_call("verify_checksums", layout, hashes, f"min(U(length), U({OCTETS}))"),
        "ingress(phv, memory, block)",
        *_unless_halted(layout),
        f"return np.int64({_standard(layout, 'egress_spec')})",
    ]


def _transmit(layout: Layout, hashes: HashCompiler) -> Function:
    return Function("transmit", _TRANSMIT, [*_departure(layout), *_end(layout, hashes)])


def _egress(layout: Layout) -> Function:
    """Return ``transmit``; if egress may ask for a clone, it first saves the packet.

    The parser may have halted a clone of ingress, which has passed no ingress.
    """
    return Function("transmit", _TRANSMIT, [*_unless_halted(layout, by_parser=True), *_departure(layout), "return 0"])


def _finish(layout: Layout, hashes: HashCompiler) -> Function:
    return Function("finish", _FINISH, _end(layout, hashes))


def _departure(layout: Layout) -> list[str]:
    return [
        f"{_standard(layout, 'egress_port')} = U(port)",
        f"{_standard(layout, 'egress_spec')} = U(0)",
        f"{_standard(layout, 'enq_timestamp')} = U(enqueued_us) & U(0xffffffff)",
        f"{_standard(layout, 'enq_qdepth')} = U(depth_then)",
        f"{_standard(layout, 'deq_timedelta')} = U(now_us - enqueued_us) & U(0xffffffff)",
        f"{_standard(layout, 'deq_qdepth')} = U(depth_now)",
        f"{_standard(layout, 'egress_global_timestamp')} = U(now_us)",
        *set_clock(layout),
        "egress(phv, memory, block)",
    ]


def _end(layout: Layout, hashes: HashCompiler) -> list[str]:
    return [
        *_unless_halted(layout),
        f"if {_standard(layout, 'egress_spec')} == U(DROP_PORT):",
        "    return DROPPED",
        _checksum_call("update_checksums", layout, hashes, "U(stored)"),
        f"return deparse(phv, octets, at, {word(layout.payload_word)}, U(stored))",
    ]


def _checksum_call(name: str, layout: Layout, hashes: HashCompiler, stored: str) -> str:
    """Return the line that verifies or updates checksums, of a packet of which so many bytes are stored."""
    if not hashes.has_payload:
        return f"{name}(phv)"
    return f"{name}(phv, octets, at + {word(layout.payload_word)}, at + {stored})"


def _unless_halted(layout: Layout, *, by_parser: bool = False) -> list[str]:
    """Return the lines that end a packet that has been halted; ``by_parser``: only the parser may have done it."""
    if layout.halt_word is None or (by_parser and not layout.idle_states):
        return []
    return [f"if {word(layout.halt_word)} != U(0):", "    return HALTED"]
