"""Compiler of the deparser to a function of the generated module."""

from emulator.compiler.actions import ActionCompiler
from emulator.compiler.expressions import word
from emulator.compiler.functions import Function
from emulator.compiler.layout import Header, Json, Layout, UnsupportedError
from emulator.compiler.wire import emit_source, emit_variable_source
from emulator.engine.state import OCTETS

DROPPED, TOO_LARGE, HALTED = -1, -2, -3


def deparser_function(program: Json, layout: Layout, actions: ActionCompiler) -> Function:
    """Return a function that writes the valid headers before the payload and returns their number of bytes.

    ``payload`` is where the payload starts before, ``stored`` the number of stored bytes of the packet. If more bytes
    would have to be stored than a packet holds, the function writes nothing and returns TOO_LARGE.
    """
    if len(program["deparsers"]) != 1:
        raise UnsupportedError(f"a program of {len(program['deparsers'])} deparsers")
    deparser = program["deparsers"][0]
    headers = [layout.headers[name] for name in deparser["order"]]
    lines = [line for statement in deparser.get("primitives", ()) for line in actions.statement(statement)]
    lines.append("size = U(0)")
    for header in headers:
        lines += [f"if {word(header.valid_word)} != U(0):", f"    size += {_size(header)}"]
    lines += [f"if stored - payload + size > U({OCTETS}):", "    return TOO_LARGE"]
    lines += ["if size != payload:", "    move(octets, at + payload, at + size, stored - payload)"]
    for header in headers:
        lines.append(f"if {word(header.valid_word)} != U(0):")
        lines += [f"    {line}" for line in emit_source(header)]
        if header.variable:
            lines += [f"    {line}" for line in emit_variable_source(header)]
        lines.append(f"    at += {_size(header)}")
    return Function("deparse", "phv, octets, at, payload, stored", [*lines, "return np.int64(size)"])


def _size(header: Header) -> str:
    """Return an expression for the number of a header's bytes."""
    return f"U({header.num_bytes})" + (f" + {word(header.length_word)}" if header.variable else "")
