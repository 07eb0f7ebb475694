"""A program that is not whole is refused with a ValueError or UnsupportedError, whatever is wrong with it."""

import ast
import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.compiler.layout import UnsupportedError
from emulator.compiler.program import compile_program
from p4src import PROGRAM
from tests.emulator.programs import Json, trainyard_json

BMV2 = Path(__file__).parents[1] / "bmv2"
PROGRAMS = {
    path.stem: path
    for path in (
        PROGRAM,
        *(path for path in sorted((BMV2 / "programs").glob("*.json")) if path.name != "manifest.json"),
        *(BMV2 / "constructs" / "programs" / f"{name}.json" for name in ("arithmetic", "stacks", "tables")),
    )
}
REPLACEMENTS = [None, True, -1, 0, 1, 999, 10**9, 1.5, "", "zzz", "0x1", [], [1], {}, {"type": "field"}]


def places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every container of a document with each of its keys."""
    keys = range(len(node)) if isinstance(node, list) else list(node) if isinstance(node, dict) else ()
    for key in keys:
        yield node, key
        yield from places(node[key])


@cache
def number_of_places(name: str) -> int:
    """How many values a program has."""
    return sum(1 for _ in places(json.loads(PROGRAMS[name].read_text())))


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A program of which one value is missing, or is another one."""
    name = draw(st.sampled_from(sorted(PROGRAMS)))
    document = json.loads(PROGRAMS[name].read_text())
    at = draw(st.integers(0, number_of_places(name) - 1))
    node, key = next(place for number, place in enumerate(places(document)) if number == at)
    if draw(st.booleans()):
        node[key] = draw(st.sampled_from(REPLACEMENTS))
    else:
        del node[key]
    return json.dumps(document)


@pytest.mark.slow
@given(damaged())
def test_a_damaged_program_is_compiled_or_refused(text: str) -> None:
    try:
        source, refusal = compile_program(text).source, "corrupt program: "
    except UnsupportedError:
        return
    except ValueError as error:
        source, refusal = "", str(error)
    ast.parse(source)
    assert re.match("corrupt program: |the program is not BMv2 JSON: ", refusal)


def change(path: str, value: Any) -> Callable[[Json], None]:
    """Put a value where a path of keys and positions leads."""

    def patch(program: Json) -> None:
        node: Any = program
        *above, last = (int(part) if part.isdigit() else part for part in path.split("/"))
        for part in above:
            node = node[part]
        node[last] = value

    return patch


def first_assignment(program: Json) -> Json:
    """The first assignment of an action."""
    found: Json = next(
        primitive for action in program["actions"] for primitive in action["primitives"] if primitive["op"] == "assign"
    )
    return found


FLOW = "pipelines/0/tables/0"

CORRUPT: dict[str, tuple[Callable[[Json], Any], str]] = {
    "header type": (change("headers/3/header_type", "zzz"), "header 'packet_out' refers to header type 'zzz'"),
    "first table": (change("pipelines/0/init_table", "nowhere"), "pipeline 'ingress' refers to node 'nowhere'"),
    "next table": (change(f"{FLOW}/base_default_next", "nowhere"), "table '.*' refers to node 'nowhere'"),
    "next after an action": (change(f"{FLOW}/next_tables", {"x": None}), "table '.*' refers to action 'x'"),
    "action of a table": (change(f"{FLOW}/action_ids", [999]), "table '.*' refers to the action with id 999"),
    "ids of other actions": (lambda program: program["actions"][0].update(name="x"), "by the ids of others"),
    "size of a table": (change(f"{FLOW}/max_size", -1), "table '.*' has a size of -1"),
    "condition": (change("pipelines/0/conditionals/0/true_next", "zzz"), "condition 'node_2' refers to node 'zzz'"),
    "parser state": (
        change("parsers/0/parse_states/0/transitions/0/next_state", "zzz"),
        "parser state 'start' refers to parser state 'zzz'",
    ),
    "first state": (change("parsers/0/init_state", "zzz"), "parser 'parser' refers to parser state 'zzz'"),
    "deparsed header": (change("deparsers/0/order/0", "zzz"), "deparser 'deparser' refers to header 'zzz'"),
    "calculation": (change("checksums/0/calculation", "zzz"), "checksum 'cksum' refers to calculation 'zzz'"),
    "checked field": (change("checksums/0/target", ["ipv4", "zzz"]), "refers to a field of 'ipv4', 'zzz'"),
    "hashed field": (change("calculations/0/input/0/value", ["zzz", "x"]), "'calc' refers to header 'zzz'"),
    "register's size": (change("register_arrays/0/size", "8"), "register 'egress.window' has a size of '8'"),
    "table of a counter": (change("counter_arrays/1/binding", "zzz"), "'ingress.flow_counter' refers to table 'zzz'"),
    "width": (change("header_types/4/fields/0/1", -4), "has a width of -4"),
    "parameter": (
        lambda program: first_assignment(program)["parameters"].__setitem__(1, {"type": "runtime_data", "value": 77}),
        "refers to its parameter 77, but has",
    ),
    "surplus": (
        lambda program: first_assignment(program)["parameters"].append({"type": "hexstr", "value": "0x0"}),
        "'assign' in action '.*' has 3 parameters, not 2",
    ),
    "header twice": (lambda program: program["headers"].append(program["headers"][3]), "have the name 'packet_out'"),
    "table twice": (
        lambda program: program["pipelines"][1]["tables"].append(program["pipelines"][0]["tables"][0]),
        "two parts of one kind have the name",
    ),
    "form": (change("headers", 5), "a part has the wrong form"),
}


@pytest.mark.parametrize(("patch", "words"), CORRUPT.values(), ids=CORRUPT.keys())
def test_what_is_not_there_is_named(patch: Callable[[Json], Any], words: str) -> None:
    program = trainyard_json()
    patch(program)
    with pytest.raises(ValueError, match=f"corrupt program: .*{words}"):
        compile_program(json.dumps(program))


def test_a_field_list_and_an_entry_of_the_program_that_are_not_there_are_named() -> None:
    program = json.loads(PROGRAMS["replication"].read_text())
    program["field_lists"] = []
    with pytest.raises(ValueError, match="refers to the field list with id 1, which does not exist"):
        compile_program(json.dumps(program))
    program = json.loads(PROGRAMS["tables"].read_text())
    table = next(table for table in program["pipelines"][0]["tables"] if table.get("entries"))
    table["entries"][0]["match_key"].pop()
    with pytest.raises(ValueError, match=r"entry 0 of table '.*' has \d values of a key, not \d"):
        compile_program(json.dumps(program))


def test_a_number_that_does_not_fit_is_named() -> None:
    for part in ("match_key", "action_entry"):
        program = json.loads(PROGRAMS["tables"].read_text())
        table = next(table for table in program["pipelines"][0]["tables"] if table.get("entries"))
        entry = table["entries"][0]
        if part == "match_key":
            entry[part][0] |= {"start": "0x0", "end": "0x10000"}
        else:
            entry[part]["action_data"][0] = "0x100"
        with pytest.raises(ValueError, match=r"entry 0 of table .* has '0x10+' where a number of \d+ bits belongs"):
            compile_program(json.dumps(program))


def test_json_without_end() -> None:
    with pytest.raises(ValueError, match="the program is not JSON"):
        compile_program("[" * 100_000)
