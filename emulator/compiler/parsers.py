"""Compiler of parser states to functions of the generated module.

Without loops, each state is a function that calls the next one. With a loop, one function contains all states and
switches between them. Every iteration of a loop extracts something, so every packet ends it.
"""

from collections.abc import Callable, Sequence

from emulator.compiler.actions import ActionCompiler
from emulator.compiler.expressions import ExpressionCompiler, assigned, constant, tuple_of, word
from emulator.compiler.functions import Function, function_name
from emulator.compiler.headers import HeaderCompiler
from emulator.compiler.layout import WORD_BITS, Header, Json, Layout, Stack, UnsupportedError, part_of
from emulator.compiler.references import branches
from emulator.compiler.tables import Resources
from emulator.compiler.wide import call
from emulator.compiler.wire import bits_source, extract_source, extract_variable_source
from emulator.engine.state import OCTETS

PACKET_TOO_SHORT = "PacketTooShort"
STACK_OUT_OF_BOUNDS = "StackOutOfBounds"
HEADER_TOO_SHORT = "HeaderTooShort"
INVALID_ARGUMENT = "ParserInvalidArgument"

_EXTRACTS = ("extract", "extract_VL")

Goto = Callable[[str | None], list[str]]
"""Returns the lines that continue with a state, or end the parser."""


def parser_functions(program: Json, layout: Layout, actions: ActionCompiler, resources: Resources) -> list[Function]:
    """Return one function per parser state, callees first, or one for all; each returns the payload's offset in bytes.

    In a state, ``at`` is the first byte not yet extracted and ``end`` the end of the packet.
    """
    if len(program["parsers"]) != 1:
        raise UnsupportedError(f"a program of {len(program['parsers'])} parsers")
    parser = program["parsers"][0]
    states = {state["name"]: state for state in parser["parse_states"]}
    errors = dict(program["errors"])
    order, has_loop = _callees_first(parser["init_state"], states, layout)
    numbers = {name: number for number, name in enumerate(reversed(order))}
    names = {name: function_name("parse", number, name) for name, number in numbers.items()}

    def goto(following: str | None) -> list[str]:
        if following is None:
            return ["return at"]
        if has_loop:
            return [f"step = {numbers[following]}", "continue"]
        return [f"return {names[following]}({layout.state_parameters})"]

    bodies = {name: _StateCompiler(states[name], layout, actions, resources, errors, goto).lines() for name in order}
    if not has_loop:
        functions = [Function(names[name], layout.state_parameters, body) for name, body in bodies.items()]
        return [*functions, Function("parse", layout.state_parameters, goto(parser["init_state"]))]
    lines = [f"step = {numbers[parser['init_state']]}", "while True:"]
    for name, number in numbers.items():
        lines += [f"    if step == {number}:", *(f"        {line}" for line in bodies[name])]
    return [Function("parse", layout.state_parameters, lines)]


def longest_parse_bytes(program: Json, layout: Layout) -> int:
    """Return the number of bytes that a parser may read; all that a packet stores if it has loops or skips bytes.

    Raises UnsupportedError if the headers alone are longer than that.
    """
    parser = program["parsers"][0]
    states = {state["name"]: state for state in parser["parse_states"]}
    _, has_loop = _callees_first(parser["init_state"], states, layout)
    if has_loop:
        return OCTETS

    def longest(name: str | None) -> int:
        if name is None:
            return 0
        ahead = _lookahead_bytes(states[name])
        for operation in states[name]["parser_ops"]:
            if operation["op"] in _EXTRACTS:
                header = _extracted(operation, layout)[0]
                ahead += header.num_bytes + (header.variable.most_bytes if header.variable else 0)
        return ahead + max((longest(transition["next_state"]) for transition in states[name]["transitions"]), default=0)

    found = longest(parser["init_state"])
    if found > OCTETS:
        raise UnsupportedError(f"a parser that reads {found} bytes of a packet (a packet keeps {OCTETS})", parser)
    skips = any(operation["op"] == "advance" for state in states.values() for operation in state["parser_ops"])
    return OCTETS if skips else found


def _callees_first(initial: str, states: dict[str, Json], layout: Layout) -> tuple[list[str], bool]:
    """Return the names of the reachable states, and whether they form a loop.

    Without loops, each state comes after its successors. Raises UnsupportedError for a loop that may extract nothing.
    """
    finished: list[str] = []
    loops: list[list[str]] = []

    def visit(name: str, above: list[str]) -> None:
        if name in above:
            loops.append(above[above.index(name) :])
            return
        if name in finished:
            return
        for transition in states[name]["transitions"]:
            if transition["next_state"] is not None:
                visit(transition["next_state"], [*above, name])
        finished.append(name)

    visit(initial, [])
    _require_progress({name: states[name] for name in finished}, layout)
    return finished, bool(loops)


def _require_progress(states: dict[str, Json], layout: Layout) -> None:
    """Raise UnsupportedError for a loop of states that extract no byte."""
    idle = {name for name, state in states.items() if not _extracts(state, layout)}
    ahead = {name: {t["next_state"] for t in states[name]["transitions"]} & idle for name in idle}
    while leaves := {name for name, following in ahead.items() if not following & ahead.keys()}:
        ahead = {name: following for name, following in ahead.items() if name not in leaves}
    if ahead:
        name = next(name for name in states if name in ahead)
        raise UnsupportedError(f"a parser loop that extracts nothing, through state {name!r}", states[name])


def _extracts(state: Json, layout: Layout) -> bool:
    with part_of(state, _place(state)):
        extracted = [_extracted(operation, layout) for operation in state["parser_ops"] if operation["op"] in _EXTRACTS]
    return any(header.num_bytes for header, _ in extracted)


def _place(state: Json) -> str:
    return f"parser state {state['name']!r}"


def _lookahead_bytes(node: object) -> int:
    """Return how many bytes ahead the lookaheads in a piece of JSON read."""
    if isinstance(node, dict):
        if node.get("type") == "lookahead":
            return (sum(node["value"]) + 7) // 8
        return max((_lookahead_bytes(value) for value in node.values()), default=0)
    if isinstance(node, list):
        return max((_lookahead_bytes(value) for value in node), default=0)
    return 0


def _stacks_whose_last_is_read(node: object) -> set[str]:
    if isinstance(node, dict):
        if node.get("type") == "stack_field":
            return {node["value"][0]}
        return set().union(*map(_stacks_whose_last_is_read, node.values()))
    if isinstance(node, list):
        return set().union(*map(_stacks_whose_last_is_read, node))
    return set()


def _extracted(operation: Json, layout: Layout) -> tuple[Header, Stack | None]:
    """Return the header that is extracted, or one of the stack that is extracted into."""
    target = operation["parameters"][0]
    match target["type"]:
        case "regular":
            return layout.headers[target["value"]], None
        case "stack":
            stack = layout.stacks[target["value"]]
            return stack.headers[0], stack
        case "union_stack":
            stack = layout.union_stacks[tuple(target["value"])]
            return stack.headers[0], stack
    raise UnsupportedError(f"extraction into a {target['type']!r}", operation)


class _Lookahead:
    """Compiles reads of bits ahead of ``at``; records how far a statement reads, so that this can be checked first."""

    def __init__(self) -> None:
        self.num_bytes = 0

    def __call__(self, bit_offset: int, bits: int) -> list[str]:
        self.num_bytes = max(self.num_bytes, (bit_offset + bits + 7) // 8)
        sources = bits_source(bit_offset, bits)
        # A single byte is not yet a word. What uses a source may bind tighter than what is in it.
        return [f"({source})" if 8 < bits <= WORD_BITS else f"U({source})" for source in sources]


class _StateCompiler:
    """Compiles one parser state; ``goto`` returns the lines that continue with another state or end the parser."""

    def __init__(
        self,
        state: Json,
        layout: Layout,
        actions: ActionCompiler,
        resources: Resources,
        errors: dict[str, int],
        goto: Goto,
    ) -> None:
        self._state = state
        self._layout = layout
        self._actions = actions
        self._resources = resources
        self._errors = errors
        self._goto = goto
        self._headers = HeaderCompiler(layout, ExpressionCompiler(layout))

    def lines(self) -> list[str]:
        """Return the state's statements."""
        lines: list[str] = []
        where = _place(self._state)
        for operation in self._state["parser_ops"]:
            lookahead = _Lookahead()
            with part_of(operation, where):
                made = self._operation(operation, ExpressionCompiler(self._layout, lookahead))
            lines += [*self._require(lookahead.num_bytes), *self._require_last(operation), *made]
        lookahead = _Lookahead()
        with part_of(self._state, where):
            made = self._transitions(ExpressionCompiler(self._layout, lookahead))
        return [*lines, *self._require(lookahead.num_bytes), *self._require_last(self._state["transition_key"]), *made]

    def _operation(self, operation: Json, expressions: ExpressionCompiler) -> list[str]:
        parameters = operation["parameters"]
        match operation["op"]:
            case "extract":
                header, stack = _extracted(operation, self._layout)
                lines = [] if stack is None else self._require_room(stack)
                lines += self._require(header.num_bytes)
                if stack is None:
                    lines += self._extract(header)
                else:
                    following = word(stack.next_word)
                    lines += branches(
                        [(f"{following} == U({n})", self._extract(h)) for n, h in enumerate(stack.headers)]
                    )
                    lines.append(f"{following} += U(1)")
                return [*lines, f"at += U({header.num_bytes})"]
            case "extract_VL":
                return self._extract_variable(operation, expressions.index(parameters[1]))
            case "set":
                fields = expressions.references.targets(parameters[0])
                cases = [(when, assigned(f, expressions.words(parameters[1], len(f.words)))) for when, f in fields]
                return branches(cases)
            case "verify":
                failed = f"if not {expressions.boolean(parameters[0])}:"
                return [failed, *(f"    {line}" for line in self._fail(expressions.words(parameters[1], 1)))]
            case "advance":
                lines = [f"bits = {expressions.index(parameters[0])}"]
                lines += ["if bits & U(7) != U(0):", *self._failing(INVALID_ARGUMENT)]
                lines.append("ahead = bits >> U(3)")
                return [*lines, *self._require("ahead"), "at += ahead"]
            case "primitive":
                [statement] = parameters
                return self._actions.statement(statement)
        raise UnsupportedError(f"parser operation {operation['op']!r}")

    def _extract_variable(self, operation: Json, bits: str) -> list[str]:
        """Extract a header with a field of so many bits, with BMv2's errors in its order."""
        header, stack = _extracted(operation, self._layout)
        if header.variable is None:
            raise UnsupportedError(f"a length for header {header.name!r}, which has no variable-length field")
        lines = [] if stack is None else self._require_room(stack)
        lines += [f"bits = {bits}", "if bits & U(7) != U(0):", *self._failing(INVALID_ARGUMENT), "size = bits >> U(3)"]
        lines += self._require(f"size + {constant(header.num_bytes)}")
        lines += [f"if size > {constant(header.variable.most_bytes)}:", *self._failing(HEADER_TOO_SHORT)]
        if stack is None:
            lines += [*self._extract(header), *extract_variable_source(header, "size")]
        else:
            following = word(stack.next_word)
            cases: list[tuple[str | None, list[str]]] = [
                (f"{following} == U({n})", [*self._extract(h), *extract_variable_source(h, "size")])
                for n, h in enumerate(stack.headers)
            ]
            lines += [*branches(cases), f"{following} += U(1)"]
        return [*lines, f"at += size + {constant(header.num_bytes)}"]

    def _extract(self, header: Header) -> list[str]:
        return [*extract_source(header), *self._headers.valid(header)[1:]]

    def _transitions(self, compiler: ExpressionCompiler) -> list[str]:
        keys = [_without_sign(key, compiler) for key in self._state["transition_key"]]
        counts = [compiler.range_of(key).num_words for key in keys]
        lines = [
            f"key_{number}_{count} = {compiler.words(key, count)}"
            for number, (key, count) in enumerate(zip(keys, counts, strict=True))
        ]
        widths = [_key_bytes(key, self._layout) for key in self._state["transition_key"]]
        for transition in self._state["transitions"]:
            goto = self._goto(transition["next_state"])
            match transition["type"]:
                case "default":
                    return [*lines, *goto]
                case "hexstr":
                    values = _split(transition["value"], widths)
                    masks = _split(transition["mask"], widths) if transition["mask"] else [None] * len(widths)
                    tests = [
                        test
                        for number, (value, mask, count) in enumerate(zip(values, masks, counts, strict=True))
                        for test in _key_tests(number, count, value, mask)
                    ]
                    lines += [f"if {' and '.join(tests)}:", *(f"    {line}" for line in goto)]
                case "parse_vset":
                    mask = transition["mask"]
                    masks = _split(mask, widths) if mask else [None] * len(widths)
                    lines += self._member_lines(transition["value"], counts, masks)
                    lines += ["if is_member:", *(f"    {line}" for line in goto)]
                case other:
                    raise UnsupportedError(f"transition of type {other!r}")
        # As on BMv2, a packet that matches no case is parsed without an error.
        return [*lines, *self._goto(None)]

    def _member_lines(self, name: str, counts: list[int], masks: Sequence[int | None]) -> list[str]:
        """Return the lines that tell whether the key is in a value set."""
        tests, place = [], 0
        for number, (count, mask) in enumerate(zip(counts, masks, strict=True)):
            if mask not in (None, (1 << WORD_BITS * count) - 1):
                raise UnsupportedError(f"value set {name!r} under a mask", self._state)
            key = [f"key_{number}_{count}" + (f"[{position}]" if count > 1 else "") for position in range(count)]
            low, high, kept = (
                [f"memory[member + U({place + part * count + position})]" for position in range(count)]
                for part in range(3)
            )
            masked = [f"({one} & {other})" for one, other in zip(key, kept, strict=True)]
            place += 3 * count
            if count == 1:
                tests += [f"{low[0]} <= {masked[0]}", f"{masked[0]} <= {high[0]}"]
            else:
                ends = [(masked, low), (high, masked)]
                tests += [f"not {call('less', count, tuple_of(one), tuple_of(other))}" for one, other in ends]
        return [
            f"members = memory[block + U({self._resources.value_set_descriptor(name)})]",
            "is_member = False",
            "member = members + U(1)",
            "for _ in range(memory[members]):",
            f"    if {' and '.join(tests)}:",
            "        is_member = True",
            f"    member += U({place})",
        ]

    def _require(self, num_bytes: int | str) -> list[str]:
        """End the parser with an error if the packet is too short."""
        if num_bytes == 0:
            return []
        needed = num_bytes if isinstance(num_bytes, str) else constant(num_bytes)
        return [f"if at + {needed} > end:", *self._failing(PACKET_TOO_SHORT)]

    def _require_room(self, stack: Stack) -> list[str]:
        return [f"if {word(stack.next_word)} >= U({len(stack.headers)}):", *self._failing(STACK_OUT_OF_BOUNDS)]

    def _require_last(self, node: object) -> list[str]:
        """End the parser with an error if the last element of an empty stack is read, as P4 says; BMv2 crashes."""
        lines = []
        for name in sorted(_stacks_whose_last_is_read(node)):
            lines.append(f"if {word(self._layout.stacks[name].next_word)} == U(0):")
            lines += self._failing(STACK_OUT_OF_BOUNDS)
        return lines

    def _failing(self, error: str) -> list[str]:
        if error not in self._errors:
            raise UnsupportedError(f"a program without the error {error!r}")
        return [f"    {line}" for line in self._fail(constant(self._errors[error]))]

    def _fail(self, code: str) -> list[str]:
        return [f"{word(self._layout.field(['standard_metadata', 'parser_error']).word)} = {code}", "return at"]


def _key_tests(number: int, count: int, value: int, mask: int | None) -> list[str]:
    """Return the conditions under which a key equals a value under a mask, word by word."""
    name, tests = f"key_{number}_{count}", []
    for position in range(count):
        part = f"{name}[{position}]" if count > 1 else name
        low = value >> 64 * position
        if mask is None:
            tests.append(f"{part} == {constant(low)}")
        else:
            kept = mask >> 64 * position
            tests.append(f"{part} & {constant(kept)} == {constant(low & kept)}")
    return tests


def _without_sign(key: Json, compiler: ExpressionCompiler) -> Json:
    """Return a key as it stands in the packet, because a select compares bits."""
    fields = compiler.references.fields(key)
    if not fields or not fields[0][1].signed:
        return key
    mask = {"type": "hexstr", "value": hex(fields[0][1].mask)}
    return {"type": "expression", "value": {"op": "&", "left": key, "right": mask}}


def _key_bytes(key: Json, layout: Layout) -> int:
    match key["type"]:
        case "field":
            return (layout.field(key["value"]).bits + 7) // 8
        case "stack_field":
            stack, name = key["value"]
            return (layout.stacks[stack].headers[0].fields[name].bits + 7) // 8
        case "lookahead":
            return int(key["value"][1] + 7) // 8
    raise UnsupportedError(f"transition key of type {key['type']!r}")


def _split(hexadecimal: str, widths: list[int]) -> list[int]:
    """Cut a transition's value into its fields, which are padded to whole bytes."""
    whole, parts = int(hexadecimal, 16), []
    for width in reversed(widths):
        parts.append(whole & (1 << 8 * width) - 1)
        whole >>= 8 * width
    return parts[::-1]
