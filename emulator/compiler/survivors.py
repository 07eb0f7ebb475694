"""What a packet takes along while it waits in a queue.

Every packet is processed in the same words, so that they stay in the processor's nearest cache. A packet has a row of
its own only for what ingress may have set and egress may read: many thousand packets wait at a time, and their rows are
read from afar.
"""

import re
from dataclasses import dataclass

from emulator.compiler.expressions import constant, word
from emulator.compiler.functions import Function
from emulator.compiler.layout import WORD_BITS, Layout

_CALL = re.compile(r"\b([a-z]\w*)\(")
_WORD = re.compile(r"\bphv\[(\d+)\]")


@dataclass(frozen=True)
class Survivors:
    """Functions ``store(phv, rows, row)`` and ``load(phv, rows, row)``, and how many words a row has."""

    functions: tuple[Function, Function]
    row_words: int


def survivors(layout: Layout, functions: list[Function], before: list[str], after: list[str]) -> Survivors:
    """Survivors of a queue, given what is called ``before`` it and ``after`` it.

    A row begins with which headers are valid, a bit each, and the words of metadata. Then come, without a gap, the
    fields of those headers that are.
    """
    alive = _words(functions, before) & _words(functions, after)
    headers = [header for header in layout.headers.values() if not header.metadata]
    validity = [header.valid_word for header in headers if header.valid_word in alive]
    alone = [index for index in range(layout.initial_words) if index in alive and index not in validity]
    clear = [f"for index in range({constant(layout.initial_words)}):", "    phv[index] = U(0)"]
    store, load, used = [], [*clear], 0
    for first in range(0, len(validity), WORD_BITS):
        bits = list(enumerate(validity[first : first + WORD_BITS]))
        store.append(
            f"rows[row + {constant(used)}] = {' | '.join(f'{word(index)} << U({bit})' for bit, index in bits)}"
        )
        load.append(f"validity = rows[row + {constant(used)}]")
        load += [f"{word(index)} = validity >> U({bit}) & U(1)" for bit, index in bits]
        used += 1
    for index in (*alone, layout.payload_word):
        store.append(f"rows[row + {constant(used)}] = {word(index)}")
        load.append(f"{word(index)} = rows[row + {constant(used)}]")
        used += 1
    for lines in (store, load):
        lines.append(f"row += {constant(used)}")
    for header in headers:
        fields = [index for field in header.fields.values() for index in field.words if index in alive]
        if fields:
            size = fields[-1] - fields[0] + 1
            begin, count = constant(fields[0]), constant(size)
            test = f"if {word(header.valid_word)} != U(0):"
            store += [test, f"    copy(phv, {begin}, rows, row, {count})", f"    row += {count}"]
            load += [test, f"    copy(rows, row, phv, {begin}, {count})", f"    row += {count}"]
            used += size
    parameters = "phv, rows, row"
    return Survivors((Function("store", parameters, store), Function("load", parameters, load)), used)


def everything(layout: Layout) -> Survivors:
    """All words survive, as a packet that is copied may need any of them again."""
    parameters, count = "phv, rows, row", constant(layout.num_words)
    store = Function("store", parameters, [f"copy(phv, U(0), rows, row, {count})"])
    load = Function("load", parameters, [f"copy(rows, row, phv, U(0), {count})"])
    return Survivors((store, load), layout.num_words)


def _words(functions: list[Function], roots: list[str]) -> set[int]:
    """Words that some functions name, or those that they call."""
    by_name = {function.name: "\n".join(function.lines) for function in functions}
    found: set[int] = set()
    seen, waiting = set(roots), list(roots)
    while waiting:
        source = by_name[waiting.pop()]
        found |= {int(index) for index in _WORD.findall(source)}
        called = (set(_CALL.findall(source)) & by_name.keys()) - seen
        seen |= called
        waiting += called
    return found
