"""Names of the interfaces in a network of Mininet, which Linux keeps short. It needs no Mininet."""

from typing import Any

_LONGEST = 15


def interface_names(described: dict[str, Any]) -> dict[tuple[str, int], str]:
    """Return the names of a fabric's interfaces, by node and port: ``t0-eth1`` is port 1 of t0.

    Where that would be too long for Linux anywhere, all have positions for the names of nodes: ``s0-eth1``.
    """
    ends = [(node, port) for cable in described["cables"] for node, port in cable["ends"]]
    names = {(node, port): f"{node}-eth{port}" for node, port in ends}
    if max(map(len, names.values())) <= _LONGEST:
        return names
    short = {
        node["name"]: f"{kind[0]}{number}"
        for kind in ("hosts", "switches")
        for number, node in enumerate(described[kind])
    }
    return {(node, port): f"{short[node]}-eth{port}" for node, port in ends}
