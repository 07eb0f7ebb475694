"""The reduction keeps what p4c's JSON says about behaviour, and refuses what it does not know."""

from typing import Any

import pytest

from tests.p4src.tna import ir
from tests.p4src.tna.reduce import Json, UnknownNodeError, reduced

NINE_BITS = {"Node_ID": 7, "Node_Type": "Type_Bits", "size": 9, "isSigned": False}
AGAIN = {"Node_ID": 7}


def vector(number: int, *elements: Json) -> Json:
    return {"Node_ID": number, "Node_Type": "IndexedVector<Node>", "vec": list(elements)}


def field(number: int, name: str, kind: Json) -> Json:
    source = {"filename": "x.p4", "line": number, "column": 1, "source_fragment": name}
    named = {"Node_ID": number, "Node_Type": "StructField", "name": name, "declid": number}
    return named | {"annotations": vector(number + 100), "type": kind, "Source_Info": source}


def program(*objects: Json) -> Json:
    return {"Node_ID": 1, "Node_Type": "P4Program", "objects": vector(2, *objects)}


def struct(*fields: Json) -> Json:
    return {"Node_ID": 3, "Node_Type": "Type_Struct", "name": "pair_t", "fields": vector(4, *fields)}


def table(**properties: Any) -> Json:
    listed = [
        {"Node_ID": 20 + number, "Node_Type": "Property", "name": name, "value": value, "isConstant": False}
        for number, (name, value) in enumerate(properties.items())
    ]
    held = {"Node_ID": 11, "Node_Type": "TableProperties", "properties": vector(12, *listed)}
    named = {"Node_ID": 10, "Node_Type": "P4Table", "name": "t_0", "annotations": vector(13, label("ingress.t"))}
    return named | {"properties": held}


def label(name: str) -> Json:
    text = {"Node_ID": 32, "Node_Type": "StringLiteral", "value": f".{name}"}
    body = {"variant_index": 1, "value": {"Node_ID": 31, "Node_Type": "Vector<Expression>", "vec": [text]}}
    return {"Node_ID": 30, "Node_Type": "Annotation", "name": "name", "body": body}


def test_a_node_that_is_only_named_stands_for_the_one_written_before() -> None:
    document = program(struct(field(5, "low", NINE_BITS), field(6, "high", AGAIN)))
    (kind,) = ir.load(reduced(document)).objects
    assert isinstance(kind, ir.Struct)
    assert [(part.name, part.type) for part in kind.fields] == [("low", "bit<9>"), ("high", "bit<9>")]


def test_numbers_of_nodes_and_places_in_sources_do_not_matter() -> None:
    once = program(struct(field(5, "low", NINE_BITS)))
    elsewhere = program(struct(field(55, "low", NINE_BITS)))
    assert reduced(once) == reduced(elsewhere)


def test_declarations_that_are_not_executed_are_left_out() -> None:
    assert reduced(program({"Node_ID": 3, "Node_Type": "Type_Extern", "name": "Hash"}))["objects"] == []


def test_a_table_is_called_as_the_control_plane_calls_it() -> None:
    actions = {"Node_ID": 40, "Node_Type": "ActionList", "actionList": vector(41)}
    (found,) = ir.load(reduced(program(table(actions=actions, size={"Node_ID": 42, "Node_Type": "Size"})))).objects
    assert isinstance(found, ir.Table)
    assert found.label == "ingress.t"
    assert [held.name for held in found.properties] == ["actions"]


def test_an_unknown_node_is_refused_by_name() -> None:
    with pytest.raises(UnknownNodeError, match="Type_HeaderUnion"):
        reduced(program({"Node_ID": 3, "Node_Type": "Type_HeaderUnion", "name": "u"}))


def test_an_unknown_property_of_a_table_is_refused_by_name() -> None:
    with pytest.raises(UnknownNodeError, match="table t_0 has implementation"):
        reduced(program(table(implementation={"Node_ID": 42, "Node_Type": "ExpressionValue"})))


@pytest.mark.parametrize("node", [{"node": "ForStatement"}, {"node": "StructField", "name": "x"}])
def test_the_loader_refuses_nodes_and_keys_that_are_not_those_of_a_reduced_program(node: Json) -> None:
    with pytest.raises(ValueError, match=str(node["node"])):
        ir.load({"node": "P4Program", "objects": [node]})
