"""Compiler of header reads and writes, between bytes on the wire and the words of a packet."""

from emulator.compiler.expressions import word
from emulator.compiler.layout import WORD_BITS, Header

_SIZES = (8, 4, 2, 1)  # bytes that are read and written at once


def extract_source(header: Header) -> list[str]:
    """Return the lines that fill a header from ``octets[at:]``; the caller has checked the packet's length.

    All bytes are read before any field is written, because LLVM cannot know that the two arrays are distinct.
    """
    chunks = _chunks(header.num_bytes)
    lines = [f"chunk_{first} = read_{size}(octets, at + U({first}))" for first, size in chunks]
    for source, start, size in _pieces(header):
        parts = [
            _shifted(f"chunk_{first}", start + size - 8 * (first + length))
            for first, length in chunks
            if start < 8 * (first + length) and start + size > 8 * first
        ]
        lines.append(f"{source} = ({' | '.join(parts)}) & U({(1 << size) - 1:#x})")
    return [*lines, f"{word(header.valid_word)} = U(1)"]


def emit_source(header: Header) -> list[str]:
    """Return the lines that write a header to ``octets[at:]``; bits of a word above a chunk are cut off."""
    lines = []
    for first, length in _chunks(header.num_bytes):
        parts = [
            _shifted(source, 8 * (first + length) - start - size)
            for source, start, size in _pieces(header)
            if start < 8 * (first + length) and start + size > 8 * first
        ]
        lines.append(f"write_{length}(octets, at + U({first}), {' | '.join(parts)})")
    return lines


def extract_variable_source(header: Header, size: str) -> list[str]:
    """Return the lines that fill a variable-length field of ``size`` bytes behind a header's others."""
    assert header.variable is not None
    lines = [f"{word(header.length_word)} = {size}"]
    for number, index in enumerate(reversed(header.variable.words)):
        lines.append(f"{word(index)} = read_left(octets, at + U({header.num_bytes}), {size}, U({8 * number}))")
    return lines


def emit_variable_source(header: Header) -> list[str]:
    """Return the lines that write a variable-length field behind a header's others."""
    assert header.variable is not None
    size = word(header.length_word)
    return [
        f"write_left(octets, at + U({header.num_bytes}), {word(index)}, {size}, U({8 * number}))"
        for number, index in enumerate(reversed(header.variable.words))
    ]


def _chunks(num_bytes: int) -> list[tuple[int, int]]:
    """Cut a header into chunks that are read and written at once; return first byte and number of bytes of each."""
    chunks, first = [], 0
    for size in _SIZES:
        while num_bytes - first >= size:
            chunks.append((first, size))
            first += size
    return chunks


def _pieces(header: Header) -> list[tuple[str, int, int]]:
    """Return an expression for every word of a header, and the header bits that it holds: the first, and how many."""
    return [
        (word(index), start, size)
        for field in header.fixed_fields
        for index, (start, size) in zip(field.words, _cut(field.bit_offset, field.bits), strict=True)
    ]


def _shifted(source: str, left: int) -> str:
    """Return a word shifted left, or right if ``left`` is negative."""
    return f"({source} << U({left}))" if left > 0 else f"({source} >> U({-left}))" if left < 0 else source


def bits_source(bit_offset: int, bits: int) -> list[str]:
    """Return the words of ``bits`` bits at ``bit_offset`` bits behind ``octets[at]``, lowest first."""
    return [_word_source(offset, size) for offset, size in _cut(bit_offset, bits)]


def _cut(bit_offset: int, bits: int) -> list[tuple[int, int]]:
    """Return offset and size of each word of a field, lowest first."""
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
