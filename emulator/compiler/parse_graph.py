"""Graph of a parser's states: their order, its loops, and how many bytes of a packet it reads."""

from emulator.compiler.idle_states import EXTRACTS
from emulator.compiler.layout import Header, Json, Layout, Stack, UnsupportedError
from emulator.compiler.lookaheads import lookahead_bytes
from emulator.engine.state import OCTETS


def longest_parse_bytes(program: Json, layout: Layout) -> int:
    """Return the number of bytes that a parser may read; all that a packet stores if it has loops or skips bytes.

    Raises UnsupportedError if the headers alone are longer than that.
    """
    parser = program["parsers"][0]
    states = {state["name"]: state for state in parser["parse_states"]}
    _, has_loop = callees_first(parser["init_state"], states)
    if has_loop:
        return OCTETS

    def longest(name: str | None) -> int:
        if name is None:
            return 0
        ahead = lookahead_bytes(states[name])
        for operation in states[name]["parser_ops"]:
            if operation["op"] in EXTRACTS:
                header = extracted_header(operation, layout)[0]
                ahead += header.num_bytes + (header.variable.most_bytes if header.variable else 0)
        return ahead + max((longest(transition["next_state"]) for transition in states[name]["transitions"]), default=0)

    found = longest(parser["init_state"])
    if found > OCTETS:
        raise UnsupportedError(f"a parser that reads {found} bytes of a packet (a packet keeps {OCTETS})", parser)
    skips = any(operation["op"] == "advance" for state in states.values() for operation in state["parser_ops"])
    return OCTETS if skips else found


def callees_first(initial: str, states: dict[str, Json]) -> tuple[list[str], bool]:
    """Return the names of the reachable states, and whether they form a loop.

    Without loops, each state comes after its successors.
    """
    finished: list[str] = []
    has_loop = False

    def visit(name: str, above: list[str]) -> None:
        nonlocal has_loop
        if name in above:
            has_loop = True
            return
        if name in finished:
            return
        for transition in states[name]["transitions"]:
            if transition["next_state"] is not None:
                visit(transition["next_state"], [*above, name])
        finished.append(name)

    visit(initial, [])
    return finished, has_loop


def state_place(state: Json) -> str:
    """Return the name of a parser state in messages."""
    return f"parser state {state['name']!r}"


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
