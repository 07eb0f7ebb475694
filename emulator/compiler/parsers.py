"""Compiler of a parser to functions of the generated module.

Without loops, each state is a function that calls the next one. With a loop, one function contains all states and
switches between them. Every iteration of a loop extracts something, so every packet ends it.
"""

from emulator.compiler.actions import ActionCompiler
from emulator.compiler.functions import Function, function_name
from emulator.compiler.layout import Json, Layout, UnsupportedError
from emulator.compiler.parse_graph import callees_first
from emulator.compiler.parser_states import StateCompiler
from emulator.compiler.resources import Resources


def parser_functions(program: Json, layout: Layout, actions: ActionCompiler, resources: Resources) -> list[Function]:
    """Return one function per parser state, callees first, or one for all; each returns the payload's offset in bytes.

    In a state, ``at`` is the first byte not yet extracted and ``end`` the end of the packet.
    """
    if len(program["parsers"]) != 1:
        raise UnsupportedError(f"a program of {len(program['parsers'])} parsers")
    parser = program["parsers"][0]
    states = {state["name"]: state for state in parser["parse_states"]}
    errors = dict(program["errors"])
    order, has_loop = callees_first(parser["init_state"], states, layout)
    numbers = {name: number for number, name in enumerate(reversed(order))}
    names = {name: function_name("parse", number, name) for name, number in numbers.items()}

    def goto(following: str | None) -> list[str]:
        if following is None:
            return ["return at"]
        if has_loop:
            return [f"step = {numbers[following]}", "continue"]
        return [f"return {names[following]}({layout.state_parameters})"]

    bodies = {name: StateCompiler(states[name], layout, actions, resources, errors, goto).lines() for name in order}
    if not has_loop:
        functions = [Function(names[name], layout.state_parameters, body) for name, body in bodies.items()]
        return [*functions, Function("parse", layout.state_parameters, goto(parser["init_state"]))]
    lines = [f"step = {numbers[parser['init_state']]}", "while True:"]
    for name, number in numbers.items():
        lines += [f"    if step == {number}:", *(f"        {line}" for line in bodies[name])]
    return [Function("parse", layout.state_parameters, lines)]
