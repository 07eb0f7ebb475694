"""Expressions as Python source with integers: ``v`` is the packet's dictionary, ``r`` what is yet to be parsed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.p4src.tna import nodes
from tests.p4src.tna.layouts import VALID, Layouts, Number, number

_COMPARISONS = {"Equ": "==", "Neq": "!=", "Lss": "<", "Leq": "<=", "Grt": ">", "Geq": ">="}
_CONNECTIONS = {"LAnd": "and", "LOr": "or"}
_WRAPPING = {"Add": "+", "Sub": "-", "Mul": "*"}
_BITWISE = {"BAnd": "&", "BOr": "|", "BXor": "^"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a name's value is: in the packet's dictionary under ``path``, or in Python variables called after it."""

    path: str
    is_variable: bool = False

    def member(self, name: str) -> "Place":
        """One of its fields."""
        return Place(f"{self.path}.{name}", self.is_variable)

    @property
    def source(self) -> str:
        """Python that reads it, and that it is assigned to."""
        return identifier(self.path) if self.is_variable else f"v[{self.path!r}]"


@dataclass(frozen=True, slots=True)
class Extern:
    """An object of an extern: its kind, such as ``Counter``, and the Python variable that holds it."""

    kind: str
    variable: str


@dataclass(frozen=True, slots=True)
class Scope:
    """What names mean in one block; ``packet`` is the name of its parameter that headers come from or go to."""

    places: Mapping[str, Place]
    externs: Mapping[str, Extern]
    tables: Mapping[str, str]
    actions: Mapping[str, str]
    packet: str | None = None

    def with_places(self, places: Mapping[str, Place]) -> "Scope":
        """The same block, with more names."""
        return Scope({**self.places, **places}, self.externs, self.tables, self.actions, self.packet)


def identifier(text: str) -> str:
    """A Python name like a text."""
    return "p_" + "".join(letter if letter.isalnum() else "_" for letter in text)


class Expressions:
    """Translates expressions of one block."""

    def __init__(self, layouts: Layouts, scope: Scope) -> None:
        self.layouts = layouts
        self.scope = scope

    def place(self, node: nodes.Node) -> Place:
        """What a name or a field stands for; raises ``NotImplementedError`` for anything else."""
        match node:
            case nodes.PathExpression(path=name) if name in self.scope.places:
                return self.scope.places[name]
            case nodes.Member(expr=owner, member=name):
                return self.place(owner).member(name)
        raise NotImplementedError(f"{node} is no place of values")

    def number(self, node: nodes.Node) -> Number:
        """The type of an expression's value."""
        match node:
            case nodes.Relation() | nodes.Literal():
                return Number(1)
            case nodes.Slice(e1=high, e2=low):
                return Number(high.value - low.value + 1)
            case nodes.Cast(dest_type=kind):
                return number(kind)
            case nodes.Member(member="hit" | "miss"):
                return Number(1)
        return number(node.type)  # type: ignore[attr-defined]

    def source(self, node: nodes.Node) -> str:
        """Python for a value."""
        match node:
            case nodes.Constant(value=value) | nodes.Literal(value=value):
                return repr(value)
            case nodes.Member(expr=nodes.Call() as call, member=("hit" | "miss") as outcome):
                hit = self.source(call)
                return hit if outcome == "hit" else f"(not {hit})"
            case nodes.PathExpression() | nodes.Member():
                return self.place(node).source
            case nodes.Slice(e0=whole, e1=high, e2=low):
                return f"({self.source(whole)} >> {low.value} & {(2 << high.value - low.value) - 1})"
            case nodes.Mux(e0=condition, e1=true, e2=false):
                return f"({self.source(true)} if {self.source(condition)} else {self.source(false)})"
            case nodes.Relation(node=name, left=left, right=right):
                return f"({self.source(left)} {(_COMPARISONS | _CONNECTIONS)[name]} {self.source(right)})"
            case nodes.Cast():
                return self._cast(node)
            case nodes.Unary():
                return self._unary(node)
            case nodes.Binary():
                return self._binary(node)
            case nodes.Call():
                return self.call(node)
        raise NotImplementedError(f"{node.node} as an expression")

    def _cast(self, node: nodes.Cast) -> str:
        value, target, origin = self.source(node.expr), number(node.dest_type), self.number(node.expr)
        if node.dest_type == "bool":
            return f"({value} != 0)"
        if node.node == "SignExtend":
            return wrapped(f"signed({value}, {origin.bits})", target)
        fits = not origin.is_signed and origin.bits <= target.bits - target.is_signed
        return f"int({value})" if origin.bits == 1 else value if fits else wrapped(value, target)

    def _unary(self, node: nodes.Unary) -> str:
        value = self.source(node.expr)
        if node.node == "LNot":
            return f"(not {value})"
        operator = "~" if node.node == "Cmpl" else "-"
        return wrapped(f"({operator}{value})", number(node.type))

    def _binary(self, node: nodes.Binary) -> str:
        left, right, kind = self.source(node.left), self.source(node.right), number(node.type)
        if node.node in _WRAPPING:
            return wrapped(f"({left} {_WRAPPING[node.node]} {right})", kind)
        if node.node in _BITWISE:
            return f"({left} {_BITWISE[node.node]} {right})"
        match node.node:
            case "AddSat" | "SubSat":
                operator = "+" if node.node == "AddSat" else "-"
                low, high = (-(1 << kind.bits - 1), kind.mask >> 1) if kind.is_signed else (0, kind.mask)
                return f"min(max({left} {operator} {right}, {low}), {high})"
            case "Shl":
                return wrapped(f"({left} << {right})", kind)
            case "Shr":
                return f"({left} >> {right})"
            case "Concat":
                low_part = self.number(node.right)
                return wrapped(f"({left} << {low_part.bits} | {right} & {low_part.mask})", kind)
        raise NotImplementedError(f"{node.node} as a value")

    # ---- calls ------------------------------------------------------------------------------------------------------

    def call(self, node: nodes.Call) -> str:
        """Python for a call."""
        arguments = [argument.expression for argument in node.arguments]
        match node.method:
            case nodes.PathExpression(path=name):
                return self._function(name, node, arguments)
            case nodes.Member(expr=owner, member="isValid"):
                return f"({self.place(owner).member(VALID).source} == 1)"
            case nodes.Member(expr=nodes.PathExpression(path=name), member=method):
                if name == self.scope.packet:
                    return self._packet_method(method, node, arguments)
                if name in self.scope.tables:
                    return f"{self.scope.tables[name]}.apply(v)"
                if name in self.scope.externs:
                    return self._extern_method(self.scope.externs[name], method, arguments)
        raise NotImplementedError(f"a call of {node.method}")

    def _function(self, name: str, node: nodes.Call, arguments: list[nodes.Node]) -> str:
        if name in self.scope.actions:
            given = "".join(f", {self.source(argument)}" for argument in arguments)
            return f"{self.scope.actions[name]}(v{given})"
        match name:
            case "min" | "max":
                return f"{name}({', '.join(map(self.source, arguments))})"
            case "sizeInBytes":
                return str(self.layouts.bits(node.type_arguments[0]) // 8)
        raise NotImplementedError(f"the function {name}")

    def _packet_method(self, method: str, node: nodes.Call, arguments: list[nodes.Node]) -> str:
        match method:
            case "lookahead":
                return f"r.ahead({number(node.type_arguments[0]).bits})"
            case "advance":
                return f"r.advance({self.source(arguments[0])})"
        raise NotImplementedError(f"packet_in.{method} as a value")

    def _extern_method(self, extern: Extern, method: str, arguments: list[nodes.Node]) -> str:
        name = extern.variable
        translate: Callable[[], str] | None = {
            ("Hash", "get"): lambda: f"{name}.get({self.joined(arguments[0])})",
            ("Counter", "count"): lambda: f"{name}.count({self.source(arguments[0])}, {self._counted(arguments[1:])})",
            ("DirectCounter", "count"): lambda: f"{name}.count({self._counted(arguments)})",
            ("Meter", "execute"): lambda: f"{name}.execute({self.source(arguments[0])}, v)",
            ("RegisterAction", "execute"): lambda: f"{name}(v, {self.source(arguments[0])})",
            ("Checksum", "add"): lambda: f"{name}.add(v, {self.joined(arguments[0])})",
            ("Checksum", "subtract"): lambda: f"{name}.subtract(v, {self.joined(arguments[0])})",
            ("Checksum", "verify"): lambda: f"{name}.is_wrong(v)",
            ("Checksum", "get"): lambda: f"{name}.get(v)",
            ("Checksum", "update"): lambda: f"{name}.update({self.joined(arguments[0])}{self._zeros(arguments[1:])})",
            ("Mirror", "emit"): lambda: self._mirrored(arguments),
        }.get((extern.kind, method))
        if translate is None:
            raise NotImplementedError(f"{extern.kind}.{method}")
        return translate()

    def _mirrored(self, arguments: list[nodes.Node]) -> str:
        """p4c's mid-end mirrors what no program mirrors to session 0, which is never set up: to nowhere."""
        match arguments:
            case [nodes.Constant(value=0)]:
                return "pass"
        raise NotImplementedError("Mirror.emit to a session")

    def _counted(self, adjustment: list[nodes.Node]) -> str:
        return f"v['$counted_bytes'] - {self.source(adjustment[0])}" if adjustment else "v['$counted_bytes']"

    def _zeros(self, flag: list[nodes.Node]) -> str:
        return f", {self.source(flag[0])}" if flag else ""

    # ---- lists of values --------------------------------------------------------------------------------------------

    def parts(self, node: nodes.Node) -> list[tuple[str, int]]:
        """Python for the numbers in a list, a struct or a header, each with its bits."""
        match node:
            case nodes.Components(components=components):
                return [part for component in components for part in self.parts(component)]
            case nodes.NamedExpression(expression=expression):
                return self.parts(expression)
            case nodes.PathExpression(type=kind) | nodes.Member(type=kind) if self.layouts.is_struct(kind):
                place = self.place(node)
                leaves = self.layouts.leaves(kind, place.path)
                return [(Place(leaf.path, place.is_variable).source, leaf.number.bits) for leaf in leaves]
        return [(self.source(node), self.number(node).bits)]

    def joined(self, node: nodes.Node) -> str:
        """Python for the two arguments that say a list's bits: one number, and how many they are."""
        return join(self.parts(node))


def join(parts: list[tuple[str, int]]) -> str:
    """Python for one number of the bits of several, and for how many they are."""
    width, terms = 0, []
    for source, bits in reversed(parts):
        terms.append(f"{source} << {width}" if width else source)
        width += bits
    return f"{' | '.join(reversed(terms)) or '0'}, {width}"


def wrapped(source: str, kind: Number) -> str:
    """Python for the bits of a number that a type keeps."""
    return f"signed({source}, {kind.bits})" if kind.is_signed else f"({source} & {kind.mask})"
