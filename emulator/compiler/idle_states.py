"""Parser states in loops that extract nothing: a packet may go round in them for ever, as it does on BMv2.

The emulator counts how often a packet enters them. After ``jumps.MAX_REPEATS`` times it is dropped and counted.
"""

from collections.abc import Iterable
from typing import Any

import networkx as nx

from emulator.compiler.parse_graph import EXTRACTS, ParseGraph

_Node = dict[str, Any]


def idle_states(program: _Node) -> frozenset[str]:
    """Return the names of the states that a packet may come back to without a byte extracted in between."""
    found: set[str] = set()
    for parser in program["parsers"][:1]:  # others are refused
        graph = ParseGraph(parser)
        idle = graph.following.subgraph(name for name, state in graph.states.items() if not _extracts(state, program))
        for loop in nx.strongly_connected_components(idle):
            found |= {name for name in loop if len(loop) > 1 or idle.has_edge(name, name)}
    return frozenset(found)


def _extracts(state: _Node, program: _Node) -> bool:
    """Return whether a state extracts a byte at least, or ends the parser with an error."""
    targets = [operation["parameters"][0] for operation in state["parser_ops"] if operation["op"] in EXTRACTS]
    return any(_has_bytes(_extracted_type(target, program), program) for target in targets)


def _has_bytes(header_type: str | None, program: _Node) -> bool:
    fields = next((kind["fields"] for kind in program["header_types"] if kind["name"] == header_type), ())
    return any(width != "*" for _, width, *_ in fields)


def _extracted_type(target: _Node, program: _Node) -> str | None:
    """Return the type of the header that is extracted; None for a target that the emulator refuses."""
    value = target["value"]
    header_type: str | None = None
    match target["type"]:
        case "regular":
            header_type = _named(program["headers"], value)["header_type"]
        case "stack":
            header_type = _named(program["header_stacks"], value)["header_type"]
        case "union_stack":
            stack, member = value
            union_type = _named(program["header_union_stacks"], stack)["union_type"]
            header_type = dict(_named(program["header_union_types"], union_type)["headers"])[member]
    return header_type


def _named(nodes: Iterable[_Node], name: str) -> _Node:
    return next(node for node in nodes if node["name"] == name)
