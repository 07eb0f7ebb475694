"""Drawn entries of tables and members of value sets: what their keys match, and the arguments of actions."""

from emulator.cells import Member
from emulator.entries import ActionCall, EntryKey, FieldMatch, RangeMatch
from tests.emulator.drawn.dice import Dice
from tests.emulator.drawn.headers import DrawnHeaders
from tests.emulator.programs import Json


class DrawnMatches:
    """Draws matches on fields of headers."""

    def __init__(self, dice: Dice, headers: DrawnHeaders) -> None:
        self._some, self._value, self._random = dice.some, dice.value, dice.random
        self._headers = headers

    def arguments(self, action: Json) -> tuple[int, ...]:
        """Arguments of an action."""
        widths = [parameter["bitwidth"] for parameter in action["runtime_data"]]
        return tuple(self._value(bits) for bits in widths)

    def entries(self, table: Json, actions: dict[str, Json]) -> dict[EntryKey, ActionCall]:
        """Entries of a table."""
        found = {}
        overlaps = any(part["match_type"] in ("ternary", "range", "optional") for part in table["key"])
        for number in range(self._random.randrange(8)):
            match = tuple(self._match(part) for part in table["key"])
            name = self._some(table["actions"])
            found[EntryKey(match, number + 1 if overlaps else 0)] = ActionCall(name, self.arguments(actions[name]))
        return found

    def members(self, key: list[Json]) -> tuple[Member, ...]:
        """Members of a value set."""
        widths = [self._key_bits(part) for part in key]
        kinds = [self._some(["exact", "lpm", "ternary", "range", "optional"]) for _ in widths]
        drawn = [tuple(map(self._match_of, kinds, widths)) for _ in range(self._random.randrange(5))]
        return tuple(dict.fromkeys(drawn))

    def _key_bits(self, part: Json) -> int:
        if part["type"] == "lookahead":
            return int(part["value"][1])
        header, name = part["value"]
        return next(
            bits
            for n, bits, _ in self._headers.fields_of(self._headers.stack[0] if header == "s" else header)
            if n == name
        )

    def _match(self, part: Json) -> FieldMatch | RangeMatch:
        header, name = part["target"]
        bits = 1 if name == "$valid$" else next(bits for n, bits, _ in self._headers.fields_of(header) if n == name)
        return self._match_of(part["match_type"], bits)

    def _match_of(self, kind: str, bits: int) -> FieldMatch | RangeMatch:
        full = (1 << bits) - 1
        match kind:
            case "range":
                low, high = sorted([self._value(bits), self._value(bits)])
                return RangeMatch(low, high)
            case "lpm":
                mask = full & ~(full >> self._random.randint(0, bits))
            case "ternary":
                mask = self._some([0, full, self._value(bits)])
            case "optional":
                mask = self._some([0, full])
            case _:
                mask = full
        return FieldMatch(self._value(bits) & mask, mask)
