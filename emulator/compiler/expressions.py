"""Expressions of BMv2 JSON as Python source over unsigned 64-bit words.

p4c masks the result of every operation to its width, so arithmetic modulo 2^64 is exact for fields of up to 64 bits.
"""

from collections.abc import Callable
from dataclasses import dataclass

from emulator.compiler.layout import Json, Layout, UnsupportedError

_BINARY = {"+": "+", "-": "-", "*": "*", "&": "&", "|": "|", "^": "^"}
_COMPARISON = {"==": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_LOGICAL = {"and": "and", "or": "or"}
_SHIFT = {"<<": "shift_left", ">>": "shift_right"}

LookaheadSource = Callable[[list[int]], str]


def constant(value: int) -> str:
    """Source of an unsigned constant."""
    return f"U({value & (1 << 64) - 1:#x})"


def word(index: int) -> str:
    """Source of a word of the packet that is being processed."""
    return f"phv[{index}]"


@dataclass(frozen=True)
class ExpressionCompiler:
    """Turns JSON values into source. ``lookahead`` reads packet bits where the context is a parser state."""

    layout: Layout
    lookahead: LookaheadSource | None = None

    def value(self, node: Json) -> str:
        """Source of a data value (or of a boolean, where the operation gives one)."""
        kind, value = node["type"], node["value"]
        match kind:
            case "field":
                return word(self.layout.field(value).word)
            case "hexstr":
                return constant(int(value, 16))
            case "bool":
                return "True" if value else "False"
            case "runtime_data" | "local":
                return f"memory[data + U({value})]"
            case "lookahead" if self.lookahead:
                return self.lookahead(value)
            case "expression":
                return self._expression(value) if "op" in value else self.value(value)
        raise UnsupportedError(f"operand of type {kind!r}", node)

    def _expression(self, node: Json) -> str:
        operation = node["op"]
        if operation in _BINARY:
            return f"({self._left(node)} {_BINARY[operation]} {self._right(node)})"
        if operation in _COMPARISON:
            return f"({self._left(node)} {_COMPARISON[operation]} {self._right(node)})"
        if operation in _LOGICAL:
            return f"({self._left(node)} {_LOGICAL[operation]} {self._right(node)})"
        if operation in _SHIFT:
            return f"{_SHIFT[operation]}({self._left(node)}, {self._right(node)})"
        match operation:
            case "~":
                return f"(~{self._right(node)})"
            case "not":
                return f"(not {self._right(node)})"
            case "d2b":
                return f"({self._right(node)} != U(0))"
            case "b2d":
                return f"(U(1) if {self._right(node)} else U(0))"
            case "usat_cast" if node["right"]["type"] == "hexstr":
                return self._saturated(node["left"], int(node["right"]["value"], 16))
            case "?":
                return f"({self._left(node)} if {self.value(node['cond'])} else {self._right(node)})"
            case "valid" if node["right"]["type"] == "header":
                return f"({word(self.layout.headers[node['right']['value']].valid_word)} != U(0))"
        raise UnsupportedError(f"operation {operation!r}", node)

    def _saturated(self, node: Json, bits: int) -> str:
        """The value, or the nearest that an unsigned field of so many bits can hold; a difference may be negative."""
        inner = node["value"]
        while isinstance(inner, dict) and "op" not in inner:
            inner = inner["value"]
        if isinstance(inner, dict) and inner["op"] == "-":
            return f"subtract_saturating({self._left(inner)}, {self._right(inner)})"
        return f"min({self.value(node)}, {constant((1 << bits) - 1)})"

    def _left(self, node: Json) -> str:
        return self.value(node["left"])

    def _right(self, node: Json) -> str:
        return self.value(node["right"])
