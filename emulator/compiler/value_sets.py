"""Value sets of a program's parser, and the widths of the keys that are looked up in them."""

from dataclasses import dataclass

from emulator.compiler.layout import Json, Layout, UnsupportedError, words_of


@dataclass(frozen=True)
class ValueSet:
    """A value set of the parser: a member has a match for each part of the key, of these widths.

    For each part a member holds the lower end, the upper end and the mask under which the key must lie between them.
    """

    name: str
    size: int
    widths_bits: tuple[int, ...]

    @property
    def member_words(self) -> int:
        """Words of a member."""
        return 3 * sum(words_of(bits) for bits in self.widths_bits)


def value_sets(program: Json, layout: Layout) -> dict[str, ValueSet]:
    """Return the value sets that the parser uses; their members are as wide as the keys that are looked up in them."""
    sizes = {node["name"]: node["max_size"] for node in program.get("parse_vsets", ())}
    found: dict[str, ValueSet] = {}
    for parser in program["parsers"]:
        for state in parser.get("parse_states", ()):
            for transition in state["transitions"]:
                if transition["type"] == "parse_vset":
                    name = transition["value"]
                    widths = tuple(key_part_bits(part, layout) for part in state["transition_key"])
                    before = found.setdefault(name, ValueSet(name, sizes[name], widths))
                    if before.widths_bits != widths:
                        raise UnsupportedError(f"value set {name!r} for keys of different widths", state)
    return found


def key_part_bits(part: Json, layout: Layout) -> int:
    """Return the width of one part of a transition's key."""
    match part["type"]:
        case "field":
            return layout.field(part["value"]).bits
        case "stack_field":
            stack, name = part["value"]
            return layout.stacks[stack].headers[0].fields[name].bits
        case "lookahead":
            return int(part["value"][1])
    raise UnsupportedError(f"transition key of type {part['type']!r}")
