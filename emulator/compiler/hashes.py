"""Hashes and checksums over fields, as source; a calculation of the JSON is a list of fields and an algorithm.

Fields of a header that is not valid are left out, as BMv2 does.
"""

from emulator.compiler.expressions import ExpressionCompiler, constant, word
from emulator.compiler.functions import Function
from emulator.compiler.layout import Json, Layout, UnsupportedError

Chunk = tuple[str, int]
"""Source of a value, and its width in bits."""

Run = tuple[str | None, list[Chunk]]


class HashCompiler:
    """Source for the calculations of a program."""

    def __init__(self, program: Json, layout: Layout) -> None:
        self._layout = layout
        self._calculations = {calculation["name"]: calculation for calculation in program["calculations"]}
        self._checksums = program["checksums"]

    def value(self, name: str) -> str:
        """Source of the value of a calculation."""
        calculation = self._calculations[name]
        return self.over(calculation["algo"], calculation["input"], calculation)

    def over(self, algorithm: str, fields: list[Json], node: Json) -> str:
        """Source of a hash over a list of fields."""
        runs = self._runs(fields, node)
        chunks = [chunk for _, run in runs for chunk in run]
        match algorithm:
            case "crc32":
                source = "U(0xffffffff)"
                for valid, run in runs:
                    before = source
                    for text, num_bytes in _byte_groups(run, node):
                        source = f"crc32_update({source}, {text}, {num_bytes})"
                    source = f"({source} if {valid} else {before})" if valid else source
                return f"({source} ^ U(0xffffffff))"
            case "csum16":
                return f"csum16_finish({_sum_of_words(runs)})"
            case "identity":
                if sum(bits for _, bits in chunks) > 64:
                    raise UnsupportedError("hash 'identity' over more than 64 bits", node)
                return _concatenated(chunks)
        raise UnsupportedError(f"hash algorithm {algorithm!r}", node)

    def verify_function(self) -> Function:
        """Sets ``standard_metadata.checksum_error`` where a checksum that the program verifies is wrong."""
        error = word(self._layout.field(["standard_metadata", "checksum_error"]).word)
        lines: list[str] = []
        for checksum in self._checksums:
            if checksum["verify"]:
                target = word(self._layout.field(checksum["target"]).word)
                lines += [f"if {self._condition(checksum)}:"]
                lines += [f"    if {target} != {self.value(checksum['calculation'])}:", f"        {error} = U(1)"]
        return Function("verify_checksums", "phv", lines)

    def update_function(self) -> Function:
        """Rewrites the checksums that the program updates."""
        lines: list[str] = []
        for checksum in self._checksums:
            if checksum["update"]:
                field = self._layout.field(checksum["target"])
                lines += [f"if {self._condition(checksum)}:"]
                lines += [f"    {word(field.word)} = {self.value(checksum['calculation'])} & {constant(field.mask)}"]
        return Function("update_checksums", "phv", lines)

    def _condition(self, checksum: Json) -> str:
        if checksum.get("type") != "generic":
            raise UnsupportedError(f"checksum of type {checksum.get('type')!r}", checksum)
        condition = checksum.get("if_cond")
        return ExpressionCompiler(self._layout).value(condition) if condition else "True"

    def _runs(self, fields: list[Json], node: Json) -> list[Run]:
        """Neighbouring fields of one header, with the source of the header's validity; None where there is no doubt."""
        runs: list[Run] = []
        for field in fields:
            match field["type"]:
                case "field":
                    header = self._layout.headers[field["value"][0]]
                    valid = None if header.metadata else f"{word(header.valid_word)} != U(0)"
                    found = self._layout.field(field["value"])
                    chunk = (word(found.word), found.bits)
                case "hexstr" if "bitwidth" in field:
                    valid, chunk = None, (constant(int(field["value"], 16)), int(field["bitwidth"]))
                case other:
                    raise UnsupportedError(f"hash input of type {other!r}", node)
            if runs and runs[-1][0] == valid:
                runs[-1][1].append(chunk)
            else:
                runs.append((valid, [chunk]))
        return runs


def _concatenated(chunks: list[Chunk]) -> str:
    parts, shift = [], 0
    for text, bits in reversed(chunks):
        parts.append(f"({text} << U({shift}))" if shift else text)
        shift += bits
    return f"({' | '.join(reversed(parts))})"


def _byte_groups(chunks: list[Chunk], node: Json) -> list[Chunk]:
    """Join fields into groups of whole bytes, of at most eight each."""
    groups: list[Chunk] = []
    pending: list[Chunk] = []
    for chunk in chunks:
        pending.append(chunk)
        bits = sum(width for _, width in pending)
        if bits > 64:
            raise UnsupportedError("hash over fields that do not join to whole bytes within 64 bits", node)
        if bits % 8 == 0:
            groups.append((_concatenated(pending), bits // 8))
            pending = []
    if pending:
        raise UnsupportedError("crc32 over a number of bits that is not whole bytes", node)
    return groups


def _sum_of_words(runs: list[Run]) -> str:
    """Source of the sum of the 16-bit words that the fields make, padded with zeros at the end."""
    bits_of = [sum(width for _, width in run) for _, run in runs]
    if any(valid and bits % 16 for (valid, _), bits in zip(runs[:-1], bits_of, strict=False)):
        return _sum_of_shifting_words(runs)
    remaining = (sum(bits_of) + 15) // 16 * 16
    terms = []
    for (valid, run), bits in zip(runs, bits_of, strict=True):
        total = " + ".join(_words16(run, remaining))
        remaining -= bits
        terms.append(f"(({total}) if {valid} else U(0))" if valid else total)
    return " + ".join(terms)


def _sum_of_shifting_words(runs: list[Run]) -> str:
    """The same where a header that may be missing changes how what follows is cut into words."""
    source = "U(0)"
    for valid, run in runs:
        before = source
        for text, bits in run:
            source = f"csum16_add({source}, {text}, U({bits}))"
        source = f"({source} if {valid} else {before})" if valid else source
    return f"({source} >> U(8))"


def _words16(chunks: list[Chunk], remaining: int) -> list[str]:
    """Terms of fields that begin ``remaining`` bits before the end of all words."""
    terms = []
    for text, bits in chunks:
        start, end = remaining, remaining - bits
        remaining = end
        for word16 in range(end // 16, (start - 1) // 16 + 1):
            shift = end - 16 * word16
            moved = f"({text} << U({shift}))" if shift > 0 else f"({text} >> U({-shift}))" if shift < 0 else text
            terms.append(f"({moved} & U(0xffff))")
    return terms
