"""P4 names may hold any character; what the compiler makes of them are functions that no other name shares."""

import ast
import json

import pytest

from emulator.compiler.program import compile_program
from p4src import PROGRAM

TABLES = "ingress.level", "ingress.job"
STATES = "parse_tcp", "parse_udp"


def renamed(old: tuple[str, str], new: tuple[str, str]) -> str:
    """Trainyard's program with other names for two things."""
    text = PROGRAM.read_text()
    for before, after in zip(old, new, strict=True):
        assert json.dumps(before) in text
        text = text.replace(json.dumps(before), json.dumps(after))
    return text


@pytest.mark.parametrize("new", [("a.b_c", "a_b.c"), ("a.b c", "a.b-c"), ("ä", "ö"), ('"""', "\\N"), ("a", "a_lookup")])
@pytest.mark.parametrize("old", [TABLES, STATES], ids=["tables", "parser states"])
def test_two_names_never_become_one_function(old: tuple[str, str], new: tuple[str, str]) -> None:
    plain, odd = (
        [node.name for node in ast.walk(ast.parse(compile_program(text).source)) if isinstance(node, ast.FunctionDef)]
        for text in (PROGRAM.read_text(), renamed(old, new))
    )
    assert len(set(odd)) == len(odd) == len(plain)


def test_the_programs_own_name_may_be_anything() -> None:
    program = json.loads(PROGRAM.read_text())
    usual = ast.dump(ast.parse(compile_program(json.dumps(program)).source))
    program["program"] = 'C:\\Users\\N\n"""\nraise SystemExit'
    assert ast.dump(ast.parse(compile_program(json.dumps(program)).source)) == usual
