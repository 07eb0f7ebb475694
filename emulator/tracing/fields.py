"""A packet's words, read as the fields of a program."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from emulator.compiler.layout import LENGTH, Field, Layout
from emulator.tracing.steps import FieldChange

_WORD = 64


class Fields:
    """Fields of a program's headers and metadata, without those that the emulator adds."""

    def __init__(self, layout: Layout) -> None:
        self._num_words = layout.num_words
        self._by_word: dict[int, tuple[str, Field, int | None]] = {}
        for header in layout.headers.values():
            if header.name.startswith("$"):
                continue
            valid_word = None if header.metadata else header.valid_word
            if valid_word is not None:
                self._by_word[valid_word] = f"{header.name}.$valid$", layout.field([header.name, "$valid$"]), None
            for name, field in header.fields.items():
                if name != LENGTH:
                    self._by_word |= dict.fromkeys(field.words, (f"{header.name}.{name}", field, valid_word))
        guards = {word: guard for word, (_, _, guard) in self._by_word.items() if guard is not None}
        self._guarded = np.fromiter(guards.keys(), np.int64)
        self._guards = np.fromiter(guards.values(), np.int64)
        """The words of headers' fields, and for each the word that tells whether its header is valid."""

    def copy(self, words: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return a packet's words as they are now."""
        return words[: self._num_words].copy()

    def changes(self, before: NDArray[np.uint64], after: NDArray[np.uint64]) -> tuple[FieldChange, ...]:
        """Return what differs.

        Of headers that are invalid afterwards, the validity alone. Fields of headers that were invalid before had no
        value, and are taken for 0: their words may still hold those of an earlier packet.
        """
        return tuple(self._changes(before, after))

    def _changes(self, before: NDArray[np.uint64], after: NDArray[np.uint64]) -> Iterator[FieldChange]:
        seen = set()
        before = before.copy()
        before[self._guarded[before[self._guards] == 0]] = 0
        for index in np.flatnonzero(before != after[: self._num_words]).tolist():
            name, field, valid_word = self._by_word.get(index, ("", None, None))
            if field is None or name in seen or (valid_word is not None and not after[valid_word]):
                continue
            seen.add(name)
            yield FieldChange(name, value(field, before), value(field, after))


def value(field: Field, words: NDArray[np.uint64]) -> int:
    """Return the value of a field as the packet carries it."""
    whole = sum(int(words[index]) << _WORD * number for number, index in enumerate(field.words))
    return whole & field.mask
