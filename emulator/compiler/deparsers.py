"""The deparser as a function of the generated module."""

from emulator.compiler.actions import ActionCompiler
from emulator.compiler.expressions import word
from emulator.compiler.functions import Function
from emulator.compiler.layout import Json, Layout, UnsupportedError
from emulator.compiler.wire import emit_source
from emulator.engine.state import OCTETS

DROPPED, TOO_LARGE = -1, -2


def deparser_function(program: Json, layout: Layout, actions: ActionCompiler) -> Function:
    """Writes the valid headers in order in front of the payload and returns the number of bytes before the payload.

    ``payload`` is where the payload starts now, ``stored`` the number of bytes of the packet that are stored. Where
    more would have to be stored than a packet keeps, nothing is written and TOO_LARGE returned.
    """
    if len(program["deparsers"]) != 1:
        raise UnsupportedError(f"a program of {len(program['deparsers'])} deparsers")
    deparser = program["deparsers"][0]
    headers = [layout.headers[name] for name in deparser["order"]]
    lines = [line for statement in deparser.get("primitives", ()) for line in actions.statement(statement)]
    lines.append("size = U(0)")
    for header in headers:
        lines += [f"if {word(header.valid_word)} != U(0):", f"    size += U({header.num_bytes})"]
    lines += [f"if stored - payload + size > U({OCTETS}):", "    return TOO_LARGE"]
    lines += ["if size != payload:", "    move(octets, at + payload, at + size, stored - payload)"]
    for header in headers:
        lines.append(f"if {word(header.valid_word)} != U(0):")
        lines += [f"    {line}" for line in emit_source(header)]
        lines.append(f"    at += U({header.num_bytes})")
    return Function("deparse", "phv, octets, at, payload, stored", [*lines, "return np.int64(size)"])
