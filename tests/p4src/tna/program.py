"""A whole program: its blocks as Python functions, its tables and the objects of its externs."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from dataclasses import fields as fields_of
from random import Random
from types import CodeType
from typing import Any

from tests.p4src.tna import ir, nodes
from tests.p4src.tna.blocks import BlockTranslator, Parts
from tests.p4src.tna.externs import signed
from tests.p4src.tna.layouts import Layouts
from tests.p4src.tna.table_building import build_table
from tests.p4src.tna.tables import Table

Function = Callable[..., Any]

_BLOCKS = ("TnaParser", "TnaControl", "TnaDeparser")


class NoMatchError(Exception):
    """A parser has no next state."""


class ExitedError(Exception):
    """A control ends early."""


@dataclass(frozen=True, slots=True)
class Half:
    """Ingress or egress: three functions, and the dictionary that each packet begins with."""

    parse: Function
    control: Function
    deparse: Function
    initial: Mapping[str, int]
    reads_parser_error: bool


@dataclass(frozen=True, slots=True)
class RunningProgram:
    """What runs: both halves, and what the control plane writes and reads, by its names."""

    ingress: Half
    egress: Half
    tables: Mapping[str, Table]
    objects: Mapping[str, Any]
    layouts: Layouts


class TranslatedProgram:
    """Python for a program, in ``source``; ``start`` runs it as often as one likes.

    Raises ``NotImplementedError`` for what the interpreter does not know.
    """

    def __init__(self, program: ir.Program) -> None:
        self._parts = Parts(Layouts(program))
        self._blocks = [found for found in program.objects if isinstance(found, ir.Parser | ir.Control)]
        translators = {block.name: BlockTranslator(block, self._parts) for block in self._blocks}
        self._names = {name: translator.translate() for name, translator in translators.items()}
        self._undefined_bits = {name: translator.undefined_bits for name, translator in translators.items()}
        self.source = "\n".join(self._parts.lines)
        self._code: CodeType = compile(self.source, "<program>", "exec")
        self._actions = {
            local.name: local
            for block in self._blocks
            if isinstance(block, ir.Control)
            for local in block.control_locals
            if isinstance(local, ir.Action)
        }

        self._reading_parser_errors = {
            block.thread
            for block in self._blocks
            if block.node == "TnaControl" and any(map(_is_parser_error, _nodes(block)))
        }

    def start(self, undefined: Random | None = None) -> RunningProgram:
        """The program with the entries that it brings.

        What a program reads before it has written it is drawn from ``undefined``, else 0.
        """
        namespace: dict[str, Any] = {"signed": signed, "NoMatch": NoMatchError, "Exited": ExitedError}
        objects = {shared.label: shared.make() for shared in self._parts.objects}
        namespace |= {shared.variable: objects[shared.label] for shared in self._parts.objects}
        exec(self._code, namespace)
        tables = {}
        for table, variable, expressions in self._parts.tables:
            namespace[variable] = built = build_table(table, expressions, namespace, self._actions)
            tables[built.name] = built
        ingress, egress = (self._half(thread, namespace, undefined) for thread in ("ingress", "egress"))
        return RunningProgram(ingress, egress, tables, objects, self._parts.layouts)

    def _half(self, thread: str, namespace: Mapping[str, Any], undefined: Random | None) -> Half:
        mine = {block.node: block for block in self._blocks if block.thread == thread}
        bits = {key: number for block in mine.values() for key, number in self._undefined_bits[block.name].items()}
        initial = {key: undefined.getrandbits(number) if undefined else 0 for key, number in bits.items()}
        parse, control, deparse = (namespace[self._names[mine[kind].name]] for kind in _BLOCKS)
        return Half(parse, control, deparse, initial, thread in self._reading_parser_errors)


def _is_parser_error(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Member) and node.member == "parser_err"


def _nodes(node: Any) -> Iterator[nodes.Node]:
    """A node and all below it."""
    if isinstance(node, tuple):
        for element in node:
            yield from _nodes(element)
    elif is_dataclass(node):
        yield node  # type: ignore[misc]
        for part in fields_of(node):
            yield from _nodes(getattr(node, part.name))
