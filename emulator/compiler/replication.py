"""Compiler of copies and further passes, for programs that clone, multicast, resubmit or recirculate packets.

An action's request is kept in a hidden metadata instance until ingress or egress has ended, like BMv2's packet
registers. Programs without such requests have neither the instance nor the code.
"""

from emulator.compiler.expressions import word
from emulator.compiler.functions import Function
from emulator.compiler.layout import Json, Layout, UnsupportedError
from emulator.engine.state import OCTETS

HIDDEN = "$replication"

CLONE_SESSION, CLONE_FIELDS, RESUBMIT, RECIRCULATE = "clone_session", "clone_fields", "resubmit", "recirculate"
PASSES, ARRIVAL_PORT, LONGEST = "passes", "arrival_port", "longest"

SESSION_BITS = 15
"""Bits of a clone session's number; one more bit requests the clone, because 0 is a valid session."""

_WORD_BITS = 64

_BITS = {CLONE_SESSION: 16, CLONE_FIELDS: 16, RESUBMIT: 16, RECIRCULATE: 16, PASSES: 16, ARRIVAL_PORT: 9, LONGEST: 32}
_REQUESTS = (CLONE_SESSION, CLONE_FIELDS, RESUBMIT, RECIRCULATE)

_PRIMITIVES = frozenset({"clone_ingress_pkt_to_egress", "clone_egress_pkt_to_egress", RESUBMIT, RECIRCULATE})
_GROUP = ["standard_metadata", "mcast_grp"]


def replicates(program: Json) -> bool:
    """Return whether a program can request a copy or another pass of a packet.

    Anything that writes the group's number requests one: an assignment, a hash, a register, a parser. A program that
    only reads it counts as well, which costs speed and nothing else.
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
    """Return the program with the hidden metadata instance."""
    fields = [[name, bits, False] for name, bits in _BITS.items()]
    return {
        **program,
        "header_types": [*program["header_types"], {"name": HIDDEN, "fields": fields}],
        "headers": [*program["headers"], {"name": HIDDEN, "header_type": HIDDEN, "metadata": True}],
    }


def hidden_word(layout: Layout, name: str) -> int:
    """Return the word that holds a field of the hidden instance."""
    return layout.field([HIDDEN, name]).word


class CopyCompiler:
    """Compiles the functions that turn a packet's words into those of a copy or another pass."""

    def __init__(self, program: Json, layout: Layout) -> None:
        self._layout = layout
        self._lists = {node["id"]: self._words(node) for node in program["field_lists"]}

    def functions(self) -> list[Function]:
        """Return ``preserve``, ``renew``, ``reparse`` and ``ask_nothing``."""
        return [self._preserve(), self._renew(), self._reparse(), self._ask_nothing()]

    def constants(self) -> dict[str, int]:
        """Return the words that the event loop reads, by its names for them."""
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
            if field.most_bytes:
                raise UnsupportedError(f"variable-length field {field.name} in field list {node['name']!r}", node)
            found += range(field.word, field.word + -(-field.bits // _WORD_BITS))
        return found

    def _preserve(self) -> Function:
        """Return the function that copies the fields of a list from one row to another."""
        lines = []
        for number, words in self._lists.items():
            lines += [f"if fields == {number}:", *(f"    rows[to + {word}] = rows[of + {word}]" for word in words)]
            lines += [] if words else ["    pass"]
        return Function("preserve", "rows, to, of, fields", lines)

    def _renew(self) -> Function:
        """Return the function that sets a copy's metadata: the list's fields, length and passes; the rest is zero."""
        kept = [hidden_word(self._layout, name) for name in (ARRIVAL_PORT, LONGEST, PASSES)]
        kept.append(self._layout.field(["standard_metadata", "packet_length"]).word)
        first, end = self._layout.first_metadata_word, self._layout.initial_words
        lines = [f"for index in range(to + {first}, to + {end}):", "    rows[index] = U(0)"]
        lines += [f"rows[to + {word}] = rows[of + {word}]" for word in kept]
        lines += ["preserve(rows, to, of, fields)", "rows[to + INSTANCE_TYPE_WORD] = U(instance)"]
        return Function("renew", "rows, to, of, fields, instance", lines)

    def _reparse(self) -> Function:
        """Return the function that parses a packet's headers from its bytes again."""
        lines = [f"for index in range(U({self._layout.initial_words})):", "    phv[index] = U(0)"]
        lines += ["phv[INGRESS_PORT_WORD] = port", parse_call(self._layout)]
        return Function("reparse", "phv, octets, at, length, port, memory, block", lines)

    def _ask_nothing(self) -> Function:
        """Return the function that clears all requests."""
        words = [hidden_word(self._layout, name) for name in _REQUESTS]
        if self._layout.longest_word is not None:
            words.append(self._layout.longest_word)
        return Function("ask_nothing", "rows, row", [f"rows[row + {word}] = U(0)" for word in words])


def invalidate(layout: Layout) -> list[str]:
    """Return the lines that make every header invalid and every stack empty, and clear what is read all the same."""
    lines = [f"{word(header.valid_word)} = U(0)" for header in layout.headers.values() if not header.metadata]
    lines += [f"{word(index)} = U(0)" for index in layout.exposed_words]
    own = (layout.digest_word, layout.longest_word)
    lines += [f"{word(index)} = U(0)" for index in own if index is not None]
    return lines + [f"{word(index)} = U(0)" for index in layout.next_words]


def parse_call(layout: Layout) -> str:
    """Return the line that parses a packet and records the payload's offset."""
    arguments = layout.state_parameters.replace("end", f"at + min(U(length), U({OCTETS}))")
    return f"{word(layout.payload_word)} = parse({arguments}) - at"
