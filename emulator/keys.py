"""The keys of entries as the words that compiled code compares."""

from emulator.compiler.layout import WORD_BITS
from emulator.compiler.tables import KeyField, MatchKind, Table
from emulator.entries import EntryKey, FieldMatch, InvalidRequestError, RangeMatch


def key_words(table: Table, key: EntryKey) -> tuple[int, ...]:
    """The key's words in a slot of the table, see ``Table.key_words``.

    Raises InvalidRequestError where the table can have no such key.
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
        where = f"field {field.name!r} of table {table.name!r}"
        value, mask = _range(field, match, where) if field.kind is MatchKind.RANGE else _masked(field, match, where)
        _place(words, field.key_words, value << field.shift)
        if table.is_scanned:
            _place(words, [table.value_words + number for number in field.key_words], mask << field.shift)
        elif field.kind is MatchKind.LPM:
            _place(words, range(table.value_words, table.key_words), mask)
    return tuple(words)


def _range(field: KeyField, match: FieldMatch | RangeMatch, where: str) -> tuple[int, int]:
    if not isinstance(match, RangeMatch):
        raise InvalidRequestError(f"{where} is matched by a range")
    if not 0 <= match.low <= match.high <= field.field.mask:
        raise InvalidRequestError(f"{where} has no range from {match.low} to {match.high}")
    return match.low, match.high


def _masked(field: KeyField, match: FieldMatch | RangeMatch, where: str) -> tuple[int, int]:
    if isinstance(match, RangeMatch):
        raise InvalidRequestError(f"{where} is not matched by a range")
    if field.kind is MatchKind.EXACT and match.mask != field.field.mask:
        raise InvalidRequestError(f"{where} is matched exactly")
    if match.value & ~match.mask or match.mask & ~field.field.mask:
        raise InvalidRequestError(f"{where} has bits outside its mask")
    behind_prefix = field.field.mask & ~match.mask
    if field.kind is MatchKind.LPM and behind_prefix & behind_prefix + 1:
        raise InvalidRequestError(f"the mask of {where} is not a prefix")
    return match.value, match.mask


def _place(words: list[int], places: list[int] | range, value: int) -> None:
    for number, place in enumerate(places):
        words[place] |= value >> WORD_BITS * number & (1 << WORD_BITS) - 1
