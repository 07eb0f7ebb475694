"""Drawn actions: assignments, statements on whole headers, externs, conditions and loops."""

from tests.emulator.drawn.dice import Dice
from tests.emulator.drawn.headers import VARIABLE, WIDTHS, DrawnHeaders
from tests.emulator.drawn.nodes import constant, expression, field_node, header_node, statement
from tests.emulator.drawn.values import DrawnValues
from tests.emulator.programs import Json

DROP_PORT = 511


class DrawnActions:
    """Draws statements and whole actions."""

    def __init__(self, dice: Dice, headers: DrawnHeaders, values: DrawnValues) -> None:
        self._some, self._often, self._random = dice.some, dice.often, dice.random
        self._headers = headers
        self._values = values

    def assignment(self) -> Json:
        """A statement that writes a field."""
        return statement("assign", self._values.place(), self._values.number(self._random.randint(0, 3)))

    def on_headers(self) -> Json:
        """A statement on whole headers."""
        kind = self._random.randrange(8)
        if kind == 7:
            pair = self._random.sample(VARIABLE, 2)
            if self._often(0.4):
                return statement("assign_VL", *(field_node(name, "rest") for name in pair))
            if self._often(0.4):
                return statement("assign_header", *map(header_node, pair))
            return statement(self._some(["add_header", "remove_header"]), header_node(pair[0]))
        if kind == 0:
            stack = {"type": "header_stack", "value": "s"}
            if self._often(0.4):
                stack = {"type": "header_union_stack", "value": "w"}
            return statement(self._some(["push", "pop"]), stack, constant(self._some([1, 2])))
        if kind == 1:
            same = [
                name
                for name in self._headers.kinds
                if self._headers.kinds[name] == self._headers.kinds[self._headers.stack[0]]
            ]
            return statement("assign_header", header_node(self._some(same)), header_node(self._some(same)))
        if kind == 2:
            index = expression(
                "dereference_header_stack", {"type": "header_stack", "value": "s"}, self._values.index(2)
            )
            return statement(self._some(["add_header", "remove_header"]), index)
        return statement(self._some(["add_header", "remove_header"]), header_node(self._some(self._headers.kinds)))

    def statement(self) -> Json:
        """A statement of an action."""
        kind = self._random.randrange(12)
        register = {"type": "register_array", "value": self._some(["narrow", "broad"])}
        match kind:
            case 0 | 1:
                return self.on_headers()
            case 2:
                return statement("register_read", self._values.place(), register, self._values.index(3))
            case 3:
                return statement("register_write", register, self._values.index(3), self._values.number(2))
            case 4:
                return statement("count", {"type": "counter_array", "value": "cells"}, self._values.index(3))
            case 5:
                hashed = {"type": "calculation", "value": self._some(["hash0", "hash1"])}
                size = constant(self._random.getrandbits(12)) if self._often(0.5) else self._values.index(4)
                return statement(
                    "modify_field_with_hash_based_offset", self._values.place(), self._values.index(5), hashed, size
                )
            case 6 if self._often(0.3):
                return statement(
                    "modify_field_rng_uniform", self._values.place(), self._values.index(3), self._values.index(8)
                )
            case 7 if self._often(0.2):
                return statement("mark_to_drop", header_node("standard_metadata"))
            case 8 if self._often(0.2):
                return statement("exit")
            case 11 if self._often(0.15):
                return statement("truncate", self._values.index(self._some([6, 7])))
            case 10 if self._often(0.1):
                return statement(self._some(["assert", "assume"]), self._values.condition(2))
            case 9 if self._often(0.4):
                port = constant(self._some([1, 2, 3, 9, DROP_PORT]))
                return statement(
                    "assign", field_node("standard_metadata", self._some(["egress_spec", "priority"])), port
                )
        return self.assignment()

    def body(self, first: int, depth: int) -> list[Json]:
        """Statements with conditions and loops around them, from a position in the action on."""
        found: list[Json] = []
        for _ in range(self._random.randint(1, 4)):
            at = first + len(found)
            if depth and self._often(0.25):
                then = self.body(at + 1, depth - 1)
                other = self.body(at + 2 + len(then), depth - 1) if self._often(0.5) else []
                middle = at + 1 + len(then) + bool(other)
                found.append(statement("_jump_if_zero", self._values.condition(2), constant(middle)))
                found += then
                if other:
                    found += [statement("_jump", constant(middle + len(other))), *other]
            elif depth and self._often(0.15):
                inside = self.body(at + 2, depth - 1)
                count = field_node("scalars", "count")
                more = expression("<", count, constant(self._some([1, 3, 6, 255])))
                found.append(statement("_jump_if_zero", more, constant(at + 3 + len(inside))))
                found.append(
                    statement("assign", count, expression("+", count, constant(self._some([1, 1, 1, 2, 0x80]))))
                )
                found += [*inside, statement("_jump", constant(at))]
            else:
                found.append(self.statement())
        return found

    def actions(self) -> list[Json]:
        """All actions of a program; the last two make a packet leave, and show what it has computed."""
        actions = []
        for number in range(self._random.randint(4, 6)):
            self._values.parameters = [self._some(WIDTHS) for _ in range(self._random.randrange(3))]
            data = [{"name": f"p{n}", "bitwidth": bits} for n, bits in enumerate(self._values.parameters)]
            body = self.body(0, self._random.randrange(3))
            actions.append({"name": f"action{number}", "id": number, "runtime_data": data, "primitives": body})
        self._values.parameters = []
        dump = [statement("add_header", header_node("dump"))]
        dump += [
            statement("assign", field_node("dump", name), field_node("scalars", name))
            for name, *_ in self._headers.types["scalars"]
        ]
        for name in ("parser_error", "checksum_error"):
            dump.append(statement("assign", field_node("dump", name), field_node("standard_metadata", name)))
        leave = [statement("assign", field_node("standard_metadata", "egress_spec"), constant(5))]
        for name, statements in (("leave", leave), ("show", dump)):
            actions.append({"name": name, "id": len(actions), "runtime_data": [], "primitives": statements})
        return actions
