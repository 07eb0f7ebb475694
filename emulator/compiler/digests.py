"""Compiler of digests: what an action of ingress asks to be told to the controllers.

An action puts the number of a list into ``digest_word``; the last one counts. After ingress the event loop calls
``write_digest``, which writes that number and the list's values.
"""

from emulator.compiler.expressions import word
from emulator.compiler.functions import Function
from emulator.compiler.layout import Json, Layout, UnsupportedError
from emulator.engine.state import OCTETS

NUMBER_BYTES = 2
"""Bytes of the list's number; each value follows with as many whole bytes as its bits need, the highest first."""


def digest_function(program: Json, layout: Layout) -> Function:
    """Return ``write_digest(phv, octets, at)``, which gives the number of bytes that it has written."""
    digest = word(layout.digest_word or 0)
    lines = [f"octets[at] = {digest} >> U(8)", f"octets[at + U(1)] = {digest} & U(0xff)"]
    for node in program["learn_lists"]:
        place = NUMBER_BYTES
        body: list[str] = []
        for element in node["elements"]:
            if element["type"] != "field":
                raise UnsupportedError(f"element of type {element['type']!r} in digest {node['name']!r}", node)
            field = layout.field(element["value"])
            if field.most_bytes:
                raise UnsupportedError(f"variable-length field {field.name} in digest {node['name']!r}", node)
            num_bytes = -(-field.bits // 8)
            for number in range(num_bytes):
                part, shift = divmod(8 * (num_bytes - 1 - number), 64)
                value = f"({word(field.words[part])} >> U({shift})) & U(0xff)"
                body.append(f"octets[at + U({place + number})] = {value}")
            place += num_bytes
        if place > OCTETS:
            raise UnsupportedError(f"digest {node['name']!r} of {place} bytes (a packet keeps {OCTETS})", node)
        lines += [f"if {digest} == U({node['id']}):", *(f"    {line}" for line in body), f"    return {place}"]
    return Function("write_digest", "phv, octets, at", [*lines, f"return {NUMBER_BYTES}"])
