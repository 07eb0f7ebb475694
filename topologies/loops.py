"""Find the links of a directed graph on which a packet could come back to where it was."""

from collections.abc import Mapping


def links_in_loops(ends: Mapping[str, Mapping[int, str]]) -> frozenset[int]:
    """Return the links inside strongly connected parts; ``ends`` has the far end of each link out of a node.

    Tarjan's algorithm, without recursion.
    """
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    part: dict[str, int] = {}
    open_nodes: list[str] = []
    for root in ends:
        walk = [] if root in order else [(root, iter(ends[root].values()))]
        while walk:
            node, nexts = walk[-1]
            if node not in order:
                order[node] = lowest[node] = len(order)
                open_nodes.append(node)
            for end in nexts:
                if end not in ends:
                    continue
                if end not in order:
                    walk.append((end, iter(ends[end].values())))
                    break
                if end not in part:
                    lowest[node] = min(lowest[node], order[end])
            else:
                walk.pop()
                if walk:
                    lowest[walk[-1][0]] = min(lowest[walk[-1][0]], lowest[node])
                if lowest[node] == order[node]:
                    while node not in part:
                        part[open_nodes.pop()] = order[node]
    return frozenset(
        link for node, leaving in ends.items() for link, end in leaving.items() if part.get(end) == part[node]
    )
