"""Drawn parsers: states that extract, look ahead, verify, advance and select."""

from emulator.cells import Member
from tests.emulator.drawn.actions import DrawnActions
from tests.emulator.drawn.dice import ODD_BYTES, Dice
from tests.emulator.drawn.headers import VARIABLE, DrawnHeaders
from tests.emulator.drawn.matches import DrawnMatches
from tests.emulator.drawn.nodes import constant, expression, field_node, statement
from tests.emulator.drawn.values import DrawnValues
from tests.emulator.programs import Json


class DrawnParser:
    """Draws the states of a parser, and the members of the value sets that they look up."""

    def __init__(
        self,
        dice: Dice,
        headers: DrawnHeaders,
        values: DrawnValues,
        actions: DrawnActions,
        matches: DrawnMatches,
    ) -> None:
        self._some, self._often, self._random = dice.some, dice.often, dice.random
        self._headers = headers
        self._values = values
        self._actions = actions
        self._matches = matches
        self.value_sets: dict[str, tuple[Member, ...]] = {}

    def states(self, sets: list[Json]) -> list[Json]:
        """States of a parser, which also draws the value ``sets`` that they look up."""
        names = [f"state{number}" for number in range(self._random.randint(2, 5))]
        states = []
        for number, name in enumerate(names):
            later = [*names[number + 1 :], None]
            operations: list[Json] = []
            in_stack = self._often(0.3)
            extracted = None
            if in_stack:
                operations.append(statement("extract", {"type": "stack", "value": "s"}))
                later.append(name)
            elif self._often(0.2):
                operations.append(statement("extract", {"type": "union_stack", "value": ["w", self._some("ab")]}))
            elif self._often(0.85):
                extracted = self._some([*self._headers.plain, *self._headers.union])
                operations.append(statement("extract", {"type": "regular", "value": extracted}))
            if self._often(0.3):
                bits = (
                    expression("<<", self._values.index(5), constant(3)) if self._often(0.9) else self._values.index(6)
                )
                header = {"type": "regular", "value": self._some(VARIABLE)}
                operations.append(statement("extract_VL", header, bits))
            operations += [self._parser_operation() for _ in range(self._random.randrange(3))]
            key, width = self._select(extracted, in_stack)
            transitions = []
            for _ in range(self._random.randint(1, 3) if key else 0):
                value = int.from_bytes(bytes(self._some(ODD_BYTES) for _ in range(width)), "big")
                mask = int.from_bytes(bytes(self._some([0, 1, 0xFF, 0x81]) for _ in range(width)), "big")
                text = None if self._often(0.3) else f"0x{mask:0{2 * width}x}"
                transitions.append(
                    {
                        "type": "hexstr",
                        "value": f"0x{value:0{2 * width}x}",
                        "mask": text,
                        "next_state": self._some(later),
                    }
                )
            if key and self._often(0.3):
                name_of_set, following = f"set{number}", self._some(later)
                sets.append({"name": name_of_set, "id": number, "max_size": 4})
                looked_up = {"type": "parse_vset", "value": name_of_set, "mask": None, "next_state": following}
                transitions.insert(self._random.randrange(len(transitions) + 1), looked_up)
                self.value_sets[name_of_set] = self._matches.members(key)
            if self._often(0.9) or not key:
                following = later[0]
                transitions.append({"type": "default", "value": None, "mask": None, "next_state": following})
            states.append(
                {
                    "name": name,
                    "parser_ops": operations,
                    "transition_key": key if transitions[0]["type"] != "default" else [],
                    "transitions": transitions,
                }
            )
        return states

    def turn_back(self, states: list[Json]) -> None:
        """Let some transitions lead to any state, and some states extract nothing: packets go round in such loops."""
        for state in states:
            if self._often(0.5):
                state["parser_ops"] = [node for node in state["parser_ops"] if not node["op"].startswith("extract")]
            for transition in state["transitions"]:
                if self._often(0.3):
                    transition["next_state"] = self._some(states)["name"]

    def _parser_operation(self) -> Json:
        target = field_node("scalars", self._some(self._headers.types["scalars"])[0])
        kind = self._random.randrange(6)
        if kind == 0:
            offset, bits = self._random.randrange(12), self._random.randint(1, 70)
            return statement("set", target, {"type": "lookahead", "value": [offset, bits]})
        if kind == 1:
            return statement("verify", self._values.condition(1), constant(7))
        if kind == 2:
            steps = expression("<<", self._values.index(2), constant(3)) if self._often(0.8) else self._values.index(4)
            return statement("advance", steps)
        if kind == 3:
            return statement(
                "primitive", self._actions.on_headers() if self._often(0.5) else self._actions.assignment()
            )
        return statement("set", target, self._values.number(2))

    def _select(self, extracted: str | None, in_stack: bool) -> tuple[list[Json], int]:
        """Key of a select, with its bytes."""
        key, width = [], 0
        for _ in range(self._random.randrange(3)):
            kind = self._random.randrange(3)
            if kind == 0:
                offset, bits = self._random.randrange(9), self._random.randint(1, 20)
                key.append({"type": "lookahead", "value": [offset, bits]})
            elif in_stack and kind == 1:
                name, bits, _ = self._some(self._headers.fields_of(self._headers.stack[0]))
                key.append({"type": "stack_field", "value": ["s", name]})
            else:
                header = extracted or "scalars"
                name, bits, _ = self._some(self._headers.fields_of(header))
                key.append(field_node(header, name))
            width += (bits + 7) // 8
        return key, width
