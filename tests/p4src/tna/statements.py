"""Statements as lines of Python."""

from collections.abc import Iterator

from tests.p4src.tna import nodes
from tests.p4src.tna.expressions import Expressions, Place
from tests.p4src.tna.layouts import VALID, Leaf

INDENT = "    "


class Statements:
    """Translates statements of one block."""

    def __init__(self, expressions: Expressions) -> None:
        self._expressions = expressions

    def body(self, nodes: tuple[nodes.Node, ...]) -> list[str]:
        """Lines of a function's or a branch's body, indented once."""
        lines = [line for node in nodes for line in self.lines(node)]
        return [INDENT + line for line in lines or ["pass"]]

    def lines(self, node: nodes.Node) -> Iterator[str]:
        """Lines for one statement."""
        source = self._expressions.source
        match node:
            case nodes.Block(components=components):
                for component in components:
                    yield from self.lines(component)
            case nodes.Assignment():
                yield from self._assignment(node)
            case nodes.If(condition=condition, if_true=true, if_false=false):
                yield f"if {source(condition)}:"
                yield from self.body((true,))
                if false is not None:
                    yield "else:"
                    yield from self.body((false,))
            case nodes.CallStatement(method_call=call):
                yield from self._call(call)
            case nodes.Switch():
                yield from self._switch(node)
            case nodes.Return(expression=value):
                yield "return" if value is None else f"return {source(value)}"
            case nodes.Variable(name=name):
                yield f"{self._expressions.scope.places[name].source} = 0"
            case nodes.Node(node="EmptyStatement"):
                return
            case nodes.Node(node="ExitStatement"):
                yield "raise Exited"
            case _:
                raise NotImplementedError(f"{node.node} as a statement")

    def _assignment(self, node: nodes.Assignment) -> Iterator[str]:
        expressions = self._expressions
        match node:
            case nodes.Assignment(left=nodes.Slice(e0=whole, e1=high, e2=low), right=right):
                place = expressions.place(whole).source
                bits = (2 << high.value - low.value) - 1 << low.value
                yield f"{place} = {place} & {~bits} | {expressions.source(right)} << {low.value} & {bits}"
            case nodes.Assignment(left=nodes.PathExpression(type=kind) | nodes.Member(type=kind)) if (
                expressions.layouts.is_struct(kind)
            ):
                yield from self._struct(kind, node)
            case nodes.Assignment(left=left, right=right):
                yield f"{expressions.place(left).source} = {expressions.source(right)}"

    def _struct(self, kind: str, node: nodes.Assignment) -> Iterator[str]:
        """Field by field, and a header's validity with it."""
        layouts, target = self._expressions.layouts, self._expressions.place(node.left)
        leaves = layouts.leaves(kind, target.path)
        for leaf, (value, _) in zip(leaves, self._expressions.parts(node.right), strict=True):
            yield f"{Place(leaf.path, target.is_variable).source} = {value}"
        if not isinstance(node.right, nodes.Components):
            origin = self._expressions.place(node.right)
            headers = zip(layouts.headers(kind, target.path), layouts.headers(kind, origin.path), strict=True)
            for to, of in headers:
                yield f"v['{to}.{VALID}'] = v['{of}.{VALID}']"
        elif layouts.is_header(kind):
            yield f"v['{target.path}.{VALID}'] = 1"

    def _call(self, call: nodes.Call) -> Iterator[str]:
        expressions = self._expressions
        match call.method:
            case nodes.Member(expr=header, member=("setValid" | "setInvalid") as method):
                yield f"{expressions.place(header).member(VALID).source} = {int(method == 'setValid')}"
            case nodes.Member(expr=nodes.PathExpression(path=packet), member=("extract" | "emit") as method) if (
                packet == expressions.scope.packet
            ):
                yield from getattr(self, f"_{method}")(call.arguments[0].expression)
            case _:
                yield expressions.call(call)

    def _extract(self, header: nodes.Node) -> Iterator[str]:
        expressions = self._expressions
        leaves, offset = self._fields(header)
        yield f"n = r.take({offset // 8})"
        for leaf in leaves:
            offset -= leaf.number.bits
            bits = f"n >> {offset} & {leaf.number.mask}"
            value = f"signed({bits}, {leaf.number.bits})" if leaf.number.is_signed else bits
            yield f"v[{leaf.path!r}] = {value}"
        yield f"{expressions.place(header).member(VALID).source} = 1"

    def _emit(self, header: nodes.Node) -> Iterator[str]:
        expressions = self._expressions
        leaves, width = self._fields(header)
        offset, terms = width, []
        for leaf in leaves:
            offset -= leaf.number.bits
            value = f"v[{leaf.path!r}] & {leaf.number.mask}" if leaf.number.is_signed else f"v[{leaf.path!r}]"
            terms.append(f"({value}) << {offset}")
        yield f"if {expressions.place(header).member(VALID).source}:"
        yield f"{INDENT}out.append(({' | '.join(terms)}).to_bytes({width // 8}, 'big'))"

    def _fields(self, header: nodes.Node) -> tuple[tuple[Leaf, ...], int]:
        kind, path = header.type, self._expressions.place(header).path  # type: ignore[attr-defined]
        layouts = self._expressions.layouts
        if not layouts.is_header(kind) or layouts.bits(kind) % 8:
            raise NotImplementedError(f"{kind} is no header of whole bytes")
        return tuple(layouts.leaves(kind, path)), layouts.bits(kind)

    def _switch(self, node: nodes.Switch) -> Iterator[str]:
        match node.expression:
            case nodes.Member(expr=nodes.Call(method=nodes.Member(expr=nodes.PathExpression(path=name))) as call):
                table = self._expressions.scope.tables[name]
            case _:
                raise NotImplementedError(f"a switch on {node.expression}")
        yield self._expressions.call(call)
        labels: list[str] = []
        keyword = "if"
        for case in node.cases:
            labels.append(case.label.path if isinstance(case.label, nodes.PathExpression) else "")
            if case.statement is None:
                continue
            yield f"{keyword} True:" if "" in labels else f"{keyword} {table}.ran in {tuple(labels)!r}:"
            yield from self.body((case.statement,))
            keyword, labels = "elif", []
