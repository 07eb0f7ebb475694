"""Copies and further passes of packets: what a program that clones, multicasts, resubmits or recirculates needs.

What an action asks for stands in a hidden metadata instance until ingress or egress has ended, as BMv2's packet
registers do; a program that asks for nothing of the kind has no such instance and no such code.
"""

from emulator.compiler.expressions import word
from emulator.compiler.functions import Function
from emulator.compiler.layout import Json, Layout, UnsupportedError
from emulator.engine.state import OCTETS

HIDDEN = "$replication"

CLONE_SESSION, CLONE_FIELDS, RESUBMIT, RECIRCULATE = "clone_session", "clone_fields", "resubmit", "recirculate"
PASSES, ARRIVAL_PORT, LONGEST = "passes", "arrival_port", "longest"

SESSION_BITS = 15
"""Of a clone session's number; one more bit says that a clone is wanted, as session 0 is a session like any other."""

_WORD_BITS = 64

_BITS = {CLONE_SESSION: 16, CLONE_FIELDS: 16, RESUBMIT: 16, RECIRCULATE: 16, PASSES: 16, ARRIVAL_PORT: 9, LONGEST: 32}
_REQUESTS = (CLONE_SESSION, CLONE_FIELDS, RESUBMIT, RECIRCULATE)

_PRIMITIVES = frozenset({"clone_ingress_pkt_to_egress", "clone_egress_pkt_to_egress", RESUBMIT, RECIRCULATE})
_GROUP = ["standard_metadata", "mcast_grp"]


def replicates(program: Json) -> bool:
    """Whether a program can ask for a copy or another pass of a packet.

    A group is asked for by whatever writes its number: an assignment, a hash, a register, a parser. One that is only
    read costs the program its faster form, and nothing else.
    """
    primitives = [primitive for action in program["actions"] for primitive in action["primitives"]]
    if any(primitive["op"] in _PRIMITIVES for primitive in primitives):
        return True
    return _names_group(primitives) or _names_group(program["parsers"])


def _names_group(node: object) -> bool:
    if isinstance(node, dict):
        return any(_names_group(part) for part in node.values())
    return isinstance(node, list) and (node == _GROUP or any(_names_group(part) for part in node))


def with_hidden_metadata(program: Json) -> Json:
    """The program with one metadata instance more."""
    fields = [[name, bits, False] for name, bits in _BITS.items()]
    return {
        **program,
        "header_types": [*program["header_types"], {"name": HIDDEN, "fields": fields}],
        "headers": [*program["headers"], {"name": HIDDEN, "header_type": HIDDEN, "metadata": True}],
    }


def hidden_word(layout: Layout, name: str) -> int:
    """The word of the packet's row in which a field of the hidden instance stands."""
    return layout.field([HIDDEN, name]).word


class CopyCompiler:
    """Makes the functions that turn a row of words into that of a copy or of another pass."""

    def __init__(self, program: Json, layout: Layout) -> None:
        self._layout = layout
        self._lists = {node["id"]: self._words(node) for node in program["field_lists"]}

    def functions(self) -> list[Function]:
        """``preserve``, ``renew``, ``reparse`` and ``ask_nothing``."""
        return [self._preserve(), self._renew(), self._reparse(), self._ask_nothing()]

    def constants(self) -> dict[str, int]:
        """Words of the row that the event loop looks at, by the names it has for them."""
        standard = {"instance_type", "ingress_port", "egress_spec", "packet_length", "mcast_grp", "egress_rid"}
        words = {name: self._layout.field(["standard_metadata", name]).word for name in standard}
        words |= {name: hidden_word(self._layout, name) for name in _BITS}
        return {f"{name.upper()}_WORD": words[name] for name in sorted(words)}

    def _words(self, node: Json) -> list[int]:
        found: list[int] = []
        for element in node["elements"]:
            if element["type"] != "field":
                raise UnsupportedError(f"element of type {element['type']!r} in field list {node['name']!r}", node)
            field = self._layout.field(element["value"])
            found += range(field.word, field.word + -(-field.bits // _WORD_BITS))
        return found

    def _preserve(self) -> Function:
        """Copies the fields of a list from one row to another."""
        lines = []
        for number, words in self._lists.items():
            lines += [f"if fields == {number}:", *(f"    rows[to + {word}] = rows[of + {word}]" for word in words)]
            lines += [] if words else ["    pass"]
        return Function("preserve", "rows, to, of, fields", lines)

    def _renew(self) -> Function:
        """Metadata of a packet's copy: that of the list, length and number of passes; the rest is zero."""
        kept = [hidden_word(self._layout, name) for name in (ARRIVAL_PORT, LONGEST, PASSES)]
        kept.append(self._layout.field(["standard_metadata", "packet_length"]).word)
        first, end = self._layout.first_metadata_word, self._layout.initial_words
        lines = [f"for index in range(to + {first}, to + {end}):", "    rows[index] = U(0)"]
        lines += [f"rows[to + {word}] = rows[of + {word}]" for word in kept]
        lines += ["preserve(rows, to, of, fields)", "rows[to + INSTANCE_TYPE_WORD] = U(instance)"]
        return Function("renew", "rows, to, of, fields, instance", lines)

    def _reparse(self) -> Function:
        """Takes a packet's headers from its bytes once more."""
        lines = [f"for index in range(U({self._layout.initial_words})):", "    phv[index] = U(0)"]
        lines += ["phv[INGRESS_PORT_WORD] = port", parse_call(self._layout)]
        return Function("reparse", "phv, octets, at, length, port", lines)

    def _ask_nothing(self) -> Function:
        """Withdraws what has been asked for."""
        words = [hidden_word(self._layout, name) for name in _REQUESTS]
        return Function("ask_nothing", "rows, row", [f"rows[row + {word}] = U(0)" for word in words])


def invalidate(layout: Layout) -> list[str]:
    """Lines after which no header is valid, and every stack empty."""
    lines = [f"{word(header.valid_word)} = U(0)" for header in layout.headers.values() if not header.metadata]
    return lines + [f"{word(stack.next_word)} = U(0)" for stack in layout.stacks.values()]


def parse_call(layout: Layout) -> str:
    """The line that parses a packet and notes where its payload starts."""
    return f"{word(layout.payload_word)} = parse(phv, octets, at, at + min(U(length), U({OCTETS}))) - at"
