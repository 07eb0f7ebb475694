"""What the emulator does not execute is refused when the program is loaded, by name."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from emulator.compiler.layout import UnsupportedError
from emulator.compiler.program import compile_program
from tests.emulator.programs import Json, trainyard_json

Patch = Callable[[Json], Any]


def named(kind: str, **more: Any) -> Patch:
    """Put one object into a list of the program."""
    return lambda program: program.setdefault(kind, []).append({"name": "thing", "id": 0, **more})


def table(program: Json, name: str = "ingress.flow") -> Json:
    """A table of the ingress."""
    found: Json = next(node for node in program["pipelines"][0]["tables"] if node["name"] == name)
    return found


def key_kind(kind: str) -> Patch:
    """Let the first field of the flow table's key be matched otherwise."""
    return lambda program: table(program)["key"][0].update(match_type=kind)


def table_with(**more: Any) -> Patch:
    """Give the flow table something."""
    return lambda program: table(program).update(more)


def primitive(operation: str) -> Patch:
    """Let an action do something else first."""
    return lambda program: program["actions"][2]["primitives"].insert(0, {"op": operation, "parameters": []})


def parser_state(program: Json) -> Json:
    """The parser's first state."""
    found: Json = program["parsers"][0]["parse_states"][0]
    return found


def parser_operation(operation: str, **target: Any) -> Patch:
    """Let the parser do something else first."""
    return lambda program: parser_state(program)["parser_ops"].insert(0, {"op": operation, "parameters": [target]})


def transition(**more: Any) -> Patch:
    """Change the parser's first transition."""
    return lambda program: parser_state(program)["transitions"][0].update(more)


def field(header_type: str, *entry: Any) -> Patch:
    """Add a field to a header type."""

    def patch(program: Json) -> None:
        next(node for node in program["header_types"] if node["name"] == header_type)["fields"].append(list(entry))

    return patch


def operation(name: str) -> Patch:
    """Compute the ingress's first condition otherwise."""
    value = {"op": name, "left": None, "right": {"type": "bool", "value": True}}
    return lambda program: program["pipelines"][0]["conditionals"][0].update(
        expression={"type": "expression", "value": value}
    )


def operand(kind: str) -> Patch:
    """Let the ingress's first condition be a value of another kind."""
    return lambda program: program["pipelines"][0]["conditionals"][0].update(expression={"type": kind, "value": 0})


def algorithm(name: str, calculation: int = 0) -> Patch:
    """Compute a hash otherwise."""
    return lambda program: program["calculations"][calculation].update(algo=name)


def hash_input(*fields: Json) -> Patch:
    """Hash something else."""
    return lambda program: program["calculations"][0].update(input=list(fields))


DIFFERENT_ENTRIES = [{"match_key": [], "action_entry": {"action_id": 0, "action_data": []}, "priority": 1}]
THREE_BITS = {"type": "field", "value": ["scalars", "metadata_t.level"]}
FIVE_BITS = {"type": "hexstr", "value": "0x1f", "bitwidth": 5}
WIDE = {"type": "field", "value": ["ethernet", "source"]}

CONSTRUCTS: dict[str, tuple[Patch, str]] = {
    "wide register": (named("register_arrays", size=1, bitwidth=65), "register 'thing' of 65 bits"),
    "meter of three rates": (named("meter_arrays", rate_count=3), "meter 'thing' of 3 rates"),
    "meter of something else": (named("meter_arrays", rate_count=2, type="flows"), "meter 'thing' of flows"),
    "digest": (named("learn_lists"), r"learn lists \(thing\)"),
    "extern": (named("extern_instances"), r"extern instances \(thing\)"),
    "header stack": (named("header_stacks"), r"header stacks \(thing\)"),
    "header union type": (named("header_union_types"), r"header union types \(thing\)"),
    "header union": (named("header_unions"), r"header unions \(thing\)"),
    "header union stack": (named("header_union_stacks"), r"header union stacks \(thing\)"),
    "value set": (named("parse_vsets"), r"parse vsets \(thing\)"),
    "wide field": (field("ethernet_t", "wide", 72, False), r"field ethernet\.wide of 72 bits"),
    "varbit": (field("ipv4_t", "options", "*"), r"variable-length field ipv4\.options"),
    "signed field": (field("ports_t", "signed", 8, True), r"signed field ports\.signed"),
    "odd header": (field("ports_t", "odd", 3, False), r"header ports of 35 bits"),
    "range key": (
        key_kind("range"),
        r"classification\.p4:\d+: range match on 'source_address' in table 'ingress\.flow'",
    ),
    "valid key": (key_kind("valid"), "valid match on 'source_address'"),
    "ageing": (table_with(support_timeout=True), r"classification\.p4:\d+: support timeout of table 'ingress\.flow'"),
    "constant entries": (table_with(entries=DIFFERENT_ENTRIES), r"entries of table 'ingress\.flow'"),
    "unknown primitive": (primitive("frobnicate"), "primitive 'frobnicate'"),
    "unknown parser operation": (parser_operation("retreat", type="hexstr", value="0x8"), "parser operation 'retreat'"),
    "extract next": (parser_operation("extract", type="stack", value="thing"), "parser operation 'extract'"),
    "extract varbit": (parser_operation("extract_VL", type="regular", value="ipv4"), "operation 'extract_VL'"),
    "parser loop": (transition(next_state="start"), "parser loop through state 'start'"),
    "transition by value set": (transition(type="parse_vset"), "transition of type 'parse_vset' in state 'start'"),
    "no default transition": (
        lambda program: parser_state(program)["transitions"].pop(),
        "parser state 'start' without a default transition",
    ),
    "two parsers": (named("parsers"), "a program of 2 parsers"),
    "no egress": (lambda program: program["pipelines"].pop(), "a program without pipeline 'egress'"),
    "action calls": (
        lambda program: program["pipelines"][0].update(action_calls=[{"name": "thing"}]),
        "action calls of pipeline 'ingress'",
    ),
    "loop of tables": (
        lambda program: table(program)["next_tables"].update(NoAction="ingress.level"),
        r"loop through node 'ingress\.level'",
    ),
    "deparser statements": (
        lambda program: program["deparsers"][0].update(primitives=[{"op": "assign"}]),
        "a deparser with statements",
    ),
    "unknown operation": (operation("sat_cast"), "operation 'sat_cast'"),
    "unknown operand": (operand("register"), "operand of type 'register'"),
    "lookahead outside a parser": (operand("lookahead"), "operand of type 'lookahead'"),
    "unknown hash": (algorithm("xxh64"), "hash algorithm 'xxh64'"),
    "checksum algorithm": (algorithm("crc16", 1), r"checksum\.p4:\d+: hash algorithm 'crc16'"),
    "hash of bits": (hash_input(THREE_BITS), "crc32 over a number of bits that is not whole bytes"),
    "hash of the payload": (hash_input({"type": "payload"}), "hash input of type 'payload'"),
    "hash of ragged fields": (
        hash_input(THREE_BITS, THREE_BITS, WIDE, FIVE_BITS),
        "crc32 over a number of bits that is not whole bytes",
    ),
    "wide identity": (
        lambda program: program["pipelines"][0]["action_profiles"][0]["selector"].update(input=[WIDE, WIDE]),
        "hash 'identity' over more than 64 bits",
    ),
    "checksum type": (lambda program: program["checksums"][0].update(type="l4"), "checksum of type 'l4'"),
}


@pytest.mark.parametrize(("patch", "words"), CONSTRUCTS.values(), ids=CONSTRUCTS.keys())
def test_construct_is_refused_by_name(patch: Patch, words: str) -> None:
    program = trainyard_json()
    patch(program)
    with pytest.raises(UnsupportedError, match=rf"{words}.* is not supported by the emulator"):
        compile_program(json.dumps(program))


@pytest.mark.parametrize("text", ["", "{", "P4 is not JSON"])
def test_text_that_is_not_json(text: str) -> None:
    with pytest.raises(ValueError, match="the program is not JSON"):
        compile_program(text)


@pytest.mark.parametrize("text", ["{}", "[]", "5", "null", '"parsers"', '{"bars": [1, 2]}'])
def test_json_of_something_else(text: str) -> None:
    with pytest.raises(ValueError, match="the program is not BMv2 JSON"):
        compile_program(text)


@pytest.mark.parametrize("key", ["header_types", "parsers", "pipelines", "actions", "calculations", "counter_arrays"])
def test_part_that_is_missing_is_named(key: str) -> None:
    program = trainyard_json()
    del program[key]
    with pytest.raises(ValueError, match=rf"the program is not BMv2 JSON: it has no {key}"):
        compile_program(json.dumps(program))
