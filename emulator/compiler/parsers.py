"""Parser states and the deparser as functions of the generated module."""

from emulator.compiler.expressions import ExpressionCompiler, constant, word
from emulator.compiler.functions import Function
from emulator.compiler.layout import Json, Layout, UnsupportedError
from emulator.compiler.wire import bits_source, emit_source, extract_source
from emulator.engine.state import OCTETS

STATE_PARAMETERS = "phv, octets, at, end"
PACKET_TOO_SHORT = "PacketTooShort"
DROPPED, TOO_LARGE = -1, -2


def parser_functions(program: Json, layout: Layout) -> list[Function]:
    """One function per parser state, callees first; each returns where the payload starts, in bytes.

    A state runs with ``at`` at the first byte not yet extracted and ``end`` behind the packet's last.
    """
    if len(program["parsers"]) != 1:
        raise UnsupportedError(f"a program of {len(program['parsers'])} parsers")
    parser = program["parsers"][0]
    states = {state["name"]: state for state in parser["parse_states"]}
    errors = dict(program["errors"])
    functions: dict[str, Function] = {}

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise UnsupportedError(f"parser loop through state {name!r}", states[name])
        if name in functions:
            return
        for transition in states[name]["transitions"]:
            if transition["next_state"] is not None:
                visit(transition["next_state"], (*above, name))
        functions[name] = _StateCompiler(states[name], layout, errors).function()

    visit(parser["init_state"], ())
    start = Function("parse", STATE_PARAMETERS, [f"return {_state_name(parser['init_state'])}({STATE_PARAMETERS})"])
    return [*functions.values(), start]


def deparser_function(program: Json, layout: Layout) -> Function:
    """Writes the valid headers in order in front of the payload and returns the number of bytes before the payload.

    ``payload`` is where the payload starts now, ``stored`` the number of bytes of the packet that are stored. Where
    more would have to be stored than a packet keeps, nothing is written and TOO_LARGE returned.
    """
    if program["deparsers"][0].get("primitives"):
        raise UnsupportedError("a deparser with statements other than emit")
    headers = [layout.headers[name] for name in program["deparsers"][0]["order"]]
    lines = ["size = U(0)"]
    for header in headers:
        lines += [f"if {word(header.valid_word)} != U(0):", f"    size += U({header.num_bytes})"]
    lines += [f"if stored - payload + size > U({OCTETS}):", "    return TOO_LARGE"]
    lines += ["if size != payload:", "    move(octets, at + payload, at + size, stored - payload)"]
    for header in headers:
        lines.append(f"if {word(header.valid_word)} != U(0):")
        lines += [f"    {line}" for line in emit_source(header)]
        lines.append(f"    at += U({header.num_bytes})")
    return Function("deparse", "phv, octets, at, payload, stored", [*lines, "return np.int64(size)"])


def longest_parse_bytes(program: Json, layout: Layout) -> int:
    """No parser path reads further than this; one that skips bytes may read all that a packet keeps.

    Raises UnsupportedError where headers alone are longer than that.
    """
    parser = program["parsers"][0]
    states = {state["name"]: state for state in parser["parse_states"]}

    def longest(name: str | None) -> int:
        if name is None:
            return 0
        ahead = _lookahead_bytes(states[name])
        for operation in states[name]["parser_ops"]:
            if operation["op"] == "extract":
                ahead += layout.headers[operation["parameters"][0]["value"]].num_bytes
        return ahead + max(longest(transition["next_state"]) for transition in states[name]["transitions"])

    found = longest(parser["init_state"])
    if found > OCTETS:
        raise UnsupportedError(f"a parser that reads {found} bytes of a packet (a packet keeps {OCTETS})", parser)
    skips = any(operation["op"] == "advance" for state in states.values() for operation in state["parser_ops"])
    return OCTETS if skips else found


def _lookahead_bytes(node: object) -> int:
    """How far any lookahead inside a piece of JSON reaches."""
    if isinstance(node, dict):
        if node.get("type") == "lookahead":
            return (sum(node["value"]) + 7) // 8
        return max((_lookahead_bytes(value) for value in node.values()), default=0)
    if isinstance(node, list):
        return max((_lookahead_bytes(value) for value in node), default=0)
    return 0


def _state_name(name: str) -> str:
    return f"parse_{name.replace('.', '_')}"


class _Lookahead:
    """Source of bits ahead of ``at``; remembers how far a statement looks, so that it can be checked first."""

    def __init__(self) -> None:
        self.num_bytes = 0

    def __call__(self, place: list[int]) -> str:
        bit_offset, bits = place
        self.num_bytes = max(self.num_bytes, (bit_offset + bits + 7) // 8)
        return bits_source(bit_offset, bits)


class _StateCompiler:
    """Compiles one parser state."""

    def __init__(self, state: Json, layout: Layout, errors: dict[str, int]) -> None:
        self._state = state
        self._layout = layout
        self._error = word(layout.field(["standard_metadata", "parser_error"]).word)
        self._too_short = constant(errors[PACKET_TOO_SHORT])

    def function(self) -> Function:
        """The state as a function."""
        lines: list[str] = []
        for operation in self._state["parser_ops"]:
            lookahead = _Lookahead()
            made = self._operation(operation, ExpressionCompiler(self._layout, lookahead))
            lines += [*self._require(lookahead.num_bytes), *made]
        lookahead = _Lookahead()
        made = _transitions(self._state, self._layout, ExpressionCompiler(self._layout, lookahead))
        lines += [*self._require(lookahead.num_bytes), *made]
        return Function(_state_name(self._state["name"]), STATE_PARAMETERS, lines)

    def _operation(self, operation: Json, expressions: ExpressionCompiler) -> list[str]:
        parameters = operation["parameters"]
        match operation["op"]:
            case "extract" if parameters[0]["type"] == "regular":
                header = self._layout.headers[parameters[0]["value"]]
                return [*self._require(header.num_bytes), *extract_source(header), f"at += U({header.num_bytes})"]
            case "set":
                field = self._layout.field(parameters[0]["value"])
                return [f"{word(field.word)} = {expressions.value(parameters[1])} & {constant(field.mask)}"]
            case "verify":
                failed = f"if not {expressions.value(parameters[0])}:"
                return [failed, f"    {self._error} = {expressions.value(parameters[1])}", "    return at"]
            case "advance":
                lines = [f"ahead = {expressions.value(parameters[0])} >> U(3)"]
                return [*lines, *self._require("ahead"), "at += ahead"]
        raise UnsupportedError(f"parser operation {operation['op']!r} in state {self._state['name']!r}", operation)

    def _require(self, num_bytes: int | str) -> list[str]:
        """End the parser with an error where the packet is too short."""
        if num_bytes == 0:
            return []
        needed = num_bytes if isinstance(num_bytes, str) else constant(num_bytes)
        return [f"if at + {needed} > end:", f"    {self._error} = {self._too_short}", "    return at"]


def _transitions(state: Json, layout: Layout, compiler: ExpressionCompiler) -> list[str]:
    lines = [f"key_{number} = {compiler.value(key)}" for number, key in enumerate(state["transition_key"])]
    widths = [_key_bytes(key, layout) for key in state["transition_key"]]
    for transition in state["transitions"]:
        following = transition["next_state"]
        goto = "return at" if following is None else f"return {_state_name(following)}({STATE_PARAMETERS})"
        match transition["type"]:
            case "default":
                return [*lines, goto]
            case "hexstr":
                values = _split(transition["value"], widths)
                masks = _split(transition["mask"], widths) if transition["mask"] else [None] * len(widths)
                tests = [
                    f"key_{number} == {constant(value)}"
                    if mask is None
                    else f"key_{number} & {constant(mask)} == {constant(value & mask)}"
                    for number, (value, mask) in enumerate(zip(values, masks, strict=True))
                ]
                lines += [f"if {' and '.join(tests)}:", f"    {goto}"]
            case other:
                raise UnsupportedError(f"transition of type {other!r} in state {state['name']!r}", transition)
    raise UnsupportedError(f"parser state {state['name']!r} without a default transition", state)


def _key_bytes(key: Json, layout: Layout) -> int:
    match key["type"]:
        case "field":
            return (layout.field(key["value"]).bits + 7) // 8
        case "lookahead":
            return int(key["value"][1] + 7) // 8
    raise UnsupportedError(f"transition key of type {key['type']!r}", key)


def _split(hexadecimal: str, widths: list[int]) -> list[int]:
    """Cut a transition's value into its fields, which stand padded to whole bytes."""
    whole, parts = int(hexadecimal, 16), []
    for width in reversed(widths):
        parts.append(whole & (1 << 8 * width) - 1)
        whole >>= 8 * width
    return parts[::-1]
