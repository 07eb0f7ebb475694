"""What p4c's JSON of its mid-end IR says about a program's behaviour: a tree without numbers of nodes.

p4c writes a graph: a node that stands in several places is written once and named by its Node_ID elsewhere. It comes
with every declaration of the architecture, and with the source text of every node. A reduced program is a tree with
types as text, such as ``bit<9>``, and only the declarations that are executed. Node types that are not known here are
refused by name.
"""

from collections.abc import Callable, Mapping
from typing import Any

Json = dict[str, Any]

_KEPT: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Shl", "Shr", "AddSat", "SubSat", "Concat"), ("type", "left", "right")),
    **dict.fromkeys(("BAnd", "BOr", "BXor", "Mask", "Range"), ("type", "left", "right")),
    **dict.fromkeys(("Equ", "Neq", "Lss", "Leq", "Grt", "Geq", "LAnd", "LOr"), ("left", "right")),
    **dict.fromkeys(("Cmpl", "Neg", "LNot"), ("type", "expr")),
    **dict.fromkeys(("Cast", "ReinterpretCast", "SignExtend"), ("destType", "expr")),
    "Constant": ("type", "value"),
    "BoolLiteral": ("value",),
    "StringLiteral": ("value",),
    "PathExpression": ("type", "path"),
    "TypeNameExpression": ("typeName",),
    "Member": ("type", "expr", "member"),
    "Slice": ("e0", "e1", "e2"),
    "Mux": ("type", "e0", "e1", "e2"),
    "DefaultExpression": (),
    "ListExpression": ("components",),
    "HashListExpression": ("components",),
    "StructExpression": ("components",),
    "HashStructExpression": ("components",),
    "NamedExpression": ("name", "expression"),
    "MethodCallExpression": ("type", "method", "typeArguments", "arguments"),
    "ConstructorCallExpression": ("constructedType", "arguments"),
    "Argument": ("expression",),
    "SelectExpression": ("select", "selectCases"),
    "SelectCase": ("keyset", "state"),
    "AssignmentStatement": ("left", "right"),
    "IfStatement": ("condition", "ifTrue", "ifFalse"),
    "BlockStatement": ("components",),
    "MethodCallStatement": ("methodCall",),
    "SwitchStatement": ("expression", "cases"),
    "SwitchCase": ("label", "statement"),
    "EmptyStatement": (),
    "ExitStatement": (),
    "ReturnStatement": ("expression",),
    "Declaration_Variable": ("name", "type"),
    "Declaration_Instance": ("name", "label", "type", "arguments", "initializer"),
    "Function": ("name", "parameters", "body"),
    "Parameter": ("name", "label", "type", "direction"),
    "ParserState": ("name", "components", "selectExpression"),
    "P4Action": ("name", "label", "parameters", "body"),
    "P4Table": ("name", "label", "properties"),
    "P4ValueSet": ("name", "label", "elementType"),
    "Property": ("name", "value", "isConstant"),
    "ActionList": ("actionList",),
    "ActionListElement": ("expression",),
    "Key": ("keyElements",),
    "KeyElement": ("label", "expression", "matchType"),
    "ExpressionValue": ("expression",),
    "EntriesList": ("entries",),
    "Entry": ("keys", "action", "priority"),
    "StructField": ("name", "type"),
    "Type_Header": ("name", "fields"),
    "Type_Struct": ("name", "fields"),
    "TnaParser": ("name", "thread", "parameters", "parserLocals", "states"),
    "TnaControl": ("name", "thread", "parameters", "controlLocals", "body"),
    "TnaDeparser": ("name", "thread", "parameters", "controlLocals", "body"),
}

_LEFT_OUT = frozenset({"expression", "ifFalse", "initializer", "priority", "selectExpression", "statement"})
"""What p4c does not write where it is not there."""

_NOT_EXECUTED = frozenset(
    {
        "Declaration_Constant",
        "Declaration_MatchKind",
        "Method",
        "Type_Control",
        "Type_Enum",
        "Type_Error",
        "Type_Extern",
        "Type_Package",
        "Type_Parser",
        "Type_SerEnum",
        "Type_Typedef",
    }
)
"""Declarations of the program's top level that say nothing about what it does."""

_TABLE_PROPERTIES = frozenset({"actions", "counters", "default_action", "entries", "key"})
_TABLE_SIZE = "size"


class UnknownNodeError(ValueError):
    """The IR holds what the reduction does not know."""


def reduced(document: Json) -> Json:
    """A reduced program of p4c's JSON; raises ``UnknownNodeError``."""
    return _Reduction(document).program()


class _Reduction:
    def __init__(self, document: Json) -> None:
        self._document = document
        self._nodes: dict[int, Json] = {}
        self._collect(document)
        self._texts: Mapping[str, Callable[[Json], str]] = {
            "Type_Bits": lambda node: f"{'int' if node['isSigned'] else 'bit'}<{node['size']}>",
            "Type_Array": lambda node: f"{self._type(node['elementType'])}[{self._whole(node['size'])['value']}]",
            "Type_Name": lambda node: str(self._whole(node["path"])["name"]),
            "Type_Specialized": self._specialised,
            "Type_SpecializedCanonical": self._specialised,
            "Type_Set": lambda node: self._type(node["elementType"]),
            "Type_Boolean": lambda _: "bool",
            "Type_Dontcare": lambda _: "_",
            "Type_InfInt": lambda _: "int",
            "Type_String": lambda _: "string",
            "Type_Void": lambda _: "void",
        }

    def program(self) -> Json:
        objects = [self._whole(node) for node in self._elements(self._document["objects"])]
        kept = [self._node(node) for node in objects if _node_type(node) not in _NOT_EXECUTED]
        return {"node": "P4Program", "objects": kept}

    def _collect(self, root: Any) -> None:
        pending = [root]
        while pending:
            value = pending.pop()
            if isinstance(value, dict):
                if "Node_Type" in value:
                    self._nodes[value["Node_ID"]] = value
                pending.extend(value.values())
            elif isinstance(value, list):
                pending.extend(value)

    def _whole(self, node: Json) -> Json:
        """A node, also where only its number stands."""
        return node if "Node_Type" in node else self._nodes[node["Node_ID"]]

    def _elements(self, value: Json | list[Any]) -> list[Json]:
        """What a list or one of p4c's vectors holds."""
        return value if isinstance(value, list) else list(self._whole(value)["vec"])

    def _node(self, reference: Json) -> Json:
        node = self._whole(reference)
        kind = _node_type(node)
        if kind not in _KEPT:
            raise UnknownNodeError(f"{kind} is no node of the mid-end IR that the interpreter knows")
        return {"node": kind} | {_snake(key): self._field(node, kind, key) for key in _KEPT[kind]}

    def _field(self, node: Json, kind: str, key: str) -> Any:
        match kind, key:
            case "SwitchCase", "label":
                return self._value(node[key])
            case _, "label":
                return self._label(node)
            case _, "type" | "destType" | "elementType" | "constructedType" | "typeName":
                return self._type(node[key])
            case _, "typeArguments":
                return [self._type(argument) for argument in self._elements(node[key])]
            case _, "direction" | "thread":
                return str(node[key]).lower()
            case "Function", "parameters":
                return self._parameters(self._whole(node["type"])["parameters"])
            case "P4Action", "parameters":
                return self._parameters(node[key])
            case _, "parameters":
                return self._parameters(self._whole(node["type"])["applyParams"])
            case "P4Table", "properties":
                return self._properties(node)
            case _, "path":
                return self._whole(node[key])["name"]
        return None if key in _LEFT_OUT and key not in node else self._value(node[key])

    def _value(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._node(element) for element in value]
        if isinstance(value, dict):
            whole = self._whole(value)
            if "vec" in whole:
                return [self._node(element) for element in whole["vec"]]
            return self._node(whole)
        return value

    def _properties(self, table: Json) -> list[Json]:
        properties = [self._whole(found) for found in self._elements(self._whole(table["properties"])["properties"])]
        unknown = {str(found["name"]) for found in properties} - _TABLE_PROPERTIES - {_TABLE_SIZE}
        if unknown:
            raise UnknownNodeError(f"table {table['name']} has {', '.join(sorted(unknown))}, which nothing here knows")
        return [self._node(found) for found in properties if found["name"] != _TABLE_SIZE]

    def _parameters(self, parameter_list: Json) -> list[Json]:
        return [self._node(parameter) for parameter in self._elements(self._whole(parameter_list)["parameters"])]

    def _label(self, node: Json) -> str | None:
        """The name that the control plane knows a declaration by."""
        for reference in self._elements(node.get("annotations", [])):
            annotation = self._whole(reference)
            if annotation["name"] == "name":
                (text,) = map(self._whole, self._elements(annotation["body"]["value"]))
                return str(text["value"]).removeprefix(".")
        return None

    def _specialised(self, node: Json) -> str:
        arguments = ",".join(self._type(argument) for argument in self._elements(node["arguments"]))
        return f"{self._type(node['baseType'])}<{arguments}>"

    def _type(self, reference: Json) -> str:
        node = self._whole(reference)
        text = self._texts.get(_node_type(node))
        if text is not None:
            return text(node)
        return str(node["name"]) if "name" in node else _node_type(node).removeprefix("Type_").lower()


def _node_type(node: Json) -> str:
    return str(node["Node_Type"]).rpartition("::")[2].partition("<")[0]


def _snake(key: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key)
