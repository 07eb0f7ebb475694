"""Conversion of entry keys to the words that compiled code compares."""

from emulator.compiler.layout import WORD_BITS
from emulator.compiler.tables import KeyField, MatchKind, Table
from emulator.entries import EntryKey, FieldMatch, InvalidRequestError, RangeMatch

_WORD_MASK = (1 << WORD_BITS) - 1


def key_words(table: Table, key: EntryKey) -> tuple[int, ...]:
    """Return the key's words in a slot of the table, see ``Table.key_words``.

    Raises InvalidRequestError for a key that the table cannot have.
    """
    if not table.key:
        raise InvalidRequestError(f"table {table.name!r} has no key and so no entries")
    if len(key.match) != len(table.key):
        raise InvalidRequestError(f"table {table.name!r} has {len(table.key)} key fields, not {len(key.match)}")
    if (key.priority > 0) != table.is_scanned:
        raise InvalidRequestError(
            f"entries of table {table.name!r} have {'a' if table.is_scanned else 'no'} priority above 0"
        )
    words = [0] * table.key_words
    for field, match in zip(table.key, key.match, strict=True):
        value, mask = _range(table, field, match) if field.kind is MatchKind.RANGE else _masked(table, field, match)
        _place(words, field.key_words, value << field.shift)
        if table.is_scanned:
            _place(words, [table.value_words + number for number in field.key_words], mask << field.shift)
        elif field.kind is MatchKind.LPM:
            _place(words, range(table.value_words, table.key_words), mask)
    return tuple(words)


def _range(table: Table, field: KeyField, match: FieldMatch | RangeMatch) -> tuple[int, int]:
    if not isinstance(match, RangeMatch):
        raise InvalidRequestError(f"{_name(table, field)} is matched by a range")
    if not 0 <= match.low <= match.high <= field.field.mask:
        raise InvalidRequestError(f"{_name(table, field)} has no range from {match.low} to {match.high}")
    return match.low, match.high


def _masked(table: Table, field: KeyField, match: FieldMatch | RangeMatch) -> tuple[int, int]:
    if isinstance(match, RangeMatch):
        raise InvalidRequestError(f"{_name(table, field)} is not matched by a range")
    value, mask = match
    full_mask = field.field.mask
    if field.kind is MatchKind.EXACT and mask != full_mask:
        raise InvalidRequestError(f"{_name(table, field)} is matched exactly")
    if value & ~mask or mask & ~full_mask:
        raise InvalidRequestError(f"{_name(table, field)} has bits outside its mask")
    behind_prefix = full_mask & ~mask
    if field.kind is MatchKind.LPM and behind_prefix & behind_prefix + 1:
        raise InvalidRequestError(f"the mask of {_name(table, field)} is not a prefix")
    return match


def _name(table: Table, field: KeyField) -> str:
    return f"field {field.name!r} of table {table.name!r}"


def _place(words: list[int], places: list[int] | range, value: int) -> None:
    for place in places:
        words[place] |= value & _WORD_MASK
        value >>= WORD_BITS
