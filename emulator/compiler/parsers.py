"""Compiler of a parser to functions of the generated module.

Without loops, each state is a function that calls the next one. With a loop, one function contains all states and
switches between them. A packet ends a loop whose every iteration extracts something. In the other ones the states that
it enters are counted, and after ``jumps.MAX_REPEATS`` of them the packet is halted.
"""

from emulator.compiler import jumps
from emulator.compiler.actions import ActionCompiler
from emulator.compiler.expressions import constant, word
from emulator.compiler.functions import Function, function_name
from emulator.compiler.layout import Json, Layout, UnsupportedError
from emulator.compiler.parse_graph import ParseGraph
from emulator.compiler.parser_states import StateCompiler
from emulator.compiler.resources import Resources


def parser_functions(program: Json, layout: Layout, actions: ActionCompiler, resources: Resources) -> list[Function]:
    """Return one function per parser state, callees first, or one for all; each returns the payload's offset in bytes.

    In a state, ``at`` is the first byte not yet extracted and ``end`` the end of the packet.
    """
    if len(program["parsers"]) != 1:
        raise UnsupportedError(f"a program of {len(program['parsers'])} parsers")
    parser = program["parsers"][0]
    graph, errors = ParseGraph(parser), dict(program["errors"])
    has_loop = graph.has_loop
    numbers = {name: number for number, name in enumerate(reversed(graph.states))}
    names = {name: function_name("parse", number, name) for name, number in numbers.items()}

    def goto(following: str | None) -> list[str]:
        if following is None:
            return ["return at"]
        if has_loop:
            return [f"step = {numbers[following]}", "continue"]
        return [f"return {names[following]}({layout.state_parameters})"]

    bodies = {
        name: StateCompiler(state, layout, actions, resources, errors, goto).lines()
        for name, state in graph.states.items()
    }
    if not has_loop:
        functions = [Function(names[name], layout.state_parameters, body) for name, body in bodies.items()]
        return [*functions, Function("parse", layout.state_parameters, goto(parser["init_state"]))]
    lines = ["repeats = 0"] if layout.idle_states else []
    lines += [f"step = {numbers[parser['init_state']]}", "while True:"]
    for name, number in numbers.items():
        body = [*_counted(layout), *bodies[name]] if name in layout.idle_states else bodies[name]
        lines += [f"    if step == {number}:", *(f"        {line}" for line in body)]
    return [Function("parse", layout.state_parameters, lines)]


def _counted(layout: Layout) -> list[str]:
    """Return the lines that count a state, and halt a packet that has entered too many."""
    assert layout.halt_word is not None
    halted = [f"    {word(layout.halt_word)} = {constant(jumps.REPEATED)}", "    return at"]
    return ["repeats += 1", f"if repeats > {jumps.MAX_REPEATS}:", *halted]
