"""Programs drawn at random, as p4c could have made them: parsers, actions, tables and control flows of all constructs.

A drawn program shows all that it has computed: its last node copies the metadata into a header that leaves.
"""

from dataclasses import dataclass
from dataclasses import field as dataclass_field
from random import Random

from emulator.cells import Member
from emulator.entries import ActionCall, EntryKey
from tests.emulator.drawn.actions import DrawnActions
from tests.emulator.drawn.dice import ODD_BYTES, Dice
from tests.emulator.drawn.headers import VARIABLE, DrawnHeaders
from tests.emulator.drawn.matches import DrawnMatches
from tests.emulator.drawn.nodes import constant, expression, field_node, header_node
from tests.emulator.drawn.parsers import DrawnParser
from tests.emulator.drawn.pipelines import DrawnPipelines
from tests.emulator.drawn.values import DrawnValues
from tests.emulator.programs import Json

ERRORS = [
    ["NoError", 0],
    ["PacketTooShort", 1],
    ["StackOutOfBounds", 3],
    ["HeaderTooShort", 4],
    ["ParserInvalidArgument", 6],
    ["Bad", 7],
]
_ALGORITHMS = ("crc32", "crc16", "csum16", "xor16", "identity")


@dataclass
class Scenario:
    """A program with what its controller writes, and the packets that come then."""

    program: Json
    entries: dict[str, dict[EntryKey, ActionCall]] = dataclass_field(default_factory=dict)
    value_sets: dict[str, tuple[Member, ...]] = dataclass_field(default_factory=dict)
    packets: list[bytes] = dataclass_field(default_factory=list)


def drawn(seed: int, num_packets: int = 8) -> Scenario:
    """The scenario of a seed."""
    return _Drawing(Random(seed)).scenario(num_packets)


class _Drawing:
    def __init__(self, random: Random) -> None:
        dice = Dice(random)
        self._some, self._often, self._random = dice.some, dice.often, dice.random
        self._headers = headers = DrawnHeaders(dice)
        self._values = values = DrawnValues(dice, headers)
        self._matches = matches = DrawnMatches(dice, headers)
        self._actions = DrawnActions(dice, headers, values)
        self._pipelines = DrawnPipelines(dice, headers, values, matches)
        self._parser = DrawnParser(dice, headers, values, self._actions, matches)

    def scenario(self, num_packets: int) -> Scenario:
        """A whole scenario."""
        sets: list[Json] = []
        states = self._parser.states(sets)
        actions = self._actions.actions()
        drawn_actions, leave, show = actions[:-2], actions[-2], actions[-1]
        pipelines = [
            self._pipelines.pipeline("ingress", drawn_actions, leave, None),
            self._pipelines.pipeline("egress", drawn_actions, _nothing(actions), show),
        ]
        names = ["standard_metadata", "scalars", *self._headers.kinds, *VARIABLE, "dump"]
        kinds = {"standard_metadata": "standard_metadata", "scalars": "scalars", "dump": "dump", **self._headers.kinds}
        kinds |= dict.fromkeys(VARIABLE, "variable")
        headers = [
            {"name": name, "id": number, "header_type": kinds[name], "metadata": number < 2}
            for number, name in enumerate(names)
        ]
        order = [*self._headers.kinds, *VARIABLE]
        self._random.shuffle(order)
        program = {
            "program": "drawn",
            "header_types": [self._headers.header_type(name) for name in self._headers.types],
            "headers": headers,
            "header_stacks": [
                {
                    "name": "s",
                    "id": 0,
                    "header_type": self._headers.kinds[self._headers.stack[0]],
                    "size": len(self._headers.stack),
                    "header_ids": [names.index(name) for name in self._headers.stack],
                }
            ],
            "header_union_types": [
                {"name": "w_t", "headers": [[member, self._headers.kinds[f"w[0].{member}"]] for member in "ab"]},
            ],
            "header_unions": [
                {
                    "name": "u",
                    "id": 0,
                    "union_type": "u_t",
                    "header_ids": [names.index(name) for name in self._headers.union],
                },
                *(
                    {
                        "name": f"w[{number}]",
                        "id": number + 1,
                        "union_type": "w_t",
                        "header_ids": [names.index(name) for name in union],
                    }
                    for number, union in enumerate(self._headers.unions)
                ),
            ],
            "header_union_stacks": [
                {
                    "name": "w",
                    "id": 0,
                    "union_type": "w_t",
                    "size": len(self._headers.unions),
                    "header_union_ids": [number + 1 for number in range(len(self._headers.unions))],
                }
            ],
            "errors": ERRORS,
            "parsers": [{"name": "parser", "id": 0, "init_state": "state0", "parse_states": states}],
            "parse_vsets": sets,
            "deparsers": [{"name": "deparser", "id": 0, "order": ["dump", *order]}],
            "counter_arrays": [{"name": "cells", "id": 0, "size": 6, "is_direct": False}],
            "register_arrays": [
                {"name": "narrow", "id": 0, "size": 5, "bitwidth": 5},
                {"name": "broad", "id": 1, "size": 7, "bitwidth": self._some([64, 100])},
            ],
            "calculations": [self._calculation(f"hash{number}") for number in range(2)],
            "checksums": self._checksums(),
            "field_lists": [],
            "actions": actions,
            "pipelines": pipelines,
        }
        packets = [self._packet() for _ in range(num_packets)]
        entries = {
            table["name"]: self._matches.entries(table, {action["name"]: action for action in actions})
            for pipeline in pipelines
            for table in pipeline["tables"]
            if table["key"]
        }
        if self._often(0.3):
            self._parser.turn_back(states)
        return Scenario(program, entries, self._parser.value_sets, packets)

    def _calculation(self, name: str) -> Json:
        inputs: list[Json] = [field_node("scalars", self._some(self._headers.types["scalars"])[0]) for _ in range(2)]
        header = self._some(self._headers.kinds)
        inputs += [field_node(header, name) for name, *_ in self._headers.fields_of(header)]
        whole = sum(
            bits for entry in inputs[:2] for n, bits, _ in self._headers.types["scalars"] if n == entry["value"][1]
        )
        if self._often(0.2):
            inputs.append(header_node(self._some([*self._headers.kinds, *VARIABLE])))
        if self._often(0.3):
            inputs.append(field_node(self._some(VARIABLE), "rest"))
        inputs.insert(2, {**constant(1), "bitwidth": -whole % 8 or 8})
        return {"name": name, "id": 0, "algo": self._some(_ALGORITHMS), "input": inputs}

    def _checksums(self) -> list[Json]:
        header = self._some(self._headers.plain)
        return [
            {
                "name": f"checksum{number}",
                "id": number,
                "target": [header, self._some([name for name, *_ in self._headers.fields_of(header)])],
                "type": "generic",
                "calculation": f"hash{number}",
                "verify": number == 0,
                "update": number == 1,
                "if_cond": expression("valid", None, header_node(header))
                if self._often(0.7)
                else self._values.condition(2),
            }
            for number in range(2)
            if self._often(0.5)
        ]

    def _packet(self) -> bytes:
        size = self._some([0, 1, 5, 20, 40, 60, 80, 100])
        return bytes(self._some(ODD_BYTES) if self._often(0.8) else self._random.getrandbits(8) for _ in range(size))


def _nothing(actions: list[Json]) -> Json:
    made = {"name": "nothing", "id": len(actions), "runtime_data": [], "primitives": []}
    actions.append(made)
    return made
