"""Parser states and the deparser as functions of the generated module."""

from emulator.compiler.expressions import ExpressionCompiler, constant, word
from emulator.compiler.functions import Function
from emulator.compiler.layout import Json, Layout, UnsupportedError
from emulator.compiler.wire import bits_source, emit_source, extract_source

STATE_PARAMETERS = "phv, p, octets, at, end"
NO_ERROR, PACKET_TOO_SHORT = "NoError", "PacketTooShort"


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
        functions[name] = _state_function(states[name], layout, errors)

    visit(parser["init_state"], ())
    start = Function("parse", STATE_PARAMETERS, [f"return {_state_name(parser['init_state'])}({STATE_PARAMETERS})"])
    return [*functions.values(), start]


def deparser_function(program: Json, layout: Layout) -> Function:
    """Writes the valid headers in order in front of the payload and returns the number of bytes before the payload.

    ``payload`` is where the payload starts now, ``stored`` the number of bytes of the packet that are stored.
    """
    if program["deparsers"][0].get("primitives"):
        raise UnsupportedError("a deparser with statements other than emit")
    headers = [layout.headers[name] for name in program["deparsers"][0]["order"]]
    lines = ["size = 0"]
    for header in headers:
        lines += [f"if {word(header.valid_word)} != U(0):", f"    size += {header.num_bytes}"]
    lines += ["if size != payload:", "    move(octets, at + payload, at + size, stored - payload)"]
    for header in headers:
        lines.append(f"if {word(header.valid_word)} != U(0):")
        lines += [f"    {line}" for line in emit_source(header)]
        lines.append(f"    at += {header.num_bytes}")
    return Function("deparse", "phv, p, octets, at, payload, stored", [*lines, "return size"])


def longest_parse_bytes(program: Json, layout: Layout) -> int:
    """No parser path extracts more bytes than this."""
    parser = program["parsers"][0]
    states = {state["name"]: state for state in parser["parse_states"]}

    def longest(name: str | None) -> int:
        if name is None:
            return 0
        extracted = sum(
            layout.headers[operation["parameters"][0]["value"]].num_bytes
            for operation in states[name]["parser_ops"]
            if operation["op"] == "extract"
        )
        return extracted + max(longest(transition["next_state"]) for transition in states[name]["transitions"])

    return longest(parser["init_state"])


def _state_name(name: str) -> str:
    return f"parse_{name.replace('.', '_')}"


def _state_function(state: Json, layout: Layout, errors: dict[str, int]) -> Function:
    compiler = ExpressionCompiler(layout, lambda place: bits_source(*place))
    error_word = word(layout.field(["standard_metadata", "parser_error"]).word)
    lines: list[str] = []
    for operation in state["parser_ops"]:
        target = operation["parameters"][0]
        match operation["op"]:
            case "extract" if target["type"] == "regular":
                header = layout.headers[target["value"]]
                lines += [
                    f"if at + {header.num_bytes} > end:",
                    f"    {error_word} = {constant(errors[PACKET_TOO_SHORT])}",
                    "    return at",
                    *extract_source(header),
                    f"at += {header.num_bytes}",
                ]
            case "set":
                field = layout.field(target["value"])
                lines.append(
                    f"{word(field.word)} = {compiler.value(operation['parameters'][1])} & {constant(field.mask)}"
                )
            case other:
                raise UnsupportedError(f"parser operation {other!r} in state {state['name']!r}", operation)
    lines += _transitions(state, layout, compiler)
    return Function(_state_name(state["name"]), STATE_PARAMETERS, lines)


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
