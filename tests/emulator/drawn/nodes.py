"""Nodes of BMv2 JSON: values, expressions and statements."""

from tests.emulator.programs import Json


def constant(value: int) -> Json:
    """A number."""
    return {"type": "hexstr", "value": hex(value)}


def expression(operation: str, left: Json | None, right: Json, **more: Json) -> Json:
    """An expression."""
    return {"type": "expression", "value": {"op": operation, "left": left, "right": right, **more}}


def statement(operation: str, *parameters: Json) -> Json:
    """A statement of an action, or an operation of a parser."""
    return {"op": operation, "parameters": list(parameters)}


def field_node(header: str, name: str) -> Json:
    """A field of a header."""
    return {"type": "field", "value": [header, name]}


def header_node(name: str) -> Json:
    """A whole header."""
    return {"type": "header", "value": name}
