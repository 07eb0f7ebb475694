"""Tables of a BMv2 JSON: their keys packed into words, their actions, and the entries that the program has itself."""

from emulator.compiler.layout import WORD_BITS, Json, Layout, UnsupportedError
from emulator.compiler.tables import OVERLAPPING, Action, KeyField, MatchKind, Meter, Profile, Table
from emulator.entries import ActionCall, EntryKey, FieldMatch, RangeMatch

HIGHEST_PRIORITY = (1 << 31) - 1
"""Entry n of the program has this priority less n, as on BMv2: before any entry of a controller."""


def read_table(
    node: Json,
    number: int,
    layout: Layout,
    actions: tuple[Action, ...],
    profile: Profile | None,
    action_numbers: dict[int, int],
    meters: dict[str, Meter],
) -> Table:
    """Return a table; ``profile`` is where it takes its actions from, ``meters`` are those of the program.

    Raises UnsupportedError for kinds of match that the emulator does not execute, and entries that do not fit.
    """
    default = node.get("default_entry")
    key = _key(node, layout)
    named = {
        action_numbers[identifier]: name for identifier, name in zip(node["action_ids"], node["actions"], strict=True)
    }
    entries = [_entry(entry, key, action_numbers, named) for entry in node.get("entries") or ()]
    _require_room(node, [key for key, _ in entries])
    return Table(
        name=node["name"],
        number=number,
        key=key,
        actions=actions,
        size=node["max_size"],
        profile=profile,
        has_counters=node["with_counters"],
        meter=meters[node["direct_meters"]] if node.get("direct_meters") else None,
        default=default
        and (action_numbers[default["action_id"]], tuple(int(text, 16) for text in default["action_data"])),
        has_constant_default=bool(default and default.get("action_const")),
        ages=bool(node.get("support_timeout")) and bool(key),
        entries=tuple(entries),
    )


def _require_room(node: Json, keys: list[EntryKey]) -> None:
    """Raise UnsupportedError if a table cannot hold the program's entries."""
    first: dict[EntryKey, int] = {}
    for number, (key, entry) in enumerate(zip(keys, node.get("entries") or (), strict=True)):
        if first.setdefault(key, number) != number:
            raise UnsupportedError(
                f"entry {number} of table {node['name']!r}, with the key of entry {first[key]},", entry
            )
    if len(keys) > node["max_size"]:
        raise UnsupportedError(f"table {node['name']!r} of size {node['max_size']} with {len(keys)} entries", node)


def _entry(
    node: Json, key: tuple[KeyField, ...], action_numbers: dict[int, int], names: dict[int, str]
) -> tuple[EntryKey, ActionCall]:
    """Return an entry of the program."""
    match = tuple(_match(part, field) for part, field in zip(node["match_key"], key, strict=True))
    has_priority = any(field.kind in OVERLAPPING for field in key)
    action = node["action_entry"]
    arguments = tuple(int(text, 16) for text in action["action_data"])
    call = ActionCall(names[action_numbers[action["action_id"]]], arguments)
    return EntryKey(match, HIGHEST_PRIORITY - node["priority"] if has_priority else 0), call


def _match(part: Json, field: KeyField) -> FieldMatch | RangeMatch:
    full = field.field.mask
    match part["match_type"]:
        case "range":
            return RangeMatch(int(part["start"], 16), int(part["end"], 16))
        case "lpm":
            mask = full & ~(full >> part["prefix_length"])
        case "ternary" | "optional" if "mask" in part:
            mask = int(part["mask"], 16)
        case _:
            mask = full
    return FieldMatch(int(part["key"], 16) & mask, mask)


def _key(node: Json, layout: Layout) -> tuple[KeyField, ...]:
    """Pack the key's fields into words, in order."""
    if sum(key["match_type"] == MatchKind.LPM for key in node["key"]) > 1:
        raise UnsupportedError(f"more than one LPM field in the key of table {node['name']!r}", node)
    fields: list[KeyField] = []
    current, used = -1, WORD_BITS
    for key in node["key"]:
        if key["match_type"] not in set(MatchKind):
            name = key.get("name") or ".".join(key["target"])
            raise UnsupportedError(f"{key['match_type']} match on {name!r} in table {node['name']!r}", node)
        kind, field = MatchKind(key["match_type"]), layout.field(key["target"])
        if field.most_bytes:
            raise UnsupportedError(f"match on the variable-length field {field.name} in table {node['name']!r}", node)
        alone = kind in (MatchKind.LPM, MatchKind.RANGE) or len(field.words) > 1
        if used + field.bits > WORD_BITS or alone:
            current, used = current + 1, 0
        visible = int(key["mask"], 16) if key.get("mask") else field.mask
        header = layout.headers[key["target"][0]]
        valid_word = None if header.metadata or key["target"][1] == "$valid$" else header.valid_word
        # Tables that p4c makes of a switch over a value have keys without a name.
        fields.append(KeyField(key.get("name") or field.name, kind, field, current, used, visible, valid_word))
        current += len(field.words) - 1
        used = WORD_BITS if alone else used + field.bits
    return tuple(fields)
