"""Source that moves headers between bytes on the wire and the words that a packet is processed in."""

from emulator.compiler.expressions import word
from emulator.compiler.layout import WORD_BITS, Field, Header

_Piece = tuple[str, int, int]
"""Source of a word, and the bits of the header that it holds: where they begin and how many they are."""


def extract_source(header: Header) -> list[str]:
    """Lines that fill a header from ``octets[at:]``; the caller has checked that the packet is long enough."""
    lines = []
    for field in header.fields.values():
        sources = bits_source(field.bit_offset, field.bits)
        lines += [f"{word(index)} = {source}" for index, source in zip(field.words, sources, strict=True)]
    return [*lines, f"{word(header.valid_word)} = U(1)"]


def bits_source(bit_offset: int, bits: int) -> list[str]:
    """Words of ``bits`` bits that stand ``bit_offset`` bits behind ``octets[at]``, lowest first."""
    return [_word_source(offset, size) for offset, size in _cut(bit_offset, bits)]


def _cut(bit_offset: int, bits: int) -> list[tuple[int, int]]:
    """Offset and size of each word of so many bits, lowest first."""
    end = bit_offset + bits
    starts = [max(bit_offset, end - WORD_BITS * (number + 1)) for number in range(-(-bits // WORD_BITS))]
    return [(start, end - WORD_BITS * number - start) for number, start in enumerate(starts)]


def _word_source(bit_offset: int, bits: int) -> str:
    first, last = bit_offset // 8, (bit_offset + bits - 1) // 8
    tail = 8 * (last + 1) - bit_offset - bits
    if last - first == WORD_BITS // 8:  # nine bytes
        source = f"({_bytes_source(first, last - 1)}) << U({8 - tail}) | octets[at + U({last})] >> U({tail})"
    else:
        source = _bytes_source(first, last)
        if tail:
            source = f"({source}) >> U({tail})"
    return f"({source}) & U({(1 << bits) - 1:#x})" if bits % 8 or tail else source


def _bytes_source(first: int, last: int) -> str:
    parts = [
        f"octets[at + U({number})]" + (f" << U({8 * (last - number)})" if number < last else "")
        for number in range(first, last + 1)
    ]
    return " | ".join(f"({part})" for part in parts)


def emit_source(header: Header) -> list[str]:
    """Lines that write a header's bytes to ``octets[at:]``."""
    pieces = [piece for field in header.fields.values() for piece in _pieces(field)]
    return [f"octets[at + U({number})] = {_byte_source(pieces, number)}" for number in range(header.num_bytes)]


def _pieces(field: Field) -> list[_Piece]:
    return [
        (word(index), start, size)
        for index, (start, size) in zip(field.words, _cut(field.bit_offset, field.bits), strict=True)
    ][::-1]


def _byte_source(pieces: list[_Piece], number: int) -> str:
    parts = []
    for source, start, size in pieces:
        end = start + size
        if start < 8 * (number + 1) and end > 8 * number:
            parts.append(_byte_part(source, end - 8 * (number + 1)))
    return " | ".join(parts)  # the store keeps the low eight bits


def _byte_part(source: str, bits_after: int) -> str:
    if bits_after > 0:
        return f"({source} >> U({bits_after}))"
    if bits_after < 0:
        return f"({source} << U({-bits_after}))"
    return source
