"""A reduced program (``reduce.py``) as frozen values: what it declares, one class for each kind."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from tests.p4src.tna import nodes
from tests.p4src.tna.reduce import Json


@dataclass(frozen=True, slots=True)
class ConstructorCall(nodes.Node):
    """An object without a name."""

    constructed_type: str
    arguments: tuple[nodes.Argument, ...]


@dataclass(frozen=True, slots=True)
class Instance(nodes.Node):
    """An object of an extern or a package; ``label`` is the control plane's name for it."""

    name: str
    label: str | None
    type: str
    arguments: tuple[nodes.Argument, ...]
    initializer: nodes.Block | None


@dataclass(frozen=True, slots=True)
class Function(nodes.Node):
    """An extern's method that the program writes, such as a register action's."""

    name: str
    parameters: tuple["Parameter", ...]
    body: nodes.Block


@dataclass(frozen=True, slots=True)
class Parameter(nodes.Node):
    """A parameter of a block, an action or a function."""

    name: str
    label: str | None
    type: str
    direction: str


@dataclass(frozen=True, slots=True)
class State(nodes.Node):
    """A parser's state."""

    name: str
    components: tuple[nodes.Node, ...]
    select_expression: nodes.PathExpression | nodes.SelectExpression | None


@dataclass(frozen=True, slots=True)
class Action(nodes.Node):
    """An action of a control."""

    name: str
    label: str | None
    parameters: tuple[Parameter, ...]
    body: nodes.Block


@dataclass(frozen=True, slots=True)
class Table(nodes.Node):
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
class ValueSet(nodes.Node):
    """Keys that the control plane gives a parser."""

    name: str
    label: str | None
    element_type: str


@dataclass(frozen=True, slots=True)
class Property(nodes.Node):
    """One property of a table."""

    name: str
    value: nodes.Node
    is_constant: bool


@dataclass(frozen=True, slots=True)
class ActionList(nodes.Node):
    """Actions of a table."""

    action_list: tuple["ExpressionValue", ...]


@dataclass(frozen=True, slots=True)
class ExpressionValue(nodes.Node):
    """An expression as a property, or an action in a list."""

    expression: nodes.Node


@dataclass(frozen=True, slots=True)
class Key(nodes.Node):
    """What a table matches."""

    key_elements: tuple["KeyElement", ...]


@dataclass(frozen=True, slots=True)
class KeyElement(nodes.Node):
    """One field of a key."""

    label: str | None
    expression: nodes.Node
    match_type: nodes.PathExpression


@dataclass(frozen=True, slots=True)
class EntriesList(nodes.Node):
    """Entries that a program brings."""

    entries: tuple["Entry", ...]


@dataclass(frozen=True, slots=True)
class Entry(nodes.Node):
    """One of them."""

    keys: nodes.Components
    action: nodes.Call
    priority: nodes.Node | None


@dataclass(frozen=True, slots=True)
class StructField(nodes.Node):
    """A field of a struct or a header."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Struct(nodes.Node):
    """A struct or a header."""

    name: str
    fields: tuple[StructField, ...]


@dataclass(frozen=True, slots=True)
class Parser(nodes.Node):
    """A pipeline's parser."""

    name: str
    thread: str
    parameters: tuple[Parameter, ...]
    parser_locals: tuple[nodes.Node, ...]
    states: tuple[State, ...]


@dataclass(frozen=True, slots=True)
class Control(nodes.Node):
    """A pipeline's control or deparser."""

    name: str
    thread: str
    parameters: tuple[Parameter, ...]
    control_locals: tuple[nodes.Node, ...]
    body: nodes.Block


@dataclass(frozen=True, slots=True)
class Program(nodes.Node):
    """All that is declared."""

    objects: tuple[nodes.Node, ...]


_CALLED_AS_IN_P4C = (
    *(nodes.Argument, nodes.Constant, nodes.Member, nodes.Mux, nodes.NamedExpression, nodes.PathExpression),
    *(nodes.SelectCase, nodes.SelectExpression, nodes.Slice, nodes.SwitchCase, nodes.TypeNameExpression),
    *(ActionList, EntriesList, Entry, Function, Key, KeyElement, Parameter, Property, StructField),
)
_CLASSES: Mapping[str, type[nodes.Node]] = {
    **dict.fromkeys(nodes.BINARY, nodes.Binary),
    **dict.fromkeys(nodes.RELATIONS, nodes.Relation),
    **dict.fromkeys(nodes.UNARY, nodes.Unary),
    **dict.fromkeys(nodes.CASTS, nodes.Cast),
    **dict.fromkeys(("BoolLiteral", "StringLiteral"), nodes.Literal),
    **dict.fromkeys(
        ("ListExpression", "HashListExpression", "StructExpression", "HashStructExpression"), nodes.Components
    ),
    **dict.fromkeys(("ExpressionValue", "ActionListElement"), ExpressionValue),
    **dict.fromkeys(("Type_Header", "Type_Struct"), Struct),
    **dict.fromkeys(("TnaControl", "TnaDeparser"), Control),
    **dict.fromkeys(("DefaultExpression", "EmptyStatement", "ExitStatement"), nodes.Node),
    "MethodCallExpression": nodes.Call,
    "ConstructorCallExpression": ConstructorCall,
    "AssignmentStatement": nodes.Assignment,
    "IfStatement": nodes.If,
    "BlockStatement": nodes.Block,
    "MethodCallStatement": nodes.CallStatement,
    "SwitchStatement": nodes.Switch,
    "ReturnStatement": nodes.Return,
    "Declaration_Variable": nodes.Variable,
    "Declaration_Instance": Instance,
    "ParserState": State,
    "P4Action": Action,
    "P4Table": Table,
    "P4ValueSet": ValueSet,
    "P4Program": Program,
    "TnaParser": Parser,
    **{kind.__name__: kind for kind in _CALLED_AS_IN_P4C},
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
