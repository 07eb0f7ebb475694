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


def primitive(operation: str, *parameters: Json) -> Patch:
    """Let an action do something else first."""
    done = {"op": operation, "parameters": list(parameters)}
    return lambda program: program["actions"][2]["primitives"].insert(0, done)


def entries(*entries: Json, size: int = 64) -> Patch:
    """Let the level table have entries of the program."""
    return lambda program: table(program, "ingress.level").update(entries=list(entries), max_size=size)


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


def two_keys(program: Json) -> None:
    """Let two states look up one value set by different keys."""
    program["parse_vsets"].append({"name": "thing", "id": 0, "compressed_bitwidth": 16, "max_size": 4})
    for number, bits in enumerate((16, 17)):
        state = program["parsers"][0]["parse_states"][number]
        state["transition_key"] = [{"type": "lookahead", "value": [0, bits]}]
        state["transitions"] = [{"type": "parse_vset", "value": "thing", "mask": None, "next_state": None}]


def field(header_type: str, *entry: Any) -> Patch:
    """Add a field to a header type."""

    def patch(program: Json) -> None:
        next(node for node in program["header_types"] if node["name"] == header_type)["fields"].append(list(entry))

    return patch


def with_options(program: Json) -> None:
    """Give the IPv4 header a variable-length field."""
    found = next(node for node in program["header_types"] if node["name"] == "ipv4_t")
    found["fields"].append(["options", "*"])
    found["max_length"] = 60


def varbit_key(program: Json) -> None:
    """Match on a variable-length field."""
    with_options(program)
    table(program)["key"][0]["target"] = ["ipv4", "options"]


def varbit_number(program: Json) -> None:
    """Compare a variable-length field with a number."""
    with_options(program)
    condition(binary("==", {"type": "field", "value": ["ipv4", "options"]}, ONE))(program)


def condition(expression: Json) -> Patch:
    """Compute the ingress's first condition otherwise."""
    return lambda program: program["pipelines"][0]["conditionals"][0].update(expression=expression)


def operation(name: str) -> Patch:
    """Compute the ingress's first condition by another operation."""
    value = {"op": name, "left": None, "right": {"type": "bool", "value": True}}
    return condition({"type": "expression", "value": value})


def operand(kind: str) -> Patch:
    """Let the ingress's first condition be a value of another kind."""
    return condition({"type": kind, "value": 0})


def algorithm(name: str, calculation: int = 0) -> Patch:
    """Compute a hash otherwise."""
    return lambda program: program["calculations"][calculation].update(algo=name)


def hash_input(*fields: Json) -> Patch:
    """Hash something else."""
    return lambda program: program["calculations"][0].update(input=list(fields))


def hash_into(base: Json, size: Json) -> Patch:
    """Let an action hash into a range first."""
    return primitive(
        "modify_field_with_hash_based_offset", THREE_BITS, base, {"type": "calculation", "value": "calc"}, size
    )


def binary(name: str, left: Json, right: Json) -> Json:
    """An operation on two values."""
    return {"type": "expression", "value": {"op": name, "left": left, "right": right}}


def deparser_statement(name: str) -> Patch:
    """Let the deparser do something first."""
    return lambda program: program["deparsers"][0].update(primitives=[{"op": name, "parameters": [{}, {}, {}]}])


THREE_BITS = {"type": "field", "value": ["scalars", "metadata_t.level"]}
IN_A_HEADER = {"type": "field", "value": ["ipv4", "version"]}
WIDE_CONSTANT = {"type": "hexstr", "value": hex(1 << 64)}
IPV4 = {"type": "header", "value": "ipv4"}
MINUS_ONE = {"type": "hexstr", "value": "-0x1"}
ONE = {"type": "hexstr", "value": "0x1"}
ENTRY: Json = {
    "match_key": [{"match_type": "exact", "key": "0x2"}],
    "action_entry": {"action_id": 11, "action_data": ["0x1"]},
    "priority": 1,
}

CONSTRUCTS: dict[str, tuple[Patch, str]] = {
    "meter of three rates": (named("meter_arrays", rate_count=3), "meter 'thing' of 3 rates"),
    "meter of something else": (named("meter_arrays", rate_count=2, type="flows"), "meter 'thing' of flows"),
    "digest of a constant": (
        lambda program: (
            primitive("generate_digest", ONE, ONE)(program),
            program["learn_lists"].append({"name": "thing", "id": 1, "elements": [ONE]}),
        ),
        "element of type 'hexstr' in digest 'thing'",
    ),
    "digest that is too long": (
        lambda program: (
            primitive("generate_digest", ONE, ONE)(program),
            program["learn_lists"].append({"name": "thing", "id": 1, "elements": 600 * [THREE_BITS]}),
        ),
        "digest 'thing' of 602 bytes",
    ),
    "extern": (
        named("extern_instances", type="Oracle"),
        "'thing', an instance of the extern 'Oracle', which v1model does not have,",
    ),
    "saturating field": (field("ports_t", "full", 8, False, True), r"saturating field ports\.full"),
    "varbit without a limit": (field("ipv4_t", "options", "*"), "header type 'ipv4_t' of at most None bytes"),
    "field behind a varbit": (
        lambda program: (
            field("ipv4_t", "options", "*")(program),
            field("ipv4_t", "more", 8)(program),
            next(node for node in program["header_types"] if node["name"] == "ipv4_t").update(max_length=60),
        ),
        r"field ipv4\.more behind a variable-length field",
    ),
    "key of a varbit": (varbit_key, r"match on the variable-length field ipv4\.options"),
    "varbit as a number": (varbit_number, r"the variable-length field ipv4\.options as a number"),
    "odd header": (field("ports_t", "odd", 3, False), r"header ports of 35 bits"),
    "valid key": (key_kind("valid"), "valid match on 'source_address'"),
    "two prefixes": (
        lambda program: [key.update(match_type="lpm") for key in table(program)["key"]],
        r"more than one LPM field in the key of table 'ingress\.flow'",
    ),
    "register in the deparser": (
        deparser_statement("register_read"),
        "primitive 'register_read' in a parser or deparser",
    ),
    "assignment to a header": (
        lambda program: program["actions"][2]["primitives"].insert(
            0, {"op": "assign", "parameters": [IPV4, MINUS_ONE]}
        ),
        "assignment to a 'header'",
    ),
    "unknown primitive": (primitive("frobnicate"), "primitive 'frobnicate'"),
    "unknown parser operation": (
        parser_operation("retreat", type="hexstr", value="0x8"),
        "parser operation 'retreat' in parser state 'start'",
    ),
    "extract into something else": (
        parser_operation("extract", type="union", value="thing"),
        "extraction into a 'union' in parser state 'start'",
    ),
    "key that is computed": (
        lambda program: parser_state(program)["transition_key"].insert(0, ONE),
        "transition key of type 'hexstr' in parser state 'start'",
    ),
    "hash beyond 64 bits": (hash_into(WIDE_CONSTANT, ONE), "a hash into a range beyond 64 bits"),
    "hash of a range beyond 64 bits": (hash_into(ONE, WIDE_CONSTANT), "a hash into a range beyond 64 bits"),
    "random number beyond 64 bits": (
        primitive("modify_field_rng_uniform", THREE_BITS, ONE, WIDE_CONSTANT),
        "a random number beyond 64 bits",
    ),
    "part that nobody knows": (named("teleporters"), "part 'teleporters' of a BMv2 JSON"),
    "another format": (
        lambda program: program["__meta__"].update(version=[3, 0]),
        r"version 3 of BMv2 JSON \(known is 2\)",
    ),
    "entries with one key": (
        entries(ENTRY, ENTRY),
        "entry 1 of table 'ingress.level', with the key of entry 0,",
    ),
    "more entries than there is room": (
        entries(*({**ENTRY, "match_key": [{**ENTRY["match_key"][0], "key": hex(key)}]} for key in range(2)), size=1),
        "table 'ingress.level' of size 1 with 2 entries",
    ),
    "length of a header without varbit": (
        lambda program: parser_state(program)["parser_ops"].insert(
            0, {"op": "extract_VL", "parameters": [{"type": "regular", "value": "ipv4"}, ONE]}
        ),
        "a length for header 'ipv4', which has no variable-length field in parser state 'start'",
    ),
    "transition by something else": (
        transition(type="oracle"),
        "transition of type 'oracle' in parser state 'start'",
    ),
    "value set for different keys": (
        two_keys,
        "value set 'thing' for keys of different widths",
    ),
    "two parsers": (named("parsers"), "a program of 2 parsers"),
    "no egress": (lambda program: program["pipelines"].pop(), r"pipelines \['ingress'\]"),
    "two deparsers": (named("deparsers", order=[]), "a program of 2 deparsers"),
    "loop of tables": (
        lambda program: table(program)["next_tables"].update(NoAction="ingress.level"),
        r"loop through node 'ingress\.level'",
    ),
    "unknown operation": (operation("frobnicate"), "operation 'frobnicate'"),
    "wide division": (
        condition(binary("==", binary("/", WIDE_CONSTANT, WIDE_CONSTANT), WIDE_CONSTANT)),
        "operation '/' on negative values or more than 64 bits",
    ),
    "value without end": (
        condition(binary("==", binary("<<", WIDE_CONSTANT, WIDE_CONSTANT), WIDE_CONSTANT)),
        "a value of more than 4096 bits",
    ),
    "negative shift": (
        condition(binary("==", binary(">>", WIDE_CONSTANT, MINUS_ONE), MINUS_ONE)),
        "an index, length or number of bits that may be negative",
    ),
    "unknown operand": (operand("register"), "operand of type 'register'"),
    "lookahead outside a parser": (operand("lookahead"), "operand of type 'lookahead'"),
    "unknown hash": (algorithm("xxh64"), "hash algorithm 'xxh64'"),
    "hash of the payload": (hash_input({"type": "payload"}), "a hash of the payload in an action"),
    "hash of ragged headers": (
        hash_input(IN_A_HEADER, THREE_BITS),
        "a hash over headers of which one is not whole bytes",
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
