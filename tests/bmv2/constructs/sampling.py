"""Random sessions: packets in which the interesting values are common, and entries that they meet."""

from collections.abc import Callable
from random import Random

from finsy.proto import p4r

from emulator.compiler.tables import MatchKind
from emulator.entries import ActionCall, EntryKey, FieldMatch, RangeMatch
from emulator.p4runtime.table_actions import encode_table_action
from emulator.p4runtime.table_types import MatchField
from emulator.p4runtime.translate import encode_key
from tests.bmv2.constructs.programs import construct
from tests.bmv2.session import Packet, Session

PACKETS_PER_SESSION = 60
_ENTRIES_PER_TABLE = 12
_PORT = 1
_WRITTEN_TABLES = ("ingress.range_", "ingress.ternary_", "ingress.lpm_", "ingress.exact_")


def sample(name: str, seed: int) -> Session:
    """The session of a seed for a program."""
    random = Random(f"{name} {seed}")
    packets = tuple(Packet(_PORT, _cut(_PACKETS[name](random), random)) for _ in range(PACKETS_PER_SESSION))
    return Session(tuple(_entries(random)) if name == "tables" else (), packets)


def _cut(octets: bytes, random: Random) -> bytes:
    return octets[: random.randrange(1, len(octets))] if random.random() < 0.06 else octets


def _packed(*fields: tuple[int, int]) -> bytes:
    """Values and widths as the bytes that they are on the wire."""
    value = width = 0
    for number, bits in fields:
        value, width = value << bits | number & (1 << bits) - 1, width + bits
    return value.to_bytes(width // 8, "big")


def _number(random: Random, bits: int) -> int:
    """Mostly near the ends of what so many bits can hold, as signed numbers too, or with few bits set."""
    full, half = (1 << bits) - 1, 1 << bits - 1
    match random.randrange(4):
        case 0:
            return random.choice((0, 1, 2, full, full - 1, half, half - 1, half + 1))
        case 1:
            return random.getrandbits(random.randrange(1, bits + 1))
        case 2:
            return full ^ random.getrandbits(random.randrange(1, bits + 1))
        case _:
            return random.getrandbits(bits)


# ---- arithmetic ------------------------------------------------------------------------------------------------------


def _operands(random: Random) -> bytes:
    operation = random.choice((*range(13), 0x80, 0xFF))
    widest, signed = _number(random, 128), _number(random, 16)
    if random.random() < 0.15:
        widest, signed = random.choice(((1 << 80, 0), (0xFF << 120, 0), (0, 5)))
    ahead = (widest << 72 | _number(random, 72)) if random.random() < 0.2 else _number(random, 200)
    fields = (operation, 8), (_number(random, 8) if random.random() < 0.5 else random.randrange(130), 8)
    wide = (_number(random, 100), 100), (random.randrange(16), 4), (widest, 128), (signed, 16)
    return _packed(*fields, *wide, (_number(random, 72), 72), (_number(random, 64), 64), (ahead, 200))


# ---- stacks ----------------------------------------------------------------------------------------------------------


def _stack(random: Random) -> bytes:
    special = random.choice((0xE0, 0xE1, 0xE2, 0xE3, 0xEE, 0xF3, 0xFB, 0xFC))
    operation = special if random.random() < 0.3 else random.randrange(16) | random.choice((0, 0x30))
    index = random.choice((8, 16, 12)) if operation == 0xE1 and random.random() < 0.7 else random.randrange(5)
    count = random.choice((1, 2, 3, 4, 4, 5))
    # The last label, if any, says that it is the last.
    labels = [
        ((_number(random, 20), 20), (random.randrange(8), 3), (number == count - 1, 1), (random.getrandbits(8), 8))
        for number in range(count)
    ]
    if random.random() < 0.2 and count > 1:
        labels[1] = labels[0]
    choice = random.choice(
        (_packed((1, 8), (random.getrandbits(8), 8)), _packed((2, 8), (_number(random, 24), 24)), b"")
    )
    octets = b"".join(_packed(*label) for label in labels)
    skipped = bytes(index // 8) if operation == 0xE1 else b""
    return _packed((operation, 8), (index, 8)) + skipped + octets + choice + random.randbytes(random.randrange(6))


# ---- tables ----------------------------------------------------------------------------------------------------------

_KINDS = (1, 2, 3)
_LABELS = (0x12345, 0x12346, 1 << 99, (1 << 100) - 1)
_ADDRESSES = (5, 0x20 << 64, 0x20 << 64 | 1, 1 << 127, (1 << 128) - 1)
_VALUES: dict[str, tuple[int, ...]] = {
    "kind": _KINDS,
    "port": (7, 99, 100, 150, 200, 201, 300, 301),
    "wide_range": (0, 1 << 64, (1 << 64) - 1, (1 << 72) - 1, 1 << 71),
    "address": _ADDRESSES,
    "label": _LABELS,
    "nibble": (2, 3),
    "signed": (5, 0xFFFE),
}
_WIDTHS = {"kind": 8, "port": 16, "wide_range": 72, "address": 128, "label": 100, "nibble": 4, "signed": 16}


def _value(random: Random, field: str) -> int:
    return random.choice(_VALUES[field]) if random.random() < 0.85 else _number(random, _WIDTHS[field])


def _key(random: Random) -> bytes:
    return _packed(*((_value(random, field), bits) for field, bits in _WIDTHS.items()))


def _entries(random: Random) -> list[p4r.Entity]:
    schema = construct("tables").pipeline.schema
    entities = []
    for table in schema.tables.values():
        if table.name not in _WRITTEN_TABLES:
            continue
        found: dict[EntryKey, ActionCall] = {}
        for priority in random.sample(range(1, 100), _ENTRIES_PER_TABLE):
            match = tuple(_match(random, field) for field in table.match_fields)
            key = EntryKey(match, priority if table.has_priorities else 0)
            action = next(a for a in schema.actions.values() if a.name == table.name.rstrip("_").replace(".", ".set_"))
            arguments = tuple(_number(random, parameter.width_bits) for parameter in action.parameters)
            found[key] = ActionCall(action.name, arguments)
        for key, call in found.items():
            entry = encode_key(table, key)
            entry.action.CopyFrom(encode_table_action(schema, call))
            entities.append(p4r.Entity(table_entry=entry))
    return entities


def _match(random: Random, field: MatchField) -> FieldMatch | RangeMatch:
    name, full = field.name.rpartition(".")[2], field.full_mask
    value = _value(random, name)
    match field.kind:
        case MatchKind.RANGE:
            ends = random.choice(((0, full), (value, value), sorted((value, _value(random, name)))))
            return RangeMatch(*ends)
        case MatchKind.LPM:
            mask = full & ~(full >> random.choice((0, 1, 8, 63, 64, 65, field.width_bits)))
        case MatchKind.TERNARY:
            mask = random.choice((0, full, 1 << field.width_bits - 1, full >> 40, _number(random, field.width_bits)))
        case MatchKind.OPTIONAL:
            mask = random.choice((0, full))
        case _:
            mask = full
    return FieldMatch(value & mask, mask)


_PACKETS: dict[str, Callable[[Random], bytes]] = {"arithmetic": _operands, "stacks": _stack, "tables": _key}
