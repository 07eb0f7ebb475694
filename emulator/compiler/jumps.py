"""Compiler of the jumps inside an action, which p4c makes of its conditions and loops.

Each primitive is skipped as long as ``resume`` is behind it. A jump back starts the list of primitives again, at most
``MAX_REPEATS`` times in one call of the action; then the packet is dropped and counted.
"""

from typing import Any

_Node = dict[str, Any]

MAX_REPEATS = 1 << 16
"""Jumps back that one call of an action may take, and states that a packet may enter without extracting anything."""

JUMPS = frozenset({"_jump", "_jump_if_zero"})


HALTS = frozenset({"assert", "assume"})
"""Primitives that halt a packet where their condition does not hold."""

REPEATED, FAILED = 1, 2
"""Why a packet is halted, in its word for this: a loop was repeated too often, or an assertion has failed."""


def may_halt(actions: list[_Node]) -> bool:
    """Return whether any of the actions may halt a packet: one that may jump back, or one with an assertion."""
    return any(
        is_loop(action["primitives"]) or any(node["op"] in HALTS for node in action["primitives"]) for action in actions
    )


def is_loop(primitives: list[_Node]) -> bool:
    """Return whether a list of primitives may jump back."""
    return any(_may_go_back(position, node) for position, node in enumerate(primitives) if node["op"] in JUMPS)


def jump(node: _Node, position: int, target: str, halt_word: int | None) -> list[str]:
    """Return the lines that continue at ``target``, an expression, after the primitive at ``position``."""
    lines = [f"resume = np.int64({target})"]
    if not _may_go_back(position, node):
        return lines
    lines += [f"if resume <= {position}:", "    repeats += 1", f"    if repeats <= {MAX_REPEATS}:", "        continue"]
    return [*lines, f"    phv[{halt_word}] = U({REPEATED})", "    break"]


def in_order(made: list[list[str]], *, loops: bool) -> list[str]:
    """Return the lines of an action from those of its primitives."""
    lines = []
    for position, part in enumerate(made):
        if part:
            lines += [f"if resume <= {position}:", *(f"    {line}" for line in part)]
    if not loops:
        return ["resume = 0", *lines]
    return ["resume = 0", "repeats = 0", "while True:", *(f"    {line}" for line in lines), "    break"]


def _may_go_back(position: int, node: _Node) -> bool:
    target = node["parameters"][-1]
    return target["type"] != "hexstr" or int(target["value"], 16) <= position
