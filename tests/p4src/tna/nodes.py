"""Code of a reduced program (``reduce.py``) as frozen values: expressions and statements, one class for each kind."""

from dataclasses import dataclass

BINARY = frozenset(
    ["Add", "Sub", "Mul", "Shl", "Shr", "AddSat", "SubSat", "Concat", "BAnd", "BOr", "BXor", "Mask", "Range"]
)
RELATIONS = frozenset(["Equ", "Neq", "Lss", "Leq", "Grt", "Geq", "LAnd", "LOr"])
UNARY = frozenset(["Cmpl", "Neg", "LNot"])
CASTS = frozenset(["Cast", "ReinterpretCast", "SignExtend"])


@dataclass(frozen=True, slots=True)
class Node:
    """A node; ``node`` is p4c's name for its kind. Types stand as text, such as ``bit<9>``."""

    node: str


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """An operation on two values."""

    type: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Relation(Node):
    """A comparison, or a connection of two truths."""

    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Unary(Node):
    """An operation on one value."""

    type: str
    expr: Node


@dataclass(frozen=True, slots=True)
class Cast(Node):
    """A value in another type."""

    dest_type: str
    expr: Node


@dataclass(frozen=True, slots=True)
class Constant(Node):
    """A number."""

    type: str
    value: int


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A truth or a text."""

    value: bool | str


@dataclass(frozen=True, slots=True)
class PathExpression(Node):
    """A declared name."""

    type: str
    path: str


@dataclass(frozen=True, slots=True)
class TypeNameExpression(Node):
    """A type in front of one of its members."""

    type_name: str


@dataclass(frozen=True, slots=True)
class Member(Node):
    """A field, a method, or a property of a call's result."""

    type: str
    expr: Node
    member: str


@dataclass(frozen=True, slots=True)
class Slice(Node):
    """Bits e1 down to e2 of e0."""

    e0: Node
    e1: Constant
    e2: Constant


@dataclass(frozen=True, slots=True)
class Mux(Node):
    """Where e0 is true e1, else e2."""

    type: str
    e0: Node
    e1: Node
    e2: Node


@dataclass(frozen=True, slots=True)
class Components(Node):
    """A list of values; those of a struct are named."""

    components: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class NamedExpression(Node):
    """One component of a struct."""

    name: str
    expression: Node


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A call of an action, a table, a header's method or an extern's."""

    type: str
    method: Node
    type_arguments: tuple[str, ...]
    arguments: tuple["Argument", ...]


@dataclass(frozen=True, slots=True)
class Argument(Node):
    """What a call is given."""

    expression: Node


@dataclass(frozen=True, slots=True)
class SelectExpression(Node):
    """The next state, by the first case that matches."""

    select: Components
    select_cases: tuple["SelectCase", ...]


@dataclass(frozen=True, slots=True)
class SelectCase(Node):
    """A set of keys and the state for them."""

    keyset: Node
    state: PathExpression


@dataclass(frozen=True, slots=True)
class Assignment(Node):
    """left = right."""

    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class If(Node):
    """One of two statements."""

    condition: Node
    if_true: Node
    if_false: Node | None


@dataclass(frozen=True, slots=True)
class Block(Node):
    """Statements in order."""

    components: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class CallStatement(Node):
    """A call whose result nobody wants."""

    method_call: Call


@dataclass(frozen=True, slots=True)
class Switch(Node):
    """Statements by the action that a table has run."""

    expression: Node
    cases: tuple["SwitchCase", ...]


@dataclass(frozen=True, slots=True)
class SwitchCase(Node):
    """Falls through to the next where it has no statement."""

    label: Node
    statement: Node | None


@dataclass(frozen=True, slots=True)
class Return(Node):
    """The end of an action, a function or a control."""

    expression: Node | None


@dataclass(frozen=True, slots=True)
class Variable(Node):
    """A local variable."""

    name: str
    type: str
