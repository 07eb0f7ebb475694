"""Keys of entries as the plain interpreter compares them."""

from collections.abc import Callable

from emulator.entries import ActionCall, EntryAction, EntryKey, FieldMatch, RangeMatch
from tests.emulator.programs import Json


def has_priorities(table: Json) -> bool:
    """Whether entries of a table can overlap."""
    return any(part["match_type"] in ("ternary", "optional", "range") for part in table["key"])


def takes(match: FieldMatch | RangeMatch, value: int) -> bool:
    """Whether a field of a key takes a value."""
    if isinstance(match, RangeMatch):
        return match.low <= value <= match.high
    return value & match.mask == match.value


def masked_bits(key: EntryKey) -> int:
    """Bits that a key looks at."""
    return sum(match.mask.bit_count() for match in key.match if isinstance(match, FieldMatch))


def initial_entries(
    table: Json, width: Callable[[list[str]], int], actions: dict[int, Json]
) -> dict[EntryKey, EntryAction]:
    """The entries that the program brings, the first before all others; ``actions`` by their ids."""
    found: dict[EntryKey, EntryAction] = {}
    for entry in table.get("entries") or ():
        match = tuple(
            _initial_match(part, width(field["target"]))
            for part, field in zip(entry["match_key"], table["key"], strict=True)
        )
        key = EntryKey(match, (1 << 31) - 1 - entry["priority"] if has_priorities(table) else 0)
        action = entry["action_entry"]
        found[key] = ActionCall(
            actions[action["action_id"]]["name"], tuple(int(text, 16) for text in action["action_data"])
        )
    return found


def _initial_match(part: Json, width: int) -> FieldMatch | RangeMatch:
    full = (1 << width) - 1
    if part["match_type"] == "range":
        return RangeMatch(int(part["start"], 16), int(part["end"], 16))
    mask = int(part["mask"], 16) if "mask" in part else full
    if part["match_type"] == "lpm":
        mask = full << width - part["prefix_length"] & full
    return FieldMatch(int(part["key"], 16) & mask, mask)
