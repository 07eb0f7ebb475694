"""Headers that a parser extracts, and how many bytes of a packet it reads."""

from emulator.compiler.layout import Header, Json, Layout, Stack, UnsupportedError
from emulator.compiler.lookaheads import lookahead_bytes
from emulator.compiler.parse_graph import EXTRACTS, ParseGraph
from emulator.engine.state import OCTETS


def longest_parse_bytes(program: Json, layout: Layout) -> int:
    """Return the number of bytes that a parser may read; all that a packet stores if it has loops or skips bytes.

    Raises UnsupportedError if the headers alone are longer than that.
    """
    parser = program["parsers"][0]
    graph = ParseGraph(parser)
    if graph.has_loop:
        return OCTETS
    longest: dict[str | None, int] = {None: 0}
    for name, state in graph.states.items():
        after = max((longest[transition["next_state"]] for transition in state["transitions"]), default=0)
        longest[name] = _most_bytes(state, layout) + after
    found = longest[parser["init_state"]]
    if found > OCTETS:
        raise UnsupportedError(f"a parser that reads {found} bytes of a packet (a packet keeps {OCTETS})", parser)
    skips = any(operation["op"] == "advance" for state in graph.states.values() for operation in state["parser_ops"])
    return OCTETS if skips else found


def extracted_header(operation: Json, layout: Layout) -> tuple[Header, Stack | None]:
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


def _most_bytes(state: Json, layout: Layout) -> int:
    """Return the number of bytes that a state may read."""
    read = lookahead_bytes(state)
    for operation in state["parser_ops"]:
        if operation["op"] in EXTRACTS:
            header, _ = extracted_header(operation, layout)
            read += header.num_bytes + (header.variable.most_bytes if header.variable else 0)
    return read
