"""Expressions: Python's to LLVM code."""

import ast
from typing import Protocol

from emulator.native.arithmetic import (
    absolute,
    comparison,
    converted,
    greater,
    lesser,
    negative,
    operation,
    real,
    truth,
    typed,
)
from emulator.native.arrays import field, from_row, items, make_tuple, part, read, tuple_item
from emulator.native.code import (
    BOOL,
    BYTE,
    F64,
    I64,
    NUMBER,
    U64,
    Array,
    Code,
    Kind,
    LoweringError,
    Place,
    Tuple,
    Value,
    llvm_type,
    scalar,
)

# Numbers of 32 bits exist only as arguments of C functions.
_CASTS: dict[str, Kind] = {
    "U": U64,
    "np.uint64": U64,
    "np.int64": I64,
    "np.int32": I64,
    "np.uint32": I64,
    "int": I64,
    "np.float64": F64,
    "float": F64,
    "bool": BOOL,
}


class Names(Protocol):
    """What expressions need to know of their surroundings."""

    def constant(self, name: str) -> Value | None:
        """Return a constant or a constant array by its name, None where there is none."""

    def call(self, code: Code, name: str, arguments: list[Value]) -> Value | None:
        """Call a function; None where it returns nothing."""


class Expressions:
    """Compiles the expressions of one function.

    ``places`` are those of its local variables; ``bound`` are the arrays and records that it has named.
    """

    def __init__(self, code: Code, names: Names) -> None:
        self._code = code
        self._names = names
        self.places: dict[str, Value] = {}
        self.bound: dict[str, Value] = {}

    def value(self, node: ast.expr) -> Value:
        """Compile an expression. Raises LoweringError for one that is not known, or has no value."""
        code = self._code
        match node:
            case ast.Constant(bool(flag)):
                return scalar(BOOL, "true" if flag else "false")
            case ast.Constant(int(number)):
                return scalar(NUMBER, str(number))
            case ast.Constant(float(number)):
                return real(number)
            case ast.Name(name):
                return self._named(name)
            case ast.Attribute(record, name):
                is_local = isinstance(record, ast.Name) and (record.id in self.places or record.id in self.bound)
                constant = None if is_local else self._names.constant(ast.unparse(node))
                return constant or field(self.value(record), name)
            case ast.BinOp(left, symbol, right):
                return operation(code, self.value(left), symbol, self.value(right))
            case ast.UnaryOp(ast.Not(), operand):
                return code.value(BOOL, f"xor i1 {self.condition(operand).text}, true")
            case ast.UnaryOp(ast.Invert(), operand):
                value = typed(self.value(operand))
                value = converted(code, value, I64) if value.kind == BOOL else value
                return operation(code, value, ast.BitXor(), scalar(value.kind, "-1"))
            case ast.UnaryOp(ast.USub(), operand):
                return negative(code, self.value(operand))
            case ast.BoolOp():
                return self._logical(node, needs_truth=False)
            case ast.Compare(left, [ast.In() | ast.NotIn() as symbol], [ast.Tuple(others)]):
                return self._membership(left, symbol, others)
            case ast.Compare(left, symbols, others):
                return self._comparison(left, symbols, others)
            case ast.IfExp(test, then, otherwise):
                return self._choice(test, then, otherwise)
            case ast.Tuple(elements):
                return make_tuple(code, [self.value(element) for element in elements])
            case ast.Subscript():
                return self._item(node)
            case ast.Call(ast.Name("float"), [ast.Constant(str(text))], []):
                return real(float(text))
            case ast.Call(function, arguments, []):
                returned = self.called(ast.unparse(function), arguments)
                if returned is not None:
                    return returned
        raise LoweringError(f"expression {ast.unparse(node)!r}")

    def called(self, name: str, arguments: list[ast.expr]) -> Value | None:
        """Compile a call; None where the function returns nothing."""
        code, values = self._code, self._arguments(arguments)
        match name, values:
            case _, [value] if name in _CASTS:
                return converted(code, value, _CASTS[name], cast=True)
            case "len", [Value(Array(), (_, size, *_))]:
                return scalar(I64, size)
            case "abs", [value]:
                return absolute(code, value)
            case (("min" | "max"), [first, *rest]) if rest:
                for other in rest:
                    first = lesser(code, first, other) if name == "min" else greater(code, first, other)
                return first
        return self._names.call(code, name, [typed(value) for value in values])

    def condition(self, node: ast.expr) -> Value:
        """Compile a condition."""
        if isinstance(node, ast.BoolOp):
            return self._logical(node, needs_truth=True)
        return truth(self._code, self.value(node))

    def place(self, node: ast.Subscript) -> Place:
        """Return the place of an array's item."""
        found = self._part(self.value(node.value), node)
        if not isinstance(found, Place):
            raise LoweringError(f"{ast.unparse(node)!r}, which is an array, as an item")
        return found

    def _part(self, array: Value, node: ast.Subscript) -> Value | Place:
        if not isinstance(array.kind, Array):
            raise LoweringError(f"item {ast.unparse(node)!r} of a {array.kind}")
        indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return part(self._code, array, [self.value(index) for index in indices])

    def _arguments(self, nodes: list[ast.expr]) -> list[Value]:
        values: list[Value] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                values += items(self._code, self.value(node.value))
            else:
                values.append(self.value(node))
        return values

    def _named(self, name: str) -> Value:
        if name in self.places:
            return self._code.load(self.places[name])
        value = self.bound.get(name) or self._names.constant(name)
        if value is None:
            raise LoweringError(f"name {name!r}")
        return value

    def _item(self, node: ast.Subscript) -> Value:
        container = self.value(node.value)
        if isinstance(container.kind, Tuple):
            at = None if isinstance(node.slice, ast.Slice) else self.value(node.slice)
            return tuple_item(self._code, container, node.slice, at)
        match node.slice:
            case ast.Tuple([*indices, ast.Slice(ast.expr() as first, None, None)]) if isinstance(container.kind, Array):
                return from_row(self._code, container, [*map(self.value, indices)], self.value(first))
        found = self._part(container, node)
        return read(self._code, found) if isinstance(found, Place) else found

    def _membership(self, left: ast.expr, symbol: ast.cmpop, others: list[ast.expr]) -> Value:
        code, value = self._code, self.value(left)
        found = scalar(BOOL, "false")
        for other in [self.value(other) for other in others]:
            test = comparison(code, value, ast.Eq(), other)
            found = code.value(BOOL, f"or i1 {found.text}, {test.text}")
        return found if isinstance(symbol, ast.In) else code.value(BOOL, f"xor i1 {found.text}, true")

    def _comparison(self, left: ast.expr, symbols: list[ast.cmpop], others: list[ast.expr]) -> Value:
        """Compile comparisons; in a chain, an operand behind one that does not hold is left out."""
        code, value, following = self._code, self.value(left), self.value(others[0])
        holds = comparison(code, value, symbols[0], following)
        done, sources = code.name("decided"), []
        for symbol, other in zip(symbols[1:], others[1:], strict=True):
            next_one = code.name("next")
            sources.append(f"[ false, %{code.block} ]")
            code.branch(holds, next_one, done)
            code.start(next_one)
            value, following = following, self.value(other)
            holds = comparison(code, value, symbol, following)
        if not sources:
            return holds
        sources.append(f"[ {holds.text}, %{code.block} ]")
        code.start(done)
        return code.value(BOOL, f"phi i1 {', '.join(sources)}")

    def _logical(self, node: ast.BoolOp, *, needs_truth: bool) -> Value:
        """Compile ``and`` and ``or``, which leave out what cannot change the result.

        In Python the result is one of the operands. So they must be truth values, unless only the truth is needed.
        """
        code, is_and = self._code, isinstance(node.op, ast.And)
        done, sources = code.name("decided"), []

        def operand_of(part: ast.expr) -> Value:
            value = self.condition(part) if needs_truth else self.value(part)
            if value.kind != BOOL:
                raise LoweringError(
                    f"the value of {ast.unparse(node)!r}, where {ast.unparse(part)!r} is no truth value"
                )
            return value

        for operand in node.values[:-1]:
            value, following = operand_of(operand), code.name("next")
            sources.append(f"[ {'false' if is_and else 'true'}, %{code.block} ]")
            code.branch(value, *((following, done) if is_and else (done, following)))
            code.start(following)
        value = operand_of(node.values[-1])
        sources.append(f"[ {value.text}, %{code.block} ]")
        code.start(done)
        return code.value(BOOL, f"phi i1 {', '.join(sources)}")

    def _choice(self, test: ast.expr, then: ast.expr, otherwise: ast.expr) -> Value:
        code = self._code
        first_name, second_name, chosen = code.name("then"), code.name("else"), code.name("chosen")
        code.branch(self.condition(test), first_name, second_name)
        code.start(first_name)
        first, first_block = self.value(then), code.block
        code.end(f"br label %{chosen}")
        code.start(second_name)
        second = self.value(otherwise)
        if first.kind != second.kind or first.kind == NUMBER:
            # A conversion that needs an instruction cannot be made for the first value any more.
            kinds = [value.kind for value in (first, second) if value.kind not in (NUMBER, BYTE)]
            wanted = kinds[0] if kinds else I64
            if first.kind not in (NUMBER, BYTE, wanted):
                raise LoweringError(f"a choice between {first.kind} and {second.kind}")
            first, second = converted(code, first, wanted), converted(code, second, wanted)
        second_block = code.block
        code.start(chosen)
        sources = f"[ {first.text}, %{first_block} ], [ {second.text}, %{second_block} ]"
        return code.value(first.kind, f"phi {llvm_type(first.kind)} {sources}")
