"""Drawn control flows: tables with keys and actions, conditions, and what follows them."""

from tests.emulator.constructs import keyless
from tests.emulator.drawn.dice import Dice
from tests.emulator.drawn.headers import DrawnHeaders
from tests.emulator.drawn.matches import DrawnMatches
from tests.emulator.drawn.values import DrawnValues
from tests.emulator.programs import Json


class DrawnPipelines:
    """Draws pipelines."""

    def __init__(self, dice: Dice, headers: DrawnHeaders, values: DrawnValues, matches: DrawnMatches) -> None:
        self._some, self._often, self._random = dice.some, dice.often, dice.random
        self._headers = headers
        self._values = values
        self._matches = matches

    def _key(self) -> list[Json]:
        key, has_prefix = [], False
        for number in range(self._random.randint(1, 3)):
            header = self._some(["scalars", *self._headers.kinds])
            name, *_ = self._some(self._headers.fields_of(header))
            kind = self._some(["exact", "exact", "lpm", "ternary", "range", "optional"])
            if header != "scalars" and self._often(0.2):
                name, kind = "$valid$", self._some(["exact", "ternary"])
            kind = "ternary" if kind == "lpm" and has_prefix else kind
            has_prefix |= kind == "lpm"
            key.append({"match_type": kind, "name": f"k{number}", "target": [header, name], "mask": None})
        return key

    def _table(self, name: str, later: list[str | None], actions: list[Json], key: list[Json]) -> Json:
        own = self._random.sample(actions, self._random.randint(1, 3))
        kind = self._random.randrange(3)
        ways: dict[str, str | None] = {action["name"]: later[0] for action in own}
        base: str | None = later[0]
        if kind == 0:
            ways, base = {"__HIT__": self._some(later), "__MISS__": self._some(later)}, None
        elif kind == 1:
            ways = {action["name"]: self._some(later) for action in own}
        default = self._some([*own, None])
        table = {
            "name": name,
            "key": key,
            "match_type": "exact",
            "type": "simple",
            "max_size": 64,
            "with_counters": bool(key) and self._often(0.5),
            "support_timeout": self._often(0.2),
            "direct_meters": None,
            "action_ids": [action["id"] for action in own],
            "actions": [action["name"] for action in own],
            "base_default_next": base,
            "next_tables": ways,
        }
        if default is not None:
            data = [hex(value) for value in self._matches.arguments(default)]
            table["default_entry"] = {"action_id": default["id"], "action_const": self._often(0.5), "action_data": data}
        return table

    def pipeline(self, name: str, actions: list[Json], first: Json, last: Json | None) -> Json:
        """A pipeline that begins with one action, and ends with another where there is one."""
        names: list[str | None] = [f"{name}{number}" for number in range(self._random.randint(2, 5))]
        ending: list[str | None] = [f"{name}_end"] if last else [None]
        tables, conditions = [], []
        for number, node in enumerate(names):
            assert node is not None
            later = [*names[number + 1 :], *ending]
            if self._often(0.3):
                conditions.append(
                    {
                        "name": node,
                        "expression": self._values.condition(3),
                        "true_next": self._some(later),
                        "false_next": self._some(later),
                    }
                )
            else:
                tables.append(self._table(node, later, actions, self._key() if self._often(0.7) else []))
        tables.append(keyless(f"{name}_begin", first["id"], first["name"], names[0]))
        if last:
            tables.append(keyless(f"{name}_end", last["id"], last["name"], None))
        return {
            "name": name,
            "init_table": f"{name}_begin",
            "tables": tables,
            "action_profiles": [],
            "conditionals": conditions,
        }
