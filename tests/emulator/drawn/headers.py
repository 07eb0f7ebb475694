"""Drawn headers: types of odd widths, a stack, a union, a stack of unions, and headers of variable length."""

from typing import Any

from tests.emulator.drawn.dice import Dice
from tests.emulator.programs import Json, trainyard_json

WIDTHS = (1, 2, 3, 4, 7, 8, 8, 9, 12, 16, 16, 24, 31, 32, 32, 48, 63, 64, 64, 65, 100, 128)
VARIABLE = ("v0", "v1")


class DrawnHeaders:
    """Header types by name, and the types of headers; metadata is in ``scalars``, and leaves in ``dump``."""

    def __init__(self, dice: Dice) -> None:
        standard = next(kind for kind in trainyard_json()["header_types"] if kind["name"] == "standard_metadata")
        self.types: dict[str, list[list[Any]]] = {"standard_metadata": standard["fields"]}
        for number in range(dice.random.randint(3, 4)):
            fields = [[f"f{n}", dice.some(WIDTHS), dice.often(0.2)] for n in range(dice.random.randint(1, 5))]
            short = -sum(bits for _, bits, _ in fields) % 8
            self.types[f"type{number}"] = fields + ([["pad", short, False]] if short else [])
        self.types["scalars"] = [
            *([f"m{n}", dice.some(WIDTHS), dice.often(0.25)] for n in range(6)),
            ["count", 8, False],
            ["flag", 1, False],
        ]
        dump = [[name, bits, False] for name, bits, _ in self.types["scalars"]]
        dump += [["parser_error", 32, False], ["checksum_error", 1, False]]
        self.types["dump"] = [*dump, ["pad", -sum(bits for _, bits, _ in dump) % 8 or 8, False]]
        types = [name for name in self.types if name.startswith("type")]
        self.kinds = {f"h{n}": dice.some(types) for n in range(4)}
        kind = dice.some(types)
        self.stack = [f"s[{n}]" for n in range(dice.random.randint(2, 4))]
        self.kinds |= dict.fromkeys(self.stack, kind)
        self.union = ["u.a", "u.b"]
        self.kinds |= {name: dice.some(types) for name in self.union}
        sizes, members = dice.random.randint(2, 3), {member: dice.some(types) for member in "ab"}
        self.unions = [[f"w[{number}].{member}" for member in members] for number in range(sizes)]
        self.kinds |= {name: members[name[-1]] for union in self.unions for name in union}
        self.plain = [name for name in self.kinds if name.startswith("h")]
        fixed_bits = dice.some([0, 8, 40])
        self.types["variable"] = [["f0", fixed_bits, False]] if fixed_bits else []
        self.most_bytes = dice.some([1, 7, 8, 9, 20])

    def fields_of(self, header: str) -> list[list[Any]]:
        """Fields of a header: of each its name, width and sign."""
        return self.types["scalars" if header == "scalars" else self.kinds[header]]

    def header_type(self, name: str) -> Json:
        """A header type as the program has it."""
        fields = self.types[name]
        if name != "variable":
            return {"name": name, "fields": fields}
        fixed_bytes = sum(bits for _, bits, _ in fields) // 8
        return {"name": name, "fields": [*fields, ["rest", "*"]], "max_length": fixed_bytes + self.most_bytes}
