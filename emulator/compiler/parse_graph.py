"""Graph of a parser's states: their order, its loops, and how many bytes of a packet it reads."""

from emulator.compiler.layout import Header, Json, Layout, Stack, UnsupportedError, part_of
from emulator.compiler.lookaheads import lookahead_bytes
from emulator.engine.state import OCTETS

_EXTRACTS = ("extract", "extract_VL")


def longest_parse_bytes(program: Json, layout: Layout) -> int:
    """Return the number of bytes that a parser may read; all that a packet stores if it has loops or skips bytes.

    Raises UnsupportedError if the headers alone are longer than that.
    """
    parser = program["parsers"][0]
    states = {state["name"]: state for state in parser["parse_states"]}
    _, has_loop = callees_first(parser["init_state"], states, layout)
    if has_loop:
        return OCTETS

    def longest(name: str | None) -> int:
        if name is None:
            return 0
        ahead = lookahead_bytes(states[name])
        for operation in states[name]["parser_ops"]:
            if operation["op"] in _EXTRACTS:
                header = extracted_header(operation, layout)[0]
                ahead += header.num_bytes + (header.variable.most_bytes if header.variable else 0)
        return ahead + max((longest(transition["next_state"]) for transition in states[name]["transitions"]), default=0)

    found = longest(parser["init_state"])
    if found > OCTETS:
        raise UnsupportedError(f"a parser that reads {found} bytes of a packet (a packet keeps {OCTETS})", parser)
    skips = any(operation["op"] == "advance" for state in states.values() for operation in state["parser_ops"])
    return OCTETS if skips else found


def callees_first(initial: str, states: dict[str, Json], layout: Layout) -> tuple[list[str], bool]:
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
    with part_of(state, state_place(state)):
        extracted = [
            extracted_header(operation, layout) for operation in state["parser_ops"] if operation["op"] in _EXTRACTS
        ]
    return any(header.num_bytes for header, _ in extracted)


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
