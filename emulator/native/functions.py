"""Statements and functions: Python's source to LLVM code."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from emulator.native.arithmetic import converted, operation, typed
from emulator.native.arrays import items, read, write
from emulator.native.code import (
    BOOL,
    F64,
    I64,
    NUMBER,
    U64,
    Array,
    Code,
    Kind,
    LoweringError,
    Record,
    Value,
    llvm_type,
    llvm_types,
    scalar,
    with_types,
)
from emulator.native.expressions import Expressions, Names


@dataclass(frozen=True)
class Lowered:
    """A compiled function: its symbol, LLVM's text, and the type of its result, None where it has none."""

    symbol: str
    text: str
    result: Kind | None


class _FractionError(Exception):
    """A variable, or the result, that began as an integer becomes a floating-point number."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


_RESULT = "return"
"""Name of a function's result among those of its variables."""


def lower(
    symbol: str, node: ast.FunctionDef, arguments: Sequence[Kind], names: Names, attributes: str, file: str
) -> Lowered:
    """Compile a function of the module for arguments of these types, under a symbol.

    Raises LoweringError, with the file, the line and the function's name, for what the compiler does not know.
    """
    given = []
    for number, kind in enumerate(arguments):
        given.append(Value(kind, tuple(f"%given{number}.{part}" for part in range(len(llvm_types(kind))))))
    fractions: frozenset[str] = frozenset()
    while True:
        statements = _Statements(names, fractions)
        try:
            statements.function(node, given, file)
            break
        except _FractionError as found:
            fractions |= {found.name}
    head = f"define internal {llvm_type(statements.result)} @{symbol}({with_types(given)}) {attributes}"
    return Lowered(symbol, f"{head} {{\n{statements.code.text()}\n}}\n", statements.result)


def entry(symbol: str, inside: Lowered, arguments: Sequence[Kind], *, by_address: bool) -> str:
    """Return a function by which others than the module call one of its functions.

    With ``by_address`` each record comes as one address, at which its parts are.
    """
    code, given, values = Code(), [], []
    for number, kind in enumerate(arguments):
        if by_address and isinstance(kind, Record):
            given.append(f"ptr %given{number}")
            values.append(Value(kind, tuple(_loaded(code, f"%given{number}", llvm_types(kind)))))
        else:
            value = Value(kind, tuple(f"%given{number}.{part}" for part in range(len(llvm_types(kind)))))
            given.append(with_types([value]))
            values.append(value)
    call = f"call {llvm_type(inside.result)} @{inside.symbol}({with_types(values)})"
    if inside.result is None:
        code.append(call)
        code.end("ret void")
    else:
        code.end(f"ret {llvm_type(inside.result)} {code.value(inside.result, call).text}")
    extension = "zeroext " if inside.result == BOOL else ""  # C looks at the whole byte
    return (
        f"define {extension}{llvm_type(inside.result)} @{symbol}({', '.join(given)}) nounwind {{\n{code.text()}\n}}\n"
    )


def _loaded(code: Code, address: str, types: Sequence[str]) -> Iterator[str]:
    for number, kind in enumerate(types):
        place = code.value(U64, f"getelementptr i64, ptr {address}, i64 {number}")
        yield code.value(U64, f"load {kind}, ptr {place.text}, align 8").text


class _Statements:
    def __init__(self, names: Names, fractions: frozenset[str]) -> None:
        self.code = Code()
        self._fractions = fractions
        self._line = 0
        self.result: Kind | None = None
        self._returns = False
        self._loops: list[tuple[str, str]] = []  # where ``continue`` and ``break`` go
        self._expressions = Expressions(self.code, names)

    def function(self, node: ast.FunctionDef, arguments: Sequence[Value], file: str) -> None:
        """Compile a whole function."""
        parameters, self._line = [parameter.arg for parameter in node.args.args], node.lineno
        try:
            if len(parameters) != len(arguments):
                raise LoweringError(f"{len(arguments)} arguments for {len(parameters)} parameters")
            if node.args.vararg or node.args.kwarg or node.args.kwonlyargs or node.args.posonlyargs:
                raise LoweringError(f"parameters {ast.unparse(node.args)!r}")
            for name, value in zip(parameters, arguments, strict=True):
                self.define(name, value)
            self.body(node.body)
            if self.result is not None and not self.code.has_ended:
                raise LoweringError("an end without a result")
        except LoweringError as error:
            raise LoweringError(f"{file}:{self._line}: {node.name}: {error}") from error
        self.code.end("ret void" if self.result is None else "unreachable")

    def define(self, name: str, value: Value) -> None:
        """Give a variable a value; its first one gives it its type. An array gets a name once."""
        expressions, value = self._expressions, self._fitting(name, typed(value))
        if isinstance(value.kind, Array) or (isinstance(value.kind, Record) and not value.kind.is_of_numbers):
            if name in expressions.places or expressions.bound.get(name, value) != value:
                raise LoweringError(f"another array in {name!r}")
            expressions.bound[name] = value
            return
        if name not in expressions.places:
            expressions.places[name] = self.code.place(value.kind)
        place = expressions.places[name]
        if place.kind != value.kind:
            if place.kind == I64 and value.kind == F64:
                raise _FractionError(name)
            try:
                value = converted(self.code, value, place.kind)
            except LoweringError as error:
                raise LoweringError(f"variable {name!r}: {error}") from error
        self.code.store(place, value)

    def _fitting(self, name: str, value: Value) -> Value:
        return converted(self.code, value, F64) if name in self._fractions and value.kind != F64 else value

    def body(self, statements: list[ast.stmt]) -> None:
        """Compile statements up to one that leaves them."""
        for statement in statements:
            if self.code.has_ended:
                return
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        code, expressions, self._line = self.code, self._expressions, node.lineno
        match node:
            case ast.Pass() | ast.Expr(ast.Constant()):
                return
            case ast.Expr(ast.Call(function, arguments, [])):
                expressions.called(ast.unparse(function), arguments)
            case ast.Assign([ast.Tuple(targets)], ast.Tuple(sources)) if len(targets) == len(sources):
                values = [expressions.value(source) for source in sources]
                for target, value in zip(targets, values, strict=True):
                    self._assign(target, value)
            case ast.Assign(targets, source):
                value = expressions.value(source)
                for target in targets:
                    self._assign(target, value)
            case ast.AnnAssign(target, _, source) if source is not None:
                self._assign(target, expressions.value(source))
            case ast.AugAssign(ast.Name(name), symbol, source):
                before = expressions.value(ast.Name(name))
                self.define(name, operation(code, before, symbol, expressions.value(source)))
            case ast.AugAssign(ast.Subscript() as target, symbol, source):
                place = expressions.place(target)
                before = read(code, place)
                write(code, place, operation(code, before, symbol, expressions.value(source)))
            case ast.Return(source):
                self._return(source)
            case ast.If(test, then, otherwise):
                self._if(test, then, otherwise)
            case ast.While(test, body, []):
                self._while(test, body)
            case ast.For(ast.Name(name), ast.Call(ast.Name("range"), bounds), body, []):
                self._for(name, [expressions.value(bound) for bound in bounds], body)
            case ast.Continue():
                code.end(f"br label %{self._loops[-1][0]}")
            case ast.Break():
                code.end(f"br label %{self._loops[-1][1]}")
            case _:
                raise LoweringError(f"statement {ast.unparse(node)!r}")

    def _assign(self, target: ast.expr, value: Value) -> None:
        match target:
            case ast.Name(name):
                self.define(name, value)
            case ast.Subscript():
                write(self.code, self._expressions.place(target), value)
            case ast.Tuple(targets):
                for one, item in zip(targets, items(self.code, value), strict=True):
                    self._assign(one, item)
            case _:
                raise LoweringError(f"assignment to {ast.unparse(target)!r}")

    def _return(self, source: ast.expr | None) -> None:
        value = self._fitting(_RESULT, typed(self._expressions.value(source))) if source else None
        kind = value.kind if value else None
        if self._returns and {kind, self.result} == {I64, F64}:
            raise _FractionError(_RESULT)
        if self._returns and kind != self.result:
            raise LoweringError(f"a result of type {kind} after one of {self.result}")
        self._returns, self.result = True, kind
        self.code.end(f"ret {llvm_type(kind)} {self.code.joined(value)}" if value else "ret void")

    def _if(self, test: ast.expr, then: list[ast.stmt], otherwise: list[ast.stmt]) -> None:
        code = self.code
        first, second, after = code.name("then"), code.name("else"), code.name("after")
        code.branch(self._expressions.condition(test), first, second)
        goes_on = False
        for name, statements in ((first, then), (second, otherwise)):
            code.start(name)
            self.body(statements)
            goes_on |= not code.has_ended
            code.end(f"br label %{after}")
        if goes_on:
            code.start(after)

    def _while(self, test: ast.expr, body: list[ast.stmt]) -> None:
        code = self.code
        again, inside, after = code.name("again"), code.name("inside"), code.name("after")
        code.start(again)
        code.branch(self._expressions.condition(test), inside, after)
        code.start(inside)
        self._loop_body(again, after, body)
        code.end(f"br label %{again}")
        code.start(after)
        if isinstance(test, ast.Constant) and test.value and not _breaks(body):
            code.end("unreachable")

    def _for(self, name: str, bounds: list[Value], body: list[ast.stmt]) -> None:
        code = self.code
        *_, step = [*bounds, scalar(NUMBER, "1")] if len(bounds) < 3 else bounds
        first, end = (scalar(NUMBER, "0"), bounds[0]) if len(bounds) == 1 else bounds[:2]
        if step.kind != NUMBER or step.text == "0":
            raise LoweringError("a loop whose step is no number of the source")
        kind = U64 if U64 in (first.kind, end.kind) else I64
        first, end = converted(code, first, kind), converted(code, end, kind)
        counter = code.place(kind)
        code.store(counter, first)
        again, inside, following, after = (code.name(block) for block in ("again", "inside", "following", "after"))
        code.start(again)
        at = code.load(counter)
        order = f"{'s' if kind == I64 else 'u'}{'gt' if step.text.startswith('-') else 'lt'}"
        code.branch(code.value(BOOL, f"icmp {order} i64 {at.text}, {end.text}"), inside, after)
        code.start(inside)
        self.define(name, at)
        self._loop_body(following, after, body)
        code.start(following)
        at = code.load(counter)
        code.store(counter, code.value(kind, f"add i64 {at.text}, {step.text}"))
        code.end(f"br label %{again}")
        code.start(after)

    def _loop_body(self, following: str, after: str, body: list[ast.stmt]) -> None:
        """Compile the body of a loop, in which ``continue`` goes to one block and ``break`` to the other."""
        self._loops.append((following, after))
        self.body(body)
        self._loops.pop()


def _breaks(body: list[ast.stmt]) -> bool:
    """Return whether a loop's body may leave it, apart from the loops inside."""
    for statement in body:
        if isinstance(statement, ast.Break):
            return True
        if isinstance(statement, ast.If) and (_breaks(statement.body) or _breaks(statement.orelse)):
            return True
    return False
