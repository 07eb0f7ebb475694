"""Compiler of the words that a packet keeps while it waits in a queue.

Every packet is processed in the same words, which therefore stay in the processor's fastest cache. A packet has a row
of its own only for words that ingress may have set and egress may read: many thousand packets wait at a time, and their
rows come from slow memory.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from emulator.compiler.expressions import constant, word
from emulator.compiler.functions import Function
from emulator.compiler.layout import WORD_BITS, Layout

_CALL = re.compile(r"\b([a-z]\w*)\(")
_WORD = re.compile(r"\bphv\[(\d+)\]")


@dataclass(frozen=True)
class Survivors:
    """Functions ``store(phv, rows, row)`` and ``load(phv, rows, row)``, and the words of a row."""

    functions: tuple[Function, Function]
    row_words: int


def survivors(
    layout: Layout, functions: list[Function], before: list[str], after: list[str], needed: Iterable[int] = ()
) -> Survivors:
    """Return the words that survive a queue, given the functions called ``before`` and ``after`` it.

    Others need the words in ``needed`` after it.

    A row begins with the validity of headers, the fields that may be read in invalid ones, and the metadata. Then come
    the fields of the valid headers, without gaps. Several small values share a word.
    """
    alive = _words(functions, before) & {*_words(functions, after), *needed}
    headers = [header for header in layout.headers.values() if not header.metadata]
    by_header = {*layout.exposed_words} - layout.kept_words
    always = [index for index in range(layout.initial_words) if index in alive and index not in by_header]
    store, load, used = _packed(layout, [*always, layout.payload_word])
    load = [f"for index in range({constant(layout.initial_words)}):", "    phv[index] = U(0)", *load]
    for header in headers:
        words = [index for field in header.fields.values() for index in field.words]
        fields = [index for index in words if index in alive and (index >= layout.initial_words or index in by_header)]
        if fields:
            stored, loaded, size = _packed(layout, fields)
            test = f"if {word(header.valid_word)} != U(0):"
            store += [test, *(f"    {line}" for line in stored)]
            load += [test, *(f"    {line}" for line in loaded)]
            used += size
    parameters = "phv, rows, row"
    return Survivors((Function("store", parameters, store), Function("load", parameters, load)), used)


def _packed(layout: Layout, indices: list[int]) -> tuple[list[str], list[str], int]:
    """Return the lines that store and load words, each in the bits it uses, and the number of row words they take."""
    shared: list[list[tuple[int, int, int]]] = []  # by word of the row: word, its first bit there, its bits
    free = 0
    for index in indices:
        bits = layout.bits_of(index)
        if bits > free:
            shared.append([])
            free = WORD_BITS
        shared[-1].append((index, WORD_BITS - free, bits))
        free -= bits
    store, load = [], []
    for number, values in enumerate(shared):
        at = f"rows[row + {constant(number)}]"
        store.append(f"{at} = {' | '.join(_shifted(word(index), '<<', first) for index, first, _ in values)}")
        load.append(f"packed = {at}")
        for index, first, bits in values:
            mask = "" if first + bits == WORD_BITS else f" & {constant((1 << bits) - 1)}"
            load.append(f"{word(index)} = {_shifted('packed', '>>', first)}{mask}")
    end = [f"row += {constant(len(shared))}"]
    return store + end, load + end, len(shared)


def _shifted(source: str, operator: str, bits: int) -> str:
    return f"{source} {operator} {constant(bits)}" if bits else source


def everything(layout: Layout) -> Survivors:
    """Return all words, because a packet that is copied may need any of them again."""
    parameters, num_words = "phv, rows, row", layout.payload_word + 1
    count = constant(num_words)
    store = Function("store", parameters, [f"copy(phv, U(0), rows, row, {count})"])
    load = Function("load", parameters, [f"copy(rows, row, phv, U(0), {count})"])
    return Survivors((store, load), num_words)


def _words(functions: list[Function], roots: list[str]) -> set[int]:
    """Return the words that these functions, and those they call, use."""
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
