"""References of BMv2 JSON to headers and fields that depend on the packet: elements of a header stack."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from emulator.compiler.layout import Field, Header, Json, Layout, Stack, UnsupportedError

_Thing = TypeVar("_Thing", Header, Field)

Candidates = list[tuple[str | None, _Thing]]
"""Candidates, each with the condition under which it is meant; a single one needs no condition."""


def unwrapped(node: Json) -> Json:
    """Return the node inside expressions that have no operation of their own."""
    while node["type"] == "expression" and "op" not in node["value"]:
        node = node["value"]
    return node


def last_of(stack: Stack) -> Candidates[Header]:
    """Return the element that the parser extracted last."""
    return [(f"phv[{stack.next_word}] == U({number})", header) for number, header in enumerate(stack.headers, start=1)]


class References:
    """Resolves references; ``index`` compiles an index into a stack."""

    def __init__(self, layout: Layout, index: Callable[[Json], str]) -> None:
        self._layout = layout
        self._index = index

    def headers(self, node: Json) -> Candidates[Header]:
        """Return the header that a node names; an index out of range means none."""
        node = unwrapped(node)
        if node["type"] == "header":
            return [(None, self._layout.headers[node["value"]])]
        if node["type"] == "expression" and node["value"]["op"] in ("dereference_header_stack", "dereference_stack"):
            operands = node["value"]
            stack = self._layout.stacks[operands["left"]["value"]]
            index = self._index(operands["right"])
            return [(f"{index} == U({number})", header) for number, header in enumerate(stack.headers)]
        raise UnsupportedError(f"header named by {node['value'].get('op', node['type'])!r}", node)

    def fields(self, node: Json) -> Candidates[Field] | None:
        """Return the field that a node names; None if it names no field."""
        node = unwrapped(node)
        match node["type"]:
            case "field":
                header, name = node["value"]
                if isinstance(header, dict):
                    # p4c refers to the validity of an element in this way; BMv2 cannot load it.
                    candidates = self.headers({"type": "expression", "value": header})
                    return [(when, self._layout.field([found.name, name])) for when, found in candidates]
                return [(None, self._layout.field(node["value"]))]
            case "stack_field":
                stack, name = node["value"]
                return [(when, header.fields[name]) for when, header in last_of(self._layout.stacks[stack])]
            case "expression" if node["value"]["op"] == "access_field":
                operands = node["value"]
                return [
                    (when, list(header.fields.values())[operands["right"]])
                    for when, header in self.headers(operands["left"])
                ]
        return None

    def variable(self, node: Json) -> Header | None:
        """Return the header whose variable-length field a node names; None if it names none."""
        node = unwrapped(node)
        if node["type"] != "field" or isinstance(node["value"][0], dict) or node["value"][1] == "$valid$":
            return None
        header = self._layout.headers[node["value"][0]]
        return header if header.fields[node["value"][1]].most_bytes else None

    def targets(self, node: Json) -> Candidates[Field]:
        """Return the field that a node names, for writing. Raises UnsupportedError if it names none."""
        fields = self.fields(node)
        if fields is None:
            raise UnsupportedError(f"assignment to a {unwrapped(node)['type']!r}", node)
        if fields[0][1].most_bytes:
            raise UnsupportedError(f"a number for the variable-length field {fields[0][1].name}", node)
        return fields


def chosen(parts: Iterator[tuple[str | None, str]], otherwise: str) -> str:
    """Return an expression for the part whose condition holds."""
    source = otherwise
    for when, part in reversed(list(parts)):
        source = f"({part} if {when} else {source})" if when else part
    return source


def branches(cases: list[tuple[str | None, list[str]]]) -> list[str]:
    """Return the lines of the first case whose condition holds; later conditions are not evaluated."""
    lines: list[str] = []
    for when, body in cases:
        if when is None:
            return body
        lines += [f"{'elif' if lines else 'if'} {when}:", *(f"    {line}" for line in body or ["pass"])]
    return lines
