"""Source that moves headers between bytes on the wire and the packet's row of words."""

from emulator.compiler.expressions import word
from emulator.compiler.layout import Field, Header, UnsupportedError


def extract_source(header: Header) -> list[str]:
    """Lines that fill a header from ``octets[at:]``; the caller has checked that the packet is long enough."""
    lines = [f"{word(field.word)} = {bits_source(field.bit_offset, field.bits)}" for field in header.fields.values()]
    return [*lines, f"{word(header.valid_word)} = U(1)"]


def bits_source(bit_offset: int, bits: int) -> str:
    """Source of ``bits`` bits that stand ``bit_offset`` bits behind ``octets[at]``."""
    first, last = bit_offset // 8, (bit_offset + bits - 1) // 8
    if last - first >= 8:
        raise UnsupportedError(f"reading {bits} bits at bit {bit_offset} (they span nine bytes)")
    parts = [
        f"octets[at + U({number})]" + (f" << U({8 * (last - number)})" if number < last else "")
        for number in range(first, last + 1)
    ]
    source = " | ".join(f"({part})" for part in parts)
    tail = 8 * (last + 1) - bit_offset - bits
    if tail:
        source = f"({source}) >> U({tail})"
    return f"({source}) & U({(1 << bits) - 1:#x})" if bits % 8 or tail else source


def emit_source(header: Header) -> list[str]:
    """Lines that write a header's bytes to ``octets[at:]``."""
    return [f"octets[at + U({number})] = {_byte_source(header, number)}" for number in range(header.num_bytes)]


def _byte_source(header: Header, number: int) -> str:
    parts = []
    for field in header.fields.values():
        end = field.bit_offset + field.bits
        if field.bit_offset < 8 * (number + 1) and end > 8 * number:
            parts.append(_byte_part(field, end - 8 * (number + 1)))
    return " | ".join(parts)  # the store keeps the low eight bits


def _byte_part(field: Field, bits_after: int) -> str:
    if bits_after > 0:
        return f"({word(field.word)} >> U({bits_after}))"
    if bits_after < 0:
        return f"({word(field.word)} << U({-bits_after}))"
    return word(field.word)
