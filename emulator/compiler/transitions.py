"""Compiler of what follows a parser state: its key is tried on values, masks and value sets, in order."""

from collections.abc import Callable, Sequence

from emulator.compiler.expressions import ExpressionCompiler, constant, tuple_of
from emulator.compiler.layout import WORD_BITS, Json, Layout, UnsupportedError
from emulator.compiler.resources import Resources
from emulator.compiler.value_sets import key_part_bits
from emulator.compiler.wide import call

Goto = Callable[[str | None], list[str]]
"""Returns the lines that continue with a state, or end the parser."""


class TransitionCompiler:
    """Compiles the transitions of one parser state."""

    def __init__(self, state: Json, layout: Layout, resources: Resources, goto: Goto) -> None:
        self._state = state
        self._layout = layout
        self._resources = resources
        self._goto = goto

    def lines(self, compiler: ExpressionCompiler) -> list[str]:
        """Return the statements that continue with another state, or end the parser."""
        keys = [_without_sign(key, compiler) for key in self._state["transition_key"]]
        counts = [compiler.range_of(key).num_words for key in keys]
        lines = [
            f"key_{number}_{count} = {compiler.words(key, count)}"
            for number, (key, count) in enumerate(zip(keys, counts, strict=True))
        ]
        widths = [(key_part_bits(key, self._layout) + 7) // 8 for key in self._state["transition_key"]]
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


def _split(hexadecimal: str, widths: list[int]) -> list[int]:
    """Cut a transition's value into its fields, which are padded to whole bytes."""
    whole, parts = int(hexadecimal, 16), []
    for width in reversed(widths):
        parts.append(whole & (1 << 8 * width) - 1)
        whole >>= 8 * width
    return parts[::-1]
