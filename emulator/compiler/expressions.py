"""Compiler of BMv2 JSON expressions to Python source over unsigned 64-bit words.

Integers of the JSON have no width. The source computes their value modulo 2^(64 N), where N is the number of words that
the context keeps. If an operation depends on more than the low bits of an operand, N is the number of words that the
operand can fill. It is almost always one.
"""

from collections.abc import Callable
from dataclasses import dataclass

from emulator.compiler.layout import Field, Header, Json, Layout, UnsupportedError
from emulator.compiler.ranges import BOOLEAN, WORD, Range, range_after, signed_range, unsigned_range
from emulator.compiler.references import Candidates, References, chosen, unwrapped
from emulator.compiler.wide import call, constant_words, resized

_MODULAR = {"+": "add", "-": "subtract", "*": "multiply", "&": "and", "|": "or", "^": "xor"}
_COMPARISON = {"==", "!=", "<", "<=", ">", ">="}
_LOGICAL = {"and": "and", "or": "or", "==b": "==", "!=b": "!="}
_CASTS = {"two_comp_mod": signed_range, "sat_cast": signed_range, "usat_cast": unsigned_range}
_ARITHMETIC = _MODULAR.keys() | {"<<", ">>", "/", "%"}
_BOOLEAN = _COMPARISON | _LOGICAL.keys() | {"not", "d2b", "valid", "valid_union"}

LookaheadSource = Callable[[int, int], list[str]]
"""Returns the words of so many bits at an offset behind the parsed bytes, lowest first."""


def constant(value: int) -> str:
    """Return an unsigned constant of one word."""
    return constant_words(value, 1)


def word(index: int) -> str:
    """Return an expression for a word of the packet being processed."""
    return f"phv[{index}]"


def tuple_of(words: list[str]) -> str:
    """Return a value made of these words."""
    return f"({', '.join(words)})" if len(words) > 1 else words[0]


def assigned(field: Field, source: str) -> list[str]:
    """Return the lines that assign a value of as many words as the field has, without the bits that do not fit."""
    words = [word(index) for index in field.words]
    if len(words) == 1:
        return [f"{words[0]} = {source} & {constant(field.mask)}"]
    lines = [f"value_{len(words)} = {source}"]
    for number, target in enumerate(words):
        mask = field.mask >> 64 * number & WORD.high
        lines.append(f"{target} = value_{len(words)}[{number}]" + (f" & {constant(mask)}" if mask != WORD.high else ""))
    return lines


@dataclass(frozen=True)
class ExpressionCompiler:
    """Compiles JSON values.

    ``lookahead`` reads packet bits in a parser state; ``parameters`` are the widths of the arguments in an action.
    """

    layout: Layout
    lookahead: LookaheadSource | None = None
    parameters: tuple[int, ...] = ()

    @property
    def references(self) -> References:
        """Resolver of the names in nodes."""
        return References(self.layout, self.place)

    def value(self, node: Json) -> str:
        """Return an expression for a boolean, or for the low 64 bits of a number."""
        return self.boolean(node) if self.is_boolean(node) else self.words(node, 1)

    def index(self, node: Json) -> str:
        """Return an expression for a non-negative number; larger values become the largest that fits in a word."""
        found = self.range_of(node)
        if found.signed:
            raise UnsupportedError("an index, length or number of bits that may be negative", node)
        if found.num_words == 1:
            return self.words(node, 1)
        return call("index", found.num_words, self.words(node, found.num_words))

    def place(self, node: Json) -> str:
        """Return an expression for an index into a stack or array; a negative one is behind the end."""
        found = self.range_of(node)
        if not found.signed:
            return self.index(node)
        words = self.words(node, found.num_words)
        return words if found.num_words == 1 else call("index", found.num_words, words)

    def is_boolean(self, node: Json) -> bool:
        """Return whether a node is a condition and not a number."""
        node = unwrapped(node)
        if node["type"] != "expression":
            return bool(node["type"] == "bool")
        operation = node["value"]
        if operation["op"] == "?":
            return self.is_boolean(operation["left"])
        return operation["op"] in _BOOLEAN

    # ---- conditions -------------------------------------------------------------------------------------------------

    def boolean(self, node: Json) -> str:
        """Return an expression for a condition."""
        node = unwrapped(node)
        if node["type"] == "bool":
            return "True" if node["value"] else "False"
        if not self.is_boolean(node):
            self.range_of(node)
            raise UnsupportedError(f"a number where a condition is expected ({node['type']!r})", node)
        operands = node["value"]
        operation, left, right = operands["op"], operands["left"], operands["right"]
        if operation in _COMPARISON:
            return self._comparison(operation, left, right)
        if operation in _LOGICAL:
            return f"({self.boolean(left)} {_LOGICAL[operation]} {self.boolean(right)})"
        match operation:
            case "not":
                return f"(not {self.boolean(right)})"
            case "d2b":
                return self._comparison("!=", right, {"type": "hexstr", "value": "0x0"})
            case "?":
                return f"({self.boolean(left)} if {self.boolean(operands['cond'])} else {self.boolean(right)})"
            case "valid_union":
                return f"({' or '.join(_is_valid(header) for header in self.layout.unions[right['value']])})"
            case _:
                candidates = self.references.headers(right)
                return chosen(((when, f"({_is_valid(header)})") for when, header in candidates), "False")

    def _comparison(self, operation: str, left: Json, right: Json) -> str:
        variable = [self.references.variable(node) for node in (left, right)]
        if operation in ("==", "!=") and variable[0] and variable[1]:
            equal = _are_equal(variable[0], variable[1], left)
            return equal if operation == "==" else f"(not {equal})"
        joined = self.range_of(left).joined(self.range_of(right))
        count = joined.num_words
        one, other = self.words(left, count), self.words(right, count)
        if count == 1:
            if joined.signed and operation not in ("==", "!="):
                one, other = f"np.int64({one})", f"np.int64({other})"
            return f"({one} {operation} {other})"
        if operation in ("==", "!="):
            equal = call("equal", count, one, other)
            return equal if operation == "==" else f"(not {equal})"
        less = "less_signed" if joined.signed else "less"
        if operation in (">", "<="):
            one, other = other, one
        source = call(less, count, one, other)
        return source if operation in ("<", ">") else f"(not {source})"

    # ---- numbers ----------------------------------------------------------------------------------------------------

    def range_of(self, node: Json) -> Range:
        """Return the range of a number's possible values."""
        node = unwrapped(node)
        kind, value = node["type"], node["value"]
        if self.is_boolean(node):
            return BOOLEAN
        fields = self.references.fields(node)
        if fields is not None:
            _, field = fields[0]
            if field.most_bytes:
                raise UnsupportedError(f"the variable-length field {field.name} as a number", node)
            return signed_range(field.bits) if field.signed else unsigned_range(field.bits)
        match kind:
            case "hexstr":
                return Range(int(value, 16), int(value, 16))
            case "runtime_data" | "local":
                return unsigned_range(self.parameters[value])
            case "lookahead":
                return unsigned_range(value[1])
            case "expression":
                return self._range_after(value)
        raise UnsupportedError(f"operand of type {kind!r}", node)

    def _range_after(self, operands: Json) -> Range:
        operation, left, right = operands["op"], operands["left"], operands["right"]
        match operation:
            case "~":
                inverted = self.range_of(right)
                return Range(~inverted.high, ~inverted.low)
            case "b2d":
                return BOOLEAN
            case "?":
                return self.range_of(left).joined(self.range_of(right))
            case "last_stack_index" | "size_stack":
                return WORD
        if operation in _CASTS:
            inside, limits = self.range_of(left), _CASTS[operation](_constant_of(right))
            if operation == "two_comp_mod":
                return inside if inside.within(limits) else limits
            return inside.clamped(limits)
        if operation not in _ARITHMETIC:
            raise UnsupportedError(f"operation {operation!r}", operands)
        return range_after(operation, self.range_of(left), self.range_of(right))

    def words(self, node: Json, count: int) -> str:
        """Return an expression for a number modulo 2^(64 ``count``): one word, or a tuple, lowest word first."""
        node = unwrapped(node)
        kind, value = node["type"], node["value"]
        if self.is_boolean(node):
            return resized(f"(U(1) if {self.boolean(node)} else U(0))", 1, count)
        fields = self.references.fields(node)
        if fields is not None:
            self.range_of(node)
            return self._field(fields, count)
        match kind:
            case "hexstr":
                return constant_words(int(value, 16), count)
            case "runtime_data" | "local":
                start = first_words(self.parameters)[value]
                size = unsigned_range(self.parameters[value]).num_words
                words = [f"memory[data + U({start + number})]" for number in range(size)]
                return resized(tuple_of(words), size, count)
            case "lookahead" if self.lookahead:
                words = self.lookahead(*value)
                return resized(tuple_of(words), len(words), count)
            case "expression":
                return self._operation(value, count)
        raise UnsupportedError(f"operand of type {kind!r}", node)

    def _field(self, fields: Candidates[Field], count: int) -> str:
        _, field = fields[0]
        size = len(field.words)
        source = chosen(
            ((when, tuple_of([word(index) for index in found.words])) for when, found in fields),
            constant_words(0, size),
        )
        if not field.signed:
            return resized(source, size, count)
        return self._with_sign(resized(source, size, count), field.bits, count)

    def _with_sign(self, source: str, bits: int, count: int) -> str:
        """Sign-extend a value whose bit ``bits`` - 1 is the sign and whose higher bits are 0."""
        if bits >= 64 * count:
            return source
        sign = constant_words(1 << bits - 1, count)
        if count == 1:
            return f"(({source} ^ {sign}) - {sign})"
        return call("subtract", count, call("xor", count, source, sign), sign)

    def _operation(self, operands: Json, count: int) -> str:
        operation, left, right = operands["op"], operands["left"], operands["right"]
        if operation in _MODULAR:
            one, other = self.words(left, count), self.words(right, count)
            return f"({one} {operation} {other})" if count == 1 else call(_MODULAR[operation], count, one, other)
        if operation in ("/", "%"):
            return self._division(operands, count)
        match operation:
            case "~":
                inverted = self.words(right, count)
                return f"(~{inverted})" if count == 1 else call("invert", count, inverted)
            case "<<":
                shifted, bits = self.words(left, count), self.index(right)
                return f"shift_left({shifted}, {bits})" if count == 1 else call("shift_left", count, shifted, bits)
            case ">>":
                return self._shift_right(left, self.index(right), count)
            case "b2d":
                return resized(f"(U(1) if {self.boolean(right)} else U(0))", 1, count)
            case "?":
                condition = self.boolean(operands["cond"])
                return f"({self.words(left, count)} if {condition} else {self.words(right, count)})"
            case "two_comp_mod":
                width = _constant_of(right)
                if self.range_of(left).within(signed_range(width)):
                    return self.words(left, count)
                kept = self.words({"type": "expression", "value": _masked(left, width)}, count)
                return self._with_sign(kept, width, count)
            case "usat_cast" | "sat_cast":
                return self._saturated(left, _CASTS[operation](_constant_of(right)), count)
            case "last_stack_index":
                return resized(f"({word(self.layout.stacks[right['value']].next_word)} - U(1))", 1, count)
            case "size_stack":
                return resized(word(self.layout.stacks[right["value"]].next_word), 1, count)
        raise UnsupportedError(f"operation {operation!r}", operands)

    def _shift_right(self, left: Json, bits: str, count: int) -> str:
        found = self.range_of(left)
        inside = max(found.num_words, count if found.signed else 1)
        shifted = self.words(left, inside)
        if inside == 1:
            name = "shift_right_signed" if found.signed else "shift_right"
            source = f"{name}({shifted}, {bits})"
        else:
            source = call("shift_right_signed" if found.signed else "shift_right", inside, shifted, bits)
        return resized(source, inside, count)

    def _saturated(self, node: Json, limits: Range, count: int) -> str:
        """Return an expression for the value, or the nearest one within limits."""
        inner, found = unwrapped(node), self.range_of(node)
        if found.within(limits):
            return self.words(node, count)
        if not limits.signed and inner["type"] == "expression" and inner["value"]["op"] == "-" and count == 1:
            operands = [self.range_of(inner["value"][side]) for side in ("left", "right")]
            if found.high <= limits.high and all(operand.within(WORD) for operand in operands):
                sources = [self.words(inner["value"][side], 1) for side in ("left", "right")]
                return f"subtract_saturating({', '.join(sources)})"
        both = found.joined(limits)
        inside = both.num_words
        if inside == 1 and not both.signed:
            return resized(f"min({self.words(node, 1)}, {constant(limits.high)})", 1, count)
        ends = [constant_words(end, inside) for end in (limits.low, limits.high)]
        value = self.words(node, inside)
        if inside == 1:
            source = f"clamp_signed({value}, {', '.join(ends)})"
        else:
            source = call("clamp_signed" if both.signed else "clamp", inside, value, *ends)
        return resized(source, inside, count, signed=limits.signed)

    def _division(self, operands: Json, count: int) -> str:
        """Return an expression for a division; by 0 the result is 0, where BMv2 crashes."""
        left, right = self.range_of(operands["left"]), self.range_of(operands["right"])
        if not (left.within(WORD) and right.within(WORD)):
            raise UnsupportedError(f"operation {operands['op']!r} on negative values or more than 64 bits", operands)
        name = "divided" if operands["op"] == "/" else "remainder"
        source = f"{name}({self.words(operands['left'], 1)}, {self.words(operands['right'], 1)})"
        return resized(source, 1, count)


def variable_words(one: Header, other: Header, node: Json) -> list[tuple[int, int]]:
    """Return the words of two variable-length fields of one type, pair by pair, their lengths first."""
    assert one.variable is not None
    assert other.variable is not None
    if one.variable.most_bytes != other.variable.most_bytes:
        raise UnsupportedError(f"{one.variable.name} and {other.variable.name} of different lengths", node)
    words = zip(one.variable.words, other.variable.words, strict=True)
    return [(one.length_word, other.length_word), *words]


def _are_equal(one: Header, other: Header, node: Json) -> str:
    tests = [f"{word(left)} == {word(right)}" for left, right in variable_words(one, other, node)]
    return f"({' and '.join(tests)})"


def first_words(parameters: tuple[int, ...]) -> list[int]:
    """Return the first word of each argument of an action, and the end of the last one."""
    starts = [0]
    for bits in parameters:
        starts.append(starts[-1] + unsigned_range(bits).num_words)
    return starts


def _is_valid(header: Header) -> str:
    return f"{word(header.valid_word)} != U(0)"


def _masked(node: Json, bits: int) -> Json:
    return {"op": "&", "left": node, "right": {"type": "hexstr", "value": hex((1 << bits) - 1)}}


def _constant_of(node: Json) -> int:
    node = unwrapped(node)
    if node["type"] != "hexstr":
        raise UnsupportedError("a cast to a width that is not constant", node)
    return int(node["value"], 16)
