"""Graph of a parser's states: which of them packets reach, which follow which, and whether they form loops."""

from typing import Any

import networkx as nx

_Node = dict[str, Any]

EXTRACTS = frozenset({"extract", "extract_VL"})
"""Operations of a state that extract a header."""


class ParseGraph:
    """The states of a parser that packets can reach.

    Attributes:
        states: The states by name. Without loops, each comes after those that may follow it.
        following: Names of states, with an edge to each that may follow.
    """

    def __init__(self, parser: _Node) -> None:
        states = {state["name"]: state for state in parser["parse_states"]}
        names = {name: [each["next_state"] for each in state["transitions"]] for name, state in states.items()}
        graph = nx.DiGraph({name: [each for each in found if each is not None] for name, found in names.items()})
        order = nx.dfs_postorder_nodes(graph, states[parser["init_state"]]["name"])
        self.states: dict[str, _Node] = {name: states[name] for name in order}
        self.following: nx.DiGraph = graph.subgraph(self.states)

    @property
    def has_loop(self) -> bool:
        """Whether a packet may come back to a state."""
        return not nx.is_directed_acyclic_graph(self.following)
