"""Drawn values: fields, numbers and conditions."""

from tests.emulator.drawn.dice import Dice
from tests.emulator.drawn.headers import VARIABLE, WIDTHS, DrawnHeaders
from tests.emulator.drawn.nodes import constant, expression, field_node, header_node
from tests.emulator.programs import Json


class DrawnValues:
    """Draws values of headers' fields; ``parameters`` are the widths of those of the action that is being drawn."""

    def __init__(self, dice: Dice, headers: DrawnHeaders) -> None:
        self._some, self._often, self._random = dice.some, dice.often, dice.random
        self._headers = headers
        self.parameters: list[int] = []

    def place(self) -> Json:
        """A field that can be read and written."""
        if self._often(0.5):
            return field_node("scalars", self._some(self._headers.types["scalars"])[0])
        if self._often(0.15):
            index = constant(self._random.randint(0, len(self._headers.stack))) if self._often(0.5) else self.index(2)
            if self._often(0.3):
                index = field_node("scalars", self._some(self._headers.types["scalars"])[0])
            number = self._random.randrange(len(self._headers.fields_of(self._headers.stack[0])))
            element = expression("dereference_header_stack", {"type": "header_stack", "value": "s"}, index)
            return {"type": "expression", "value": {"op": "access_field", "left": element, "right": number}}
        header = self._some(self._headers.kinds)
        return field_node(header, self._some(self._headers.fields_of(header))[0])

    def index(self, bits: int) -> Json:
        """A small number that depends on the packet."""
        header = self._some(["scalars", *self._headers.plain])
        name = self._some([name for name, _, signed in self._headers.fields_of(header) if not signed] or [None])
        source = field_node(header, name) if name else field_node("scalars", "count")
        return expression("&", source, constant((1 << bits) - 1))

    def number(self, depth: int) -> Json:
        """A number."""
        if depth == 0 or self._often(0.2):
            kind = self._random.random()
            if kind < 0.3:
                return constant(
                    self._some([0, 1, 2, 3, 0x7F, 0x80, 0xFF, self._random.getrandbits(self._some(WIDTHS))])
                )
            if kind < 0.4 and self.parameters:
                return {"type": "runtime_data", "value": self._random.randrange(len(self.parameters))}
            return self.place()
        operation = self._random.randrange(12)
        if operation < 5:
            return expression(self._some("+-*&|^"), self.number(depth - 1), self.number(depth - 1))
        if operation == 5:
            return expression("~", None, self.number(depth - 1))
        if operation == 6:
            bits = constant(self._some([0, 1, 7, 63, 64, 65])) if self._often(0.5) else self.index(self._some([3, 7]))
            return expression(self._some(["<<", ">>"]), self.number(depth - 1), bits)
        if operation == 7:
            cast = self._some(["usat_cast", "sat_cast", "two_comp_mod"])
            return expression(cast, self.number(depth - 1), constant(self._some(WIDTHS[3:])))
        if operation == 8:
            return expression("?", self.number(depth - 1), self.number(depth - 1), cond=self.condition(depth - 1))
        if operation == 9:
            return expression("b2d", None, self.condition(depth - 1))
        if operation == 10:
            return expression(self._some("/%"), self.index(self._some([8, 63])), self.index(self._some([2, 8])))
        return expression("&", self.number(depth - 1), constant((1 << self._some(WIDTHS)) - 1))

    def condition(self, depth: int) -> Json:
        """A boolean."""
        kind = self._random.randrange(7 if depth else 2)
        match kind:
            case 0:
                return expression("valid", None, header_node(self._some(self._headers.kinds)))
            case 1:
                return expression("d2b", None, self.place())
            case 2:
                return expression("not", None, self.condition(depth - 1))
            case 3:
                return expression(
                    self._some(["and", "or", "==b", "!=b"]), self.condition(depth - 1), self.condition(depth - 1)
                )
            case 4 if self._often(0.3):
                return expression("valid_union", None, {"type": "header_union", "value": "u"})
            case 5 if self._often(0.3):
                return expression(self._some(["==", "!="]), *(field_node(name, "rest") for name in VARIABLE))
        return expression(
            self._some(["==", "!=", "<", "<=", ">", ">="]), self.number(depth - 1), self.number(depth - 1)
        )
