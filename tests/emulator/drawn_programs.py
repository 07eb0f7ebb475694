"""Programs drawn at random, as p4c could have made them: parsers, actions, tables and control flows of all constructs.

A drawn program shows all that it has computed: its last node copies the metadata into a header that leaves.
"""

from dataclasses import dataclass, field
from random import Random
from typing import Any

from emulator.cells import Member
from emulator.entries import ActionCall, EntryKey, FieldMatch, RangeMatch
from tests.emulator.constructs import keyless
from tests.emulator.programs import Json, trainyard_json

WIDTHS = (1, 2, 3, 4, 7, 8, 8, 9, 12, 16, 16, 24, 31, 32, 32, 48, 63, 64, 64, 65, 100, 128)
ODD_BYTES = (0x00, 0x00, 0x01, 0x01, 0x02, 0x7F, 0x80, 0xFF)
ERRORS = [
    ["NoError", 0],
    ["PacketTooShort", 1],
    ["StackOutOfBounds", 3],
    ["HeaderTooShort", 4],
    ["ParserInvalidArgument", 6],
    ["Bad", 7],
]
VARIABLE = ("v0", "v1")
DROP_PORT = 511
_ALGORITHMS = ("crc32", "crc16", "csum16", "xor16", "identity")


@dataclass
class Scenario:
    """A program with what its controller writes, and the packets that come then."""

    program: Json
    entries: dict[str, dict[EntryKey, ActionCall]] = field(default_factory=dict)
    value_sets: dict[str, tuple[Member, ...]] = field(default_factory=dict)
    packets: list[bytes] = field(default_factory=list)


def drawn(seed: int, num_packets: int = 8) -> Scenario:
    """The scenario of a seed."""
    return _Drawing(Random(seed)).scenario(num_packets)


def _constant(value: int) -> Json:
    return {"type": "hexstr", "value": hex(value)}


def _op(operation: str, left: Json | None, right: Json, **more: Json) -> Json:
    return {"type": "expression", "value": {"op": operation, "left": left, "right": right, **more}}


def _do(operation: str, *parameters: Json) -> Json:
    return {"op": operation, "parameters": list(parameters)}


def _field(header: str, name: str) -> Json:
    return {"type": "field", "value": [header, name]}


def _header(name: str) -> Json:
    return {"type": "header", "value": name}


class _Drawing:
    def __init__(self, random: Random) -> None:
        self.random = random
        standard = next(kind for kind in trainyard_json()["header_types"] if kind["name"] == "standard_metadata")
        self.types: dict[str, list[list[Any]]] = {"standard_metadata": standard["fields"]}
        self.kinds: dict[str, str] = {}
        self.stack: list[str] = []
        self.union: list[str] = []
        self.unions: list[list[str]] = []
        self.value_sets: dict[str, tuple[Member, ...]] = {}
        self.parameters: list[int] = []

    def some(self, items: Any) -> Any:
        """One of the items."""
        return self.random.choice(list(items))

    def often(self, share: float) -> bool:
        """True in such a share of cases."""
        return self.random.random() < share

    # ---- headers ----------------------------------------------------------------------------------------------------

    def _draw_headers(self) -> None:
        for number in range(self.random.randint(3, 4)):
            fields = [[f"f{n}", self.some(WIDTHS), self.often(0.2)] for n in range(self.random.randint(1, 5))]
            short = -sum(bits for _, bits, _ in fields) % 8
            self.types[f"type{number}"] = fields + ([["pad", short, False]] if short else [])
        self.types["scalars"] = [
            *([f"m{n}", self.some(WIDTHS), self.often(0.25)] for n in range(6)),
            ["count", 8, False],
            ["flag", 1, False],
        ]
        dump = [[name, bits, False] for name, bits, _ in self.types["scalars"]]
        dump += [["parser_error", 32, False], ["checksum_error", 1, False]]
        self.types["dump"] = [*dump, ["pad", -sum(bits for _, bits, _ in dump) % 8 or 8, False]]
        types = [name for name in self.types if name.startswith("type")]
        self.kinds = {f"h{n}": self.some(types) for n in range(4)}
        kind = self.some(types)
        self.stack = [f"s[{n}]" for n in range(self.random.randint(2, 4))]
        self.kinds |= dict.fromkeys(self.stack, kind)
        self.union = ["u.a", "u.b"]
        self.kinds |= {name: self.some(types) for name in self.union}
        sizes, members = self.random.randint(2, 3), {member: self.some(types) for member in "ab"}
        self.unions = [[f"w[{number}].{member}" for member in members] for number in range(sizes)]
        self.kinds |= {name: members[name[-1]] for union in self.unions for name in union}
        self.plain = [name for name in self.kinds if name.startswith("h")]
        fixed_bits = self.some([0, 8, 40])
        self.types["variable"] = [["f0", fixed_bits, False]] if fixed_bits else []
        self.most_bytes = self.some([1, 7, 8, 9, 20])

    def fields_of(self, header: str) -> list[list[Any]]:
        return self.types["scalars" if header == "scalars" else self.kinds[header]]

    # ---- values -----------------------------------------------------------------------------------------------------

    def place(self) -> Json:
        """A field that can be read and written."""
        if self.often(0.5):
            return _field("scalars", self.some(self.types["scalars"])[0])
        if self.often(0.15):
            index = _constant(self.random.randint(0, len(self.stack))) if self.often(0.5) else self.index(2)
            if self.often(0.3):
                index = _field("scalars", self.some(self.types["scalars"])[0])
            number = self.random.randrange(len(self.fields_of(self.stack[0])))
            element = _op("dereference_header_stack", {"type": "header_stack", "value": "s"}, index)
            return {"type": "expression", "value": {"op": "access_field", "left": element, "right": number}}
        header = self.some(self.kinds)
        return _field(header, self.some(self.fields_of(header))[0])

    def index(self, bits: int) -> Json:
        """A small number that depends on the packet."""
        header = self.some(["scalars", *self.plain])
        name = self.some([name for name, _, signed in self.fields_of(header) if not signed] or [None])
        source = _field(header, name) if name else _field("scalars", "count")
        return _op("&", source, _constant((1 << bits) - 1))

    def number(self, depth: int) -> Json:
        """A number."""
        if depth == 0 or self.often(0.2):
            kind = self.random.random()
            if kind < 0.3:
                return _constant(self.some([0, 1, 2, 3, 0x7F, 0x80, 0xFF, self.random.getrandbits(self.some(WIDTHS))]))
            if kind < 0.4 and self.parameters:
                return {"type": "runtime_data", "value": self.random.randrange(len(self.parameters))}
            return self.place()
        operation = self.random.randrange(12)
        if operation < 5:
            return _op(self.some("+-*&|^"), self.number(depth - 1), self.number(depth - 1))
        if operation == 5:
            return _op("~", None, self.number(depth - 1))
        if operation == 6:
            bits = _constant(self.some([0, 1, 7, 63, 64, 65])) if self.often(0.5) else self.index(self.some([3, 7]))
            return _op(self.some(["<<", ">>"]), self.number(depth - 1), bits)
        if operation == 7:
            cast = self.some(["usat_cast", "sat_cast", "two_comp_mod"])
            return _op(cast, self.number(depth - 1), _constant(self.some(WIDTHS[3:])))
        if operation == 8:
            return _op("?", self.number(depth - 1), self.number(depth - 1), cond=self.condition(depth - 1))
        if operation == 9:
            return _op("b2d", None, self.condition(depth - 1))
        if operation == 10:
            return _op(self.some("/%"), self.index(self.some([8, 63])), self.index(self.some([2, 8])))
        return _op("&", self.number(depth - 1), _constant((1 << self.some(WIDTHS)) - 1))

    def condition(self, depth: int) -> Json:
        """A boolean."""
        kind = self.random.randrange(7 if depth else 2)
        match kind:
            case 0:
                return _op("valid", None, _header(self.some(self.kinds)))
            case 1:
                return _op("d2b", None, self.place())
            case 2:
                return _op("not", None, self.condition(depth - 1))
            case 3:
                return _op(self.some(["and", "or", "==b", "!=b"]), self.condition(depth - 1), self.condition(depth - 1))
            case 4 if self.often(0.3):
                return _op("valid_union", None, {"type": "header_union", "value": "u"})
            case 5 if self.often(0.3):
                return _op(self.some(["==", "!="]), *(_field(name, "rest") for name in VARIABLE))
        return _op(self.some(["==", "!=", "<", "<=", ">", ">="]), self.number(depth - 1), self.number(depth - 1))

    # ---- statements -------------------------------------------------------------------------------------------------

    def assignment(self) -> Json:
        return _do("assign", self.place(), self.number(self.random.randint(0, 3)))

    def on_headers(self) -> Json:
        """A statement on whole headers."""
        kind = self.random.randrange(8)
        if kind == 7:
            pair = self.random.sample(VARIABLE, 2)
            if self.often(0.4):
                return _do("assign_VL", *(_field(name, "rest") for name in pair))
            if self.often(0.4):
                return _do("assign_header", *map(_header, pair))
            return _do(self.some(["add_header", "remove_header"]), _header(pair[0]))
        if kind == 0:
            stack = {"type": "header_stack", "value": "s"}
            if self.often(0.4):
                stack = {"type": "header_union_stack", "value": "w"}
            return _do(self.some(["push", "pop"]), stack, _constant(self.some([1, 2])))
        if kind == 1:
            same = [name for name in self.kinds if self.kinds[name] == self.kinds[self.stack[0]]]
            return _do("assign_header", _header(self.some(same)), _header(self.some(same)))
        if kind == 2:
            index = _op("dereference_header_stack", {"type": "header_stack", "value": "s"}, self.index(2))
            return _do(self.some(["add_header", "remove_header"]), index)
        return _do(self.some(["add_header", "remove_header"]), _header(self.some(self.kinds)))

    def statement(self) -> Json:
        """A statement of an action."""
        kind = self.random.randrange(12)
        register = {"type": "register_array", "value": self.some(["narrow", "broad"])}
        match kind:
            case 0 | 1:
                return self.on_headers()
            case 2:
                return _do("register_read", self.place(), register, self.index(3))
            case 3:
                return _do("register_write", register, self.index(3), self.number(2))
            case 4:
                return _do("count", {"type": "counter_array", "value": "cells"}, self.index(3))
            case 5:
                hashed = {"type": "calculation", "value": self.some(["hash0", "hash1"])}
                size = _constant(self.random.getrandbits(12)) if self.often(0.5) else self.index(4)
                return _do("modify_field_with_hash_based_offset", self.place(), self.index(5), hashed, size)
            case 6 if self.often(0.3):
                return _do("modify_field_rng_uniform", self.place(), self.index(3), self.index(8))
            case 7 if self.often(0.2):
                return _do("mark_to_drop", _header("standard_metadata"))
            case 8 if self.often(0.2):
                return _do("exit")
            case 11 if self.often(0.15):
                return _do("truncate", self.index(self.some([6, 7])))
            case 10 if self.often(0.1):
                return _do(self.some(["assert", "assume"]), self.condition(2))
            case 9 if self.often(0.4):
                port = _constant(self.some([1, 2, 3, 9, DROP_PORT]))
                return _do("assign", _field("standard_metadata", self.some(["egress_spec", "priority"])), port)
        return self.assignment()

    def body(self, first: int, depth: int) -> list[Json]:
        """Statements with conditions and loops around them, from a position in the action on."""
        found: list[Json] = []
        for _ in range(self.random.randint(1, 4)):
            at = first + len(found)
            if depth and self.often(0.25):
                then = self.body(at + 1, depth - 1)
                other = self.body(at + 2 + len(then), depth - 1) if self.often(0.5) else []
                middle = at + 1 + len(then) + bool(other)
                found.append(_do("_jump_if_zero", self.condition(2), _constant(middle)))
                found += then
                if other:
                    found += [_do("_jump", _constant(middle + len(other))), *other]
            elif depth and self.often(0.15):
                inside = self.body(at + 2, depth - 1)
                count = _field("scalars", "count")
                more = _op("<", count, _constant(self.some([1, 3, 6, 255])))
                found.append(_do("_jump_if_zero", more, _constant(at + 3 + len(inside))))
                found.append(_do("assign", count, _op("+", count, _constant(self.some([1, 1, 1, 2, 0x80])))))
                found += [*inside, _do("_jump", _constant(at))]
            else:
                found.append(self.statement())
        return found

    def _actions(self) -> list[Json]:
        actions = []
        for number in range(self.random.randint(4, 6)):
            self.parameters = [self.some(WIDTHS) for _ in range(self.random.randrange(3))]
            data = [{"name": f"p{n}", "bitwidth": bits} for n, bits in enumerate(self.parameters)]
            body = self.body(0, self.random.randrange(3))
            actions.append({"name": f"action{number}", "id": number, "runtime_data": data, "primitives": body})
        self.parameters = []
        dump = [_do("add_header", _header("dump"))]
        dump += [_do("assign", _field("dump", name), _field("scalars", name)) for name, *_ in self.types["scalars"]]
        for name in ("parser_error", "checksum_error"):
            dump.append(_do("assign", _field("dump", name), _field("standard_metadata", name)))
        leave = [_do("assign", _field("standard_metadata", "egress_spec"), _constant(5))]
        for name, statements in (("leave", leave), ("show", dump)):
            actions.append({"name": name, "id": len(actions), "runtime_data": [], "primitives": statements})
        return actions

    # ---- control flow -----------------------------------------------------------------------------------------------

    def _key(self) -> list[Json]:
        key, has_prefix = [], False
        for number in range(self.random.randint(1, 3)):
            header = self.some(["scalars", *self.kinds])
            name, *_ = self.some(self.fields_of(header))
            kind = self.some(["exact", "exact", "lpm", "ternary", "range", "optional"])
            if header != "scalars" and self.often(0.2):
                name, kind = "$valid$", self.some(["exact", "ternary"])
            kind = "ternary" if kind == "lpm" and has_prefix else kind
            has_prefix |= kind == "lpm"
            key.append({"match_type": kind, "name": f"k{number}", "target": [header, name], "mask": None})
        return key

    def _table(self, name: str, later: list[str | None], actions: list[Json], key: list[Json]) -> Json:
        own = self.random.sample(actions, self.random.randint(1, 3))
        kind = self.random.randrange(3)
        ways: dict[str, str | None] = {action["name"]: later[0] for action in own}
        base: str | None = later[0]
        if kind == 0:
            ways, base = {"__HIT__": self.some(later), "__MISS__": self.some(later)}, None
        elif kind == 1:
            ways = {action["name"]: self.some(later) for action in own}
        default = self.some([*own, None])
        table = {
            "name": name,
            "key": key,
            "match_type": "exact",
            "type": "simple",
            "max_size": 64,
            "with_counters": bool(key) and self.often(0.5),
            "support_timeout": self.often(0.2),
            "direct_meters": None,
            "action_ids": [action["id"] for action in own],
            "actions": [action["name"] for action in own],
            "base_default_next": base,
            "next_tables": ways,
        }
        if default is not None:
            data = [hex(value) for value in self.arguments(default)]
            table["default_entry"] = {"action_id": default["id"], "action_const": self.often(0.5), "action_data": data}
        return table

    def _pipeline(self, name: str, actions: list[Json], first: Json, last: Json | None) -> Json:
        names: list[str | None] = [f"{name}{number}" for number in range(self.random.randint(2, 5))]
        ending: list[str | None] = [f"{name}_end"] if last else [None]
        tables, conditions = [], []
        for number, node in enumerate(names):
            assert node is not None
            later = [*names[number + 1 :], *ending]
            if self.often(0.3):
                conditions.append(
                    {
                        "name": node,
                        "expression": self.condition(3),
                        "true_next": self.some(later),
                        "false_next": self.some(later),
                    }
                )
            else:
                tables.append(self._table(node, later, actions, self._key() if self.often(0.7) else []))
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

    # ---- parser -----------------------------------------------------------------------------------------------------

    def _states(self, sets: list[Json]) -> list[Json]:
        """States of a parser, which also draws the value ``sets`` that they look up."""
        names = [f"state{number}" for number in range(self.random.randint(2, 5))]
        states = []
        for number, name in enumerate(names):
            later = [*names[number + 1 :], None]
            operations: list[Json] = []
            in_stack = self.often(0.3)
            extracted = None
            if in_stack:
                operations.append(_do("extract", {"type": "stack", "value": "s"}))
                later.append(name)
            elif self.often(0.2):
                operations.append(_do("extract", {"type": "union_stack", "value": ["w", self.some("ab")]}))
            elif self.often(0.85):
                extracted = self.some([*self.plain, *self.union])
                operations.append(_do("extract", {"type": "regular", "value": extracted}))
            if self.often(0.3):
                bits = _op("<<", self.index(5), _constant(3)) if self.often(0.9) else self.index(6)
                header = {"type": "regular", "value": self.some(VARIABLE)}
                operations.append(_do("extract_VL", header, bits))
            operations += [self._parser_operation() for _ in range(self.random.randrange(3))]
            key, width = self._select(extracted, in_stack)
            transitions = []
            for _ in range(self.random.randint(1, 3) if key else 0):
                value = int.from_bytes(bytes(self.some(ODD_BYTES) for _ in range(width)), "big")
                mask = int.from_bytes(bytes(self.some([0, 1, 0xFF, 0x81]) for _ in range(width)), "big")
                text = None if self.often(0.3) else f"0x{mask:0{2 * width}x}"
                transitions.append(
                    {
                        "type": "hexstr",
                        "value": f"0x{value:0{2 * width}x}",
                        "mask": text,
                        "next_state": self.some(later),
                    }
                )
            if key and self.often(0.3):
                name_of_set, following = f"set{number}", self.some(later)
                sets.append({"name": name_of_set, "id": number, "max_size": 4})
                looked_up = {"type": "parse_vset", "value": name_of_set, "mask": None, "next_state": following}
                transitions.insert(self.random.randrange(len(transitions) + 1), looked_up)
                self.value_sets[name_of_set] = self._members(key)
            if self.often(0.9) or not key:
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

    def _parser_operation(self) -> Json:
        target = _field("scalars", self.some(self.types["scalars"])[0])
        kind = self.random.randrange(6)
        if kind == 0:
            offset, bits = self.random.randrange(12), self.random.randint(1, 70)
            return _do("set", target, {"type": "lookahead", "value": [offset, bits]})
        if kind == 1:
            return _do("verify", self.condition(1), _constant(7))
        if kind == 2:
            steps = _op("<<", self.index(2), _constant(3)) if self.often(0.8) else self.index(4)
            return _do("advance", steps)
        if kind == 3:
            return _do("primitive", self.on_headers() if self.often(0.5) else self.assignment())
        return _do("set", target, self.number(2))

    def _select(self, extracted: str | None, in_stack: bool) -> tuple[list[Json], int]:
        """Key of a select, with its bytes."""
        key, width = [], 0
        for _ in range(self.random.randrange(3)):
            kind = self.random.randrange(3)
            if kind == 0:
                offset, bits = self.random.randrange(9), self.random.randint(1, 20)
                key.append({"type": "lookahead", "value": [offset, bits]})
            elif in_stack and kind == 1:
                name, bits, _ = self.some(self.fields_of(self.stack[0]))
                key.append({"type": "stack_field", "value": ["s", name]})
            else:
                header = extracted or "scalars"
                name, bits, _ = self.some(self.fields_of(header))
                key.append(_field(header, name))
            width += (bits + 7) // 8
        return key, width

    def _members(self, key: list[Json]) -> tuple[Member, ...]:
        """Members of a value set."""
        widths = [self._key_bits(part) for part in key]
        kinds = [self.some(["exact", "lpm", "ternary", "range", "optional"]) for _ in widths]
        drawn = [tuple(map(self._match_of, kinds, widths)) for _ in range(self.random.randrange(5))]
        return tuple(dict.fromkeys(drawn))

    def _key_bits(self, part: Json) -> int:
        if part["type"] == "lookahead":
            return int(part["value"][1])
        header, name = part["value"]
        return next(bits for n, bits, _ in self.fields_of(self.stack[0] if header == "s" else header) if n == name)

    # ---- all of it --------------------------------------------------------------------------------------------------

    def scenario(self, num_packets: int) -> Scenario:
        self._draw_headers()
        sets: list[Json] = []
        states = self._states(sets)
        actions = self._actions()
        drawn_actions, leave, show = actions[:-2], actions[-2], actions[-1]
        pipelines = [
            self._pipeline("ingress", drawn_actions, leave, None),
            self._pipeline("egress", drawn_actions, _nothing(actions), show),
        ]
        names = ["standard_metadata", "scalars", *self.kinds, *VARIABLE, "dump"]
        kinds = {"standard_metadata": "standard_metadata", "scalars": "scalars", "dump": "dump", **self.kinds}
        kinds |= dict.fromkeys(VARIABLE, "variable")
        headers = [
            {"name": name, "id": number, "header_type": kinds[name], "metadata": number < 2}
            for number, name in enumerate(names)
        ]
        order = [*self.kinds, *VARIABLE]
        self.random.shuffle(order)
        program = {
            "program": "drawn",
            "header_types": [self._header_type(name) for name in self.types],
            "headers": headers,
            "header_stacks": [
                {
                    "name": "s",
                    "id": 0,
                    "header_type": self.kinds[self.stack[0]],
                    "size": len(self.stack),
                    "header_ids": [names.index(name) for name in self.stack],
                }
            ],
            "header_union_types": [
                {"name": "w_t", "headers": [[member, self.kinds[f"w[0].{member}"]] for member in "ab"]},
            ],
            "header_unions": [
                {"name": "u", "id": 0, "union_type": "u_t", "header_ids": [names.index(name) for name in self.union]},
                *(
                    {
                        "name": f"w[{number}]",
                        "id": number + 1,
                        "union_type": "w_t",
                        "header_ids": [names.index(name) for name in union],
                    }
                    for number, union in enumerate(self.unions)
                ),
            ],
            "header_union_stacks": [
                {
                    "name": "w",
                    "id": 0,
                    "union_type": "w_t",
                    "size": len(self.unions),
                    "header_union_ids": [number + 1 for number in range(len(self.unions))],
                }
            ],
            "errors": ERRORS,
            "parsers": [{"name": "parser", "id": 0, "init_state": "state0", "parse_states": states}],
            "parse_vsets": sets,
            "deparsers": [{"name": "deparser", "id": 0, "order": ["dump", *order]}],
            "counter_arrays": [{"name": "cells", "id": 0, "size": 6, "is_direct": False}],
            "register_arrays": [
                {"name": "narrow", "id": 0, "size": 5, "bitwidth": 5},
                {"name": "broad", "id": 1, "size": 7, "bitwidth": self.some([64, 100])},
            ],
            "calculations": [self._calculation(f"hash{number}") for number in range(2)],
            "checksums": self._checksums(),
            "field_lists": [],
            "actions": actions,
            "pipelines": pipelines,
        }
        packets = [self._packet() for _ in range(num_packets)]
        entries = {
            table["name"]: self._entries(table, {action["name"]: action for action in actions})
            for pipeline in pipelines
            for table in pipeline["tables"]
            if table["key"]
        }
        return Scenario(program, entries, self.value_sets, packets)

    def _header_type(self, name: str) -> Json:
        fields = self.types[name]
        if name != "variable":
            return {"name": name, "fields": fields}
        fixed_bytes = sum(bits for _, bits, _ in fields) // 8
        return {"name": name, "fields": [*fields, ["rest", "*"]], "max_length": fixed_bytes + self.most_bytes}

    def _calculation(self, name: str) -> Json:
        inputs: list[Json] = [_field("scalars", self.some(self.types["scalars"])[0]) for _ in range(2)]
        header = self.some(self.kinds)
        inputs += [_field(header, name) for name, *_ in self.fields_of(header)]
        whole = sum(bits for entry in inputs[:2] for n, bits, _ in self.types["scalars"] if n == entry["value"][1])
        if self.often(0.2):
            inputs.append(_header(self.some([*self.kinds, *VARIABLE])))
        if self.often(0.3):
            inputs.append(_field(self.some(VARIABLE), "rest"))
        inputs.insert(2, {**_constant(1), "bitwidth": -whole % 8 or 8})
        return {"name": name, "id": 0, "algo": self.some(_ALGORITHMS), "input": inputs}

    def _checksums(self) -> list[Json]:
        header = self.some(self.plain)
        return [
            {
                "name": f"checksum{number}",
                "id": number,
                "target": [header, self.some([name for name, *_ in self.fields_of(header)])],
                "type": "generic",
                "calculation": f"hash{number}",
                "verify": number == 0,
                "update": number == 1,
                "if_cond": _op("valid", None, _header(header)) if self.often(0.7) else self.condition(2),
            }
            for number in range(2)
            if self.often(0.5)
        ]

    def _packet(self) -> bytes:
        size = self.some([0, 1, 5, 20, 40, 60, 80, 100])
        return bytes(self.some(ODD_BYTES) if self.often(0.8) else self.random.getrandbits(8) for _ in range(size))

    def arguments(self, action: Json) -> tuple[int, ...]:
        """Arguments of an action."""
        widths = [parameter["bitwidth"] for parameter in action["runtime_data"]]
        return tuple(self.value(bits) for bits in widths)

    def value(self, bits: int) -> int:
        """A number of so many bits, often an extreme one."""
        full = (1 << bits) - 1
        return int(self.some([0, 1 & full, full, self.random.getrandbits(bits), self._odd(bits)]))

    def _odd(self, bits: int) -> int:
        octets = bytes(self.some(ODD_BYTES) for _ in range((bits + 7) // 8))
        return int.from_bytes(octets, "big") & (1 << bits) - 1

    def _entries(self, table: Json, actions: dict[str, Json]) -> dict[EntryKey, ActionCall]:
        found = {}
        overlaps = any(part["match_type"] in ("ternary", "range", "optional") for part in table["key"])
        for number in range(self.random.randrange(8)):
            match = tuple(self._match(part) for part in table["key"])
            name = self.some(table["actions"])
            found[EntryKey(match, number + 1 if overlaps else 0)] = ActionCall(name, self.arguments(actions[name]))
        return found

    def _match(self, part: Json) -> FieldMatch | RangeMatch:
        header, name = part["target"]
        bits = 1 if name == "$valid$" else next(bits for n, bits, _ in self.fields_of(header) if n == name)
        return self._match_of(part["match_type"], bits)

    def _match_of(self, kind: str, bits: int) -> FieldMatch | RangeMatch:
        full = (1 << bits) - 1
        match kind:
            case "range":
                low, high = sorted([self.value(bits), self.value(bits)])
                return RangeMatch(low, high)
            case "lpm":
                mask = full & ~(full >> self.random.randint(0, bits))
            case "ternary":
                mask = self.some([0, full, self.value(bits)])
            case "optional":
                mask = self.some([0, full])
            case _:
                mask = full
        return FieldMatch(self.value(bits) & mask, mask)


def _nothing(actions: list[Json]) -> Json:
    made = {"name": "nothing", "id": len(actions), "runtime_data": [], "primitives": []}
    actions.append(made)
    return made
