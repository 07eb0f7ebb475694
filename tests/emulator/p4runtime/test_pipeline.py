"""Which pairs of P4Info and BMv2 JSON are a pipeline."""

import json
from pathlib import Path

import grpc
import pytest
from finsy.proto import p4r

from emulator.p4runtime.errors import RequestError
from emulator.p4runtime.pipeline import Pipeline, compiled_pipeline, load_pipeline
from emulator.p4runtime.translate import decode_action, encode_action
from p4src import PROGRAM
from tests.bmv2.small_programs import DIFFERING
from tests.emulator.programs import Json

ResponseType = p4r.GetForwardingPipelineConfigRequest


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('name: "Ingress.flow" ', 'name: "Ingress.flood" ', "table Ingress.flood"),
        ('name: "Ingress.forward"', 'name: "Ingress.backward"', "action Ingress.backward"),
        ('name: "level" bitwidth: 3', 'name: "level" bitwidth: 4', "action Ingress.set_level"),
        (
            'name: "destination" bitwidth: 32 match_type: LPM',
            'name: "destination" bitwidth: 32 match_type: EXACT',
            "lpm",
        ),
        ('name: "Ingress.ecmp"', 'name: "Ingress.wcmp"', "action profile Ingress.wcmp"),
        ("implementation_id: 0x11000001", "", "table Ingress.routing"),
        ('name: "Egress.levels"', 'name: "Egress.ports"', "counter Egress.ports"),
        ("size: 8", "size: 9", "counter Egress.levels"),
        ('name: "Ingress.flow_counter"', 'name: "Ingress.count"', "direct counter Ingress.count"),
        ("action_refs { id: 0x01000004 }", "action_refs { id: 0x01000005 }", "no action with id 0x01000005"),
        ("direct_table_id: 0x02000001", "direct_table_id: 0x02000007", "no table with id 0x02000007"),
        ("id: 0x02000002", "id: 0x02000001", "Ingress.flow and Ingress.level"),
        ('name: "Egress.windows"', 'name: "Egress.window"', "register Egress.window with id 0x14000001"),
        (
            'name: "level" bitwidth: 3 }\n  metadata',
            'name: "level" bitwidth: 4 }\n  metadata',
            "controller header packet_out: fields",
        ),
        ('name: "packet_in" alias', 'name: "packet_out" alias', "packet_out is declared twice"),
        (
            'name: "source" bitwidth: 32',
            'name: "source" bitwidth: 24',
            "table Ingress.flow: field source: width in bits: 24",
        ),
        (
            "bitwidth: 12 match_type: EXACT }\n",
            "bitwidth: 12 match_type: EXACT }\n  action_refs { id: 0x01000003 }\n",
            "table Ingress.flow: action Ingress.drop: the table of the JSON",
        ),
        ("action_refs { id: 0x01000003 }", "", "table Ingress.access: action Ingress.drop: the table of the P4Info"),
        ("const_default_action_id: 0x01000002", "", "table Ingress.flow: constant default action: None, but NoAction"),
        ("const_default_action_id: 0x01000002", "const_default_action_id: 7", "no action with id 0x00000007"),
        ("size: 4\n", "size: 5\n", "table Ingress.flow: size: 5, but 4"),
        ("size: 64\n  max", "size: 65\n  max", "action profile Ingress.ecmp: size: 65, but 64"),
        ("with_selector: true", "", "action profile Ingress.ecmp: a selector"),
        ("bit { bitwidth: 32 }", "bit { bitwidth: 31 }", "register Egress.windows: width in bits: 31, but 32"),
        ("} }\n  size: 8", "} }\n  size: 9", "register Egress.windows: size: 9, but 8"),
        ('"egress_port" bitwidth: 9', '"egress_port" bitwidth: 17', "controller header packet_out: fields"),
        ('name: "packet_in" alias', 'name: "packet" alias', "controller header packet_in: fields"),
        ('id: 2 name: "port" bitwidth: 12', 'id: 1 name: "port" bitwidth: 12', "source and port have the same id"),
        ('id: 2 name: "mac"', 'id: 1 name: "mac"', "action Ingress.forward: port and mac have the same id"),
        ("id: 5 name", "id: 4 name", "packet_in have the same id"),
        ("tables {", "tables [", "not one in text form"),
    ],
)
def test_a_p4info_that_disagrees_is_refused_by_name(
    p4info_path: Path, device_config_path: Path, old: str, new: str, named: str
) -> None:
    text = p4info_path.read_text()
    assert old in text
    with pytest.raises(RequestError, match=named) as error:
        compiled_pipeline(text.replace(old, new, 1), device_config_path.read_bytes())
    assert error.value.code is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        (b'"ip_t"}', b'"packet_in_t"}', "table Ingress.flow: field source: width in bits: 32, but None"),
        (b'"binding": "Ingress.flow"', b'"binding": "Ingress.level"', "direct counter Ingress.flow_counter"),
        (
            b'"name": "packet_out", "header_type": "packet_out_t"',
            b'"name": "out", "header_type": "ip_t"',
            "packet_out: no header of the JSON",
        ),
    ],
)
def test_a_json_that_disagrees_is_refused_by_name(pipeline: Pipeline, old: bytes, new: bytes, named: str) -> None:
    data = pipeline.message.p4_device_config
    assert old in data
    with pytest.raises(RequestError, match=named) as error:
        load_pipeline(
            p4r.ForwardingPipelineConfig(p4info=pipeline.message.p4info, p4_device_config=data.replace(old, new))
        )
    assert error.value.code is grpc.StatusCode.INVALID_ARGUMENT


@pytest.fixture
def document(pipeline: Pipeline) -> Json:
    """The small program's JSON, to be changed."""
    found: Json = json.loads(pipeline.message.p4_device_config)
    return found


def changed(pipeline: Pipeline, document: Json) -> Pipeline:
    """The pipeline with another JSON."""
    data = json.dumps(document).encode()
    return load_pipeline(p4r.ForwardingPipelineConfig(p4info=pipeline.message.p4info, p4_device_config=data))


def test_what_p4c_has_dropped_is_refused_at_use_and_by_name(pipeline: Pipeline, document: Json) -> None:
    ingress = next(node for node in document["pipelines"] if any(t["name"] == "Ingress.flow" for t in node["tables"]))
    ingress["tables"] = [table for table in ingress["tables"] if table["name"] != "Ingress.level"]
    document["register_arrays"] = []
    schema = changed(pipeline, document).schema
    tables, registers = (
        {t.name: t.id for t in kind.values()} for kind in (pipeline.schema.tables, pipeline.schema.registers)
    )
    assert {table.name for table in schema.tables.values()} == tables.keys() - {"Ingress.level"}
    for find, number, name in (
        (schema.table, tables["Ingress.level"], "table Ingress.level"),
        (schema.register, registers["Egress.windows"], "register Egress.windows"),
    ):
        with pytest.raises(RequestError, match=f"{name} is not in the compiled program") as error:
            find(number)
        assert error.value.code is grpc.StatusCode.UNIMPLEMENTED


def test_what_is_there_under_another_name_is_not_taken_for_dropped(pipeline: Pipeline, document: Json) -> None:
    document["register_arrays"][0]["name"] = "Egress.frames"
    with pytest.raises(RequestError, match=r"register Egress\.windows .* none of this name, but Egress\.frames"):
        changed(pipeline, document)


def test_actions_of_one_name_are_told_apart_by_their_tables(pipeline: Pipeline, document: Json) -> None:
    double = {"name": "Ingress.forward", "id": 999, "runtime_data": [{"name": "x", "bitwidth": 1}], "primitives": []}
    document["actions"].append(double)
    assert changed(pipeline, document).schema.actions == pipeline.schema.actions


def test_a_parameter_that_the_program_does_not_use_is_kept_for_readers(pipeline: Pipeline, document: Json) -> None:
    action = next(node for node in document["actions"] if node["name"] == "Ingress.forward")
    dropped = action["runtime_data"].pop(0)
    action["primitives"] = []
    schema = changed(pipeline, document).schema
    forward = schema.actions_by_name["Ingress.forward"]
    table = next(table for table in schema.tables.values() if forward.id in table.scopes)
    message = p4r.Action(action_id=forward.id)
    for parameter in forward.parameters:
        message.params.add(param_id=parameter.id, value=bytes([parameter.id + 1]))
    call = decode_action(schema, table, message)
    assert len(call.arguments) == len(forward.parameters) - 1
    assert encode_action(schema, call) == message
    assert [parameter.name for parameter in forward.parameters if parameter.is_dropped] == [dropped["name"]]


def test_actions_without_an_id_are_refused_by_name(pipeline: Pipeline, document: Json) -> None:
    table = next(t for p in document["pipelines"] for t in p["tables"] if t["name"] == "Ingress.flow")
    table["action_ids"].append(999)
    with pytest.raises(RequestError, match=r"table Ingress\.flow: its actions in the JSON have other ids than names"):
        changed(pipeline, document)


def test_the_size_of_a_table_without_a_key_means_nothing() -> None:
    text, data = DIFFERING.p4info.read_text(), DIFFERING.json.read_bytes()
    always = text.index('name: "ingress.always"')
    assert "size: 8" in text[always:]
    compiled_pipeline(text[:always] + text[always:].replace("size: 8", "size: 9", 1), data)
    with pytest.raises(RequestError, match=r"table ingress\.route: size: 17, but 16"):
        compiled_pipeline(text.replace("size: 16", "size: 17"), data)


def test_a_controller_header_may_have_another_name_in_the_program(pipeline: Pipeline) -> None:
    data = pipeline.message.p4_device_config.replace(b'"name": "packet_out",', b'"name": "from_cpu",')
    load_pipeline(p4r.ForwardingPipelineConfig(p4info=pipeline.message.p4info, p4_device_config=data))


PROGRAMS = [PROGRAM, *(Path(__file__).parents[2] / "bmv2").rglob("programs/*.json")]


@pytest.mark.parametrize(
    "path", [path for path in PROGRAMS if path.name != "manifest.json"], ids=lambda path: path.stem
)
def test_what_p4c_makes_agrees(path: Path) -> None:
    compiled_pipeline(path.with_suffix(".p4info.txtpb").read_text(), path.read_bytes())


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"program": "x"}', b"\xff\xfe", b"[" * 100_000])
def test_a_device_config_that_is_no_bmv2_json_is_refused(pipeline: Pipeline, data: bytes) -> None:
    message = p4r.ForwardingPipelineConfig(p4info=pipeline.message.p4info, p4_device_config=data)
    with pytest.raises(RequestError, match="device config is not a BMv2 JSON") as error:
        load_pipeline(message)
    assert error.value.code is grpc.StatusCode.INVALID_ARGUMENT


def test_the_layout_of_the_json_does_not_count_but_its_content_does(pipeline: Pipeline) -> None:
    document = json.loads(pipeline.message.p4_device_config)
    other = p4r.ForwardingPipelineConfig()
    other.CopyFrom(pipeline.message)
    other.cookie.cookie = 7
    other.p4_device_config = json.dumps(document, indent=8).encode()
    assert load_pipeline(other).is_same_as(pipeline)
    document["actions"][2]["primitives"] = [{"op": "drop"}]
    other.p4_device_config = json.dumps(document).encode()
    assert not load_pipeline(other).is_same_as(pipeline)


@pytest.mark.parametrize(
    ("response_type", "fields"),
    [
        (ResponseType.ALL, {"p4info", "p4_device_config", "cookie"}),
        (ResponseType.COOKIE_ONLY, {"cookie"}),
        (ResponseType.P4INFO_AND_COOKIE, {"p4info", "cookie"}),
        (ResponseType.DEVICE_CONFIG_AND_COOKIE, {"p4_device_config", "cookie"}),
    ],
)
def test_parts(
    pipeline: Pipeline, response_type: p4r.GetForwardingPipelineConfigRequest.ResponseType.ValueType, fields: set[str]
) -> None:
    message = p4r.ForwardingPipelineConfig()
    message.CopyFrom(pipeline.message)
    message.cookie.cookie = 7
    part = load_pipeline(message).part(response_type)
    assert {field.name for field, _ in part.ListFields()} == fields
