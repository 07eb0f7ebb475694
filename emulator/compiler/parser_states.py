"""Compiler of one parser state: its operations on the packet, and the errors that end it early."""

from emulator.compiler.actions import ActionCompiler
from emulator.compiler.expressions import ExpressionCompiler, assigned, constant, word
from emulator.compiler.extractions import extracted_header
from emulator.compiler.functions import tell
from emulator.compiler.headers import HeaderCompiler
from emulator.compiler.layout import Header, Json, Layout, Stack, UnsupportedError, part_of
from emulator.compiler.lookaheads import Lookahead
from emulator.compiler.references import branches
from emulator.compiler.resources import Resources
from emulator.compiler.transitions import Goto, TransitionCompiler
from emulator.compiler.wire import extract_source, extract_variable_source

PACKET_TOO_SHORT = "PacketTooShort"
STACK_OUT_OF_BOUNDS = "StackOutOfBounds"
HEADER_TOO_SHORT = "HeaderTooShort"
INVALID_ARGUMENT = "ParserInvalidArgument"


class StateCompiler:
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
        self._transitions = TransitionCompiler(state, layout, resources, goto)
        self._errors = errors
        self._headers = HeaderCompiler(layout, ExpressionCompiler(layout))

    def lines(self) -> list[str]:
        """Return the state's statements."""
        lines: list[str] = [tell("parser_state", repr(self._state["name"]))]
        where = f"parser state {self._state['name']!r}"
        for operation in self._state["parser_ops"]:
            lookahead = Lookahead()
            with part_of(operation, where):
                made = self._operation(operation, ExpressionCompiler(self._layout, lookahead))
            lines += [*self._require(lookahead.num_bytes), *self._require_last(operation), *made]
        lookahead = Lookahead()
        with part_of(self._state, where):
            made = self._transitions.lines(ExpressionCompiler(self._layout, lookahead))
        return [*lines, *self._require(lookahead.num_bytes), *self._require_last(self._state["transition_key"]), *made]

    def _operation(self, operation: Json, expressions: ExpressionCompiler) -> list[str]:
        parameters = operation["parameters"]
        match operation["op"]:
            case "extract":
                header, stack = extracted_header(operation, self._layout)
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
        header, stack = extracted_header(operation, self._layout)
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


def _stacks_whose_last_is_read(node: object) -> set[str]:
    if isinstance(node, dict):
        if node.get("type") == "stack_field":
            return {node["value"][0]}
        return set().union(*map(_stacks_whose_last_is_read, node.values()))
    if isinstance(node, list):
        return set().union(*map(_stacks_whose_last_is_read, node))
    return set()
