"""A reduced program (``reduce.py``) as frozen values, one class for each kind of node."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from tests.p4src.tna.reduce import Json

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
class ConstructorCall(Node):
    """An object without a name."""

    constructed_type: str
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


@dataclass(frozen=True, slots=True)
class Instance(Node):
    """An object of an extern or a package; ``label`` is the control plane's name for it."""

    name: str
    label: str | None
    type: str
    arguments: tuple[Argument, ...]
    initializer: Block | None


@dataclass(frozen=True, slots=True)
class Function(Node):
    """An extern's method that the program writes, such as a register action's."""

    name: str
    parameters: tuple["Parameter", ...]
    body: Block


@dataclass(frozen=True, slots=True)
class Parameter(Node):
    """A parameter of a block, an action or a function."""

    name: str
    type: str
    direction: str


@dataclass(frozen=True, slots=True)
class State(Node):
    """A parser's state."""

    name: str
    components: tuple[Node, ...]
    select_expression: PathExpression | SelectExpression | None


@dataclass(frozen=True, slots=True)
class Action(Node):
    """An action of a control."""

    name: str
    label: str | None
    parameters: tuple[Parameter, ...]
    body: Block


@dataclass(frozen=True, slots=True)
class Table(Node):
    """A table of a control."""

    name: str
    label: str | None
    properties: tuple["Property", ...]

    def value(self, name: str) -> Any:
        """Value of a property, None where the table has none."""
        return next((found.value for found in self.properties if found.name == name), None)

    def is_constant(self, name: str) -> bool:
        """Whether the control plane cannot change a property."""
        return any(found.is_constant for found in self.properties if found.name == name)


@dataclass(frozen=True, slots=True)
class ValueSet(Node):
    """Keys that the control plane gives a parser."""

    name: str
    label: str | None
    element_type: str


@dataclass(frozen=True, slots=True)
class Property(Node):
    """One property of a table."""

    name: str
    value: Node
    is_constant: bool


@dataclass(frozen=True, slots=True)
class ActionList(Node):
    """Actions of a table."""

    action_list: tuple["ExpressionValue", ...]


@dataclass(frozen=True, slots=True)
class ExpressionValue(Node):
    """An expression as a property, or an action in a list."""

    expression: Node


@dataclass(frozen=True, slots=True)
class Key(Node):
    """What a table matches."""

    key_elements: tuple["KeyElement", ...]


@dataclass(frozen=True, slots=True)
class KeyElement(Node):
    """One field of a key."""

    label: str | None
    expression: Node
    match_type: PathExpression


@dataclass(frozen=True, slots=True)
class EntriesList(Node):
    """Entries that a program brings."""

    entries: tuple["Entry", ...]


@dataclass(frozen=True, slots=True)
class Entry(Node):
    """One of them."""

    keys: Components
    action: Call
    priority: Node | None


@dataclass(frozen=True, slots=True)
class StructField(Node):
    """A field of a struct or a header."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Struct(Node):
    """A struct or a header."""

    name: str
    fields: tuple[StructField, ...]


@dataclass(frozen=True, slots=True)
class Parser(Node):
    """A pipeline's parser."""

    name: str
    thread: str
    parameters: tuple[Parameter, ...]
    parser_locals: tuple[Node, ...]
    states: tuple[State, ...]


@dataclass(frozen=True, slots=True)
class Control(Node):
    """A pipeline's control or deparser."""

    name: str
    thread: str
    parameters: tuple[Parameter, ...]
    control_locals: tuple[Node, ...]
    body: Block


@dataclass(frozen=True, slots=True)
class Program(Node):
    """All that is declared."""

    objects: tuple[Node, ...]


_CLASSES: Mapping[str, type[Node]] = {
    **dict.fromkeys(BINARY, Binary),
    **dict.fromkeys(RELATIONS, Relation),
    **dict.fromkeys(UNARY, Unary),
    **dict.fromkeys(CASTS, Cast),
    **dict.fromkeys(("BoolLiteral", "StringLiteral"), Literal),
    **dict.fromkeys(("ListExpression", "HashListExpression", "StructExpression", "HashStructExpression"), Components),
    **dict.fromkeys(("ExpressionValue", "ActionListElement"), ExpressionValue),
    **dict.fromkeys(("Type_Header", "Type_Struct"), Struct),
    **dict.fromkeys(("TnaControl", "TnaDeparser"), Control),
    **dict.fromkeys(("DefaultExpression", "EmptyStatement", "ExitStatement"), Node),
    "MethodCallExpression": Call,
    "ConstructorCallExpression": ConstructorCall,
    "AssignmentStatement": Assignment,
    "IfStatement": If,
    "BlockStatement": Block,
    "MethodCallStatement": CallStatement,
    "SwitchStatement": Switch,
    "ReturnStatement": Return,
    "Declaration_Variable": Variable,
    "Declaration_Instance": Instance,
    "ParserState": State,
    "P4Action": Action,
    "P4Table": Table,
    "P4ValueSet": ValueSet,
    "P4Program": Program,
    "TnaParser": Parser,
    **{
        kind.__name__: kind
        for kind in (Constant, PathExpression, TypeNameExpression, Member, Slice, Mux, NamedExpression, Argument)
    },
    **{
        kind.__name__: kind
        for kind in (SelectExpression, SelectCase, SwitchCase, Function, Parameter, Property, ActionList, Key)
    },
    **{kind.__name__: kind for kind in (KeyElement, EntriesList, Entry, StructField)},
}


def load(document: Json) -> Program:
    """A program of reduced JSON; raises ``ValueError`` for nodes and keys that are unknown."""
    program = _loaded(document)
    if not isinstance(program, Program):
        raise ValueError(f"the JSON is a {program.node}, not a program")
    return program


def _loaded(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_loaded, value))
    if not isinstance(value, dict):
        return value
    kind = _CLASSES.get(value["node"])
    if kind is None:
        raise ValueError(f"{value['node']} is no node that the interpreter knows")
    expected = {found.name for found in fields(kind)}
    if set(value) != expected:
        raise ValueError(f"{value['node']} has {sorted(value)}, not {sorted(expected)}")
    return kind(**{key: _loaded(part) for key, part in value.items()})
