"""Compiler of hashes and checksums; a calculation of the JSON is a list of fields and an algorithm.

Fields of invalid headers are left out, as in BMv2.
"""

from dataclasses import dataclass
from functools import cached_property

from emulator.compiler.expressions import ExpressionCompiler, assigned, constant, word
from emulator.compiler.functions import Function
from emulator.compiler.layout import LENGTH, WORD_BITS, Field, Header, Json, Layout, UnsupportedError

Chunk = tuple[str, int]
"""Expression for a value, and its width in bits."""


@dataclass(frozen=True)
class VariableRun:
    """Eight bytes of a variable-length field, or fewer: expressions for their value and their number."""

    value: str
    num_bytes: str


@dataclass(frozen=True)
class PayloadRun:
    """All stored bytes behind the headers that were parsed; the others are zeros, which no sum shows."""


Run = tuple[str | None, list[Chunk] | VariableRun | PayloadRun]
"""What is hashed, and the condition under which it is."""


class HashCompiler:
    """Compiles the calculations of a program.

    The custom CRCs are the ordinary ones: only BMv2's command line can change their polynomials.
    """

    def __init__(self, program: Json, layout: Layout) -> None:
        self._layout = layout
        self._calculations = {calculation["name"]: calculation for calculation in program["calculations"]}
        self._checksums = program["checksums"]

    @cached_property
    def has_payload(self) -> bool:
        """Whether a checksum of the program is one over the payload, too."""
        names = {checksum["calculation"] for checksum in self._checksums}
        return any(_has_payload(calculation) for name, calculation in self._calculations.items() if name in names)

    @property
    def checksum_parameters(self) -> str:
        """Parameters of the two functions of checksums: where the payload is, if one needs it."""
        return "phv, octets, payload, end" if self.has_payload else "phv"

    def value(self, name: str, *, knows_payload: bool = False) -> str:
        """Return an expression for the value of a calculation; only a checksum ``knows_payload``."""
        calculation = self._calculations[name]
        if _has_payload(calculation) and not knows_payload:
            raise UnsupportedError("a hash of the payload in an action", calculation)
        return self.over(calculation["algo"], calculation["input"], calculation)

    def over(self, algorithm: str, fields: list[Json], node: Json) -> str:
        """Return an expression for a hash over a list of fields."""
        runs = self._runs(fields, node)
        match algorithm:
            case "crc32" | "crc32_custom":
                return f"({_over_bytes('crc32_update', 'U(0xffffffff)', runs, node)} ^ U(0xffffffff))"
            case "crc16" | "crc16_custom":
                return _over_bytes("crc16_update", "U(0)", runs, node)
            case "csum16":
                return f"csum16_finish({_sum_of_words(runs)})"
            case "xor16":
                return f"({_over_bits('xor16_add', 'U(0)', runs)} >> U(8))"
            case "identity":
                return _first_bytes(runs)
        raise UnsupportedError(f"hash algorithm {algorithm!r}", node)

    def verify_function(self) -> Function:
        """Return the function that sets ``standard_metadata.checksum_error`` if a verified checksum is wrong."""
        error = word(self._layout.field(["standard_metadata", "checksum_error"]).word)
        lines: list[str] = []
        for checksum in self._checksums:
            if checksum["verify"]:
                target = word(_target(checksum, self._layout).word)
                lines += [f"if {self._condition(checksum)}:"]
                value = self.value(checksum["calculation"], knows_payload=True)
                lines += [f"    if {target} != {value}:", f"        {error} = U(1)"]
        return Function("verify_checksums", self.checksum_parameters, lines)

    def update_function(self) -> Function:
        """Return the function that rewrites the checksums that the program updates."""
        lines: list[str] = []
        for checksum in self._checksums:
            if checksum["update"]:
                field = _target(checksum, self._layout)
                lines += [f"if {self._condition(checksum)}:"]
                value = self.value(checksum["calculation"], knows_payload=True)
                lines += [f"    {line}" for line in assigned(field, value)]
        return Function("update_checksums", self.checksum_parameters, lines)

    def _condition(self, checksum: Json) -> str:
        if checksum.get("type") != "generic":
            raise UnsupportedError(f"checksum of type {checksum.get('type')!r}", checksum)
        condition = checksum.get("if_cond")
        return ExpressionCompiler(self._layout).value(condition) if condition else "True"

    def _parts(self, part: Json) -> list[Json]:
        """Return what an input stands for: a header for all of its fields."""
        if part["type"] != "header":
            return [part]
        names = (name for name in self._layout.headers[part["value"]].fields if name != LENGTH)
        return [{"type": "field", "value": [part["value"], name]} for name in names]

    def _runs(self, fields: list[Json], node: Json) -> list[Run]:
        """Group adjacent fields of one header, with a condition for its validity; None if it is always valid."""
        runs: list[Run] = []
        for field in (part for whole in fields for part in self._parts(whole)):
            match field["type"]:
                case "field":
                    header = self._layout.headers[field["value"][0]]
                    valid = None if header.metadata else f"{word(header.valid_word)} != U(0)"
                    found = self._layout.field(field["value"])
                    if found.most_bytes:
                        runs += [(valid, run) for run in _variable_runs(header)]
                        continue
                    chunks = _chunks([word(index) for index in found.words], found.bits)
                case "hexstr" if "bitwidth" in field:
                    bits = int(field["bitwidth"])
                    value = int(field["value"], 16) & (1 << bits) - 1
                    valid = None
                    chunks = _chunks([constant(value >> start) for start in range(0, bits, WORD_BITS)], bits)
                case "payload" if field is fields[-1] and node.get("algo") == "csum16":
                    runs.append((None, PayloadRun()))
                    continue
                case other:
                    raise UnsupportedError(f"hash input of type {other!r}", node)
            before = runs[-1] if runs else None
            if before and before[0] == valid and isinstance(before[1], list):
                before[1].extend(chunks)
            else:
                runs.append((valid, chunks))
        return runs


def _variable_runs(header: Header) -> list[VariableRun]:
    assert header.variable is not None
    size = word(header.length_word)
    runs = []
    for number, index in enumerate(reversed(header.variable.words)):
        rest = f"({size} - min({size}, U({8 * number})))"
        num_bytes = f"min({rest}, U(8))"
        runs.append(VariableRun(f"shift_right({word(index)}, U(64) - U(8) * {num_bytes})", num_bytes))
    return runs


def _has_payload(calculation: Json) -> bool:
    return any(part["type"] == "payload" for part in calculation["input"])


def _target(checksum: Json, layout: Layout) -> Field:
    field = layout.field(checksum["target"])
    if len(field.words) > 1:
        raise UnsupportedError(f"a checksum in a field of {field.bits} bits", checksum)
    return field


def _concatenated(chunks: list[Chunk]) -> str:
    parts, shift = [], 0
    for text, bits in reversed(chunks):
        parts.append(f"({text} << U({shift}))" if shift else text)
        shift += bits
    return f"({' | '.join(reversed(parts))})"


def _chunks(words: list[str], bits: int) -> list[Chunk]:
    """Return a value of these words, lowest first, as its chunks from the left."""
    sizes = [min(WORD_BITS, bits - start) for start in range(0, bits, WORD_BITS)]
    return list(zip(words, sizes, strict=True))[::-1]


def _over_bytes(update: str, source: str, runs: list[Run], node: Json) -> str:
    """Return a hash that reads its input in groups of up to eight bytes; the last one is padded with zeros."""
    if any(isinstance(run, list) and sum(bits for _, bits in run) % 8 for _, run in runs[:-1]):
        raise UnsupportedError("a hash over headers of which one is not whole bytes", node)
    for valid, run in runs:
        assert not isinstance(run, PayloadRun)
        if isinstance(run, VariableRun):
            size = f"np.int64({run.num_bytes})"
            source = f"{update}({source}, {run.value}, {f'({size} if {valid} else 0)' if valid else size})"
            continue
        for text, num_bytes in _byte_groups(run):
            source = f"{update}({source}, {text}, {f'{num_bytes} if {valid} else 0' if valid else num_bytes})"
    return source


def _byte_groups(chunks: list[Chunk]) -> list[Chunk]:
    """Join and cut values into groups of eight bytes, the last one shorter; widths are in bytes."""
    groups: list[Chunk] = []
    pending: list[Chunk] = []
    padding = -sum(bits for _, bits in chunks) % 8
    for text, bits in (*chunks, *([("U(0)", padding)] if padding else [])):
        pending.append((text, bits))
        over = sum(width for _, width in pending) - WORD_BITS
        if over >= 0:
            pending[-1] = (f"({text} >> U({over}))" if over else text, bits - over)
            groups.append((_concatenated(pending), 8))
            # Drop pieces of no bits: shifting them by a whole word is undefined in LLVM.
            pending = [(f"({text} & {constant((1 << over) - 1)})", over)] if over else []
    if remaining := sum(width for _, width in pending):
        groups.append((_concatenated(pending), remaining // 8))
    return groups


def _over_bits(append: str, source: str, runs: list[Run]) -> str:
    """Return a hash state after all chunks; those of invalid headers have no bits."""
    for valid, run in runs:
        if isinstance(run, PayloadRun):
            source = f"csum16_bytes({source}, octets, payload, end)"
            continue
        if isinstance(run, VariableRun):
            bits_of_run = f"U(8) * ({run.num_bytes})"
            bits_if_valid = f"({bits_of_run} if {valid} else U(0))" if valid else bits_of_run
            source = f"{append}({source}, {run.value}, {bits_if_valid})"
            continue
        for text, bits in run:
            source = f"{append}({source}, {text}, {f'(U({bits}) if {valid} else U(0))' if valid else f'U({bits})'})"
    return source


def _first_bytes(runs: list[Run]) -> str:
    """Return the first eight bytes as a number, the last byte padded with zeros."""
    chunks = [chunk for _, run in runs if isinstance(run, list) for chunk in run]
    bits = sum(width for _, width in chunks)
    if bits <= WORD_BITS and not any(valid or isinstance(run, VariableRun) for valid, run in runs):
        return _concatenated([*chunks, ("U(0)", -bits % 8)] if bits % 8 else chunks)
    return f"identity_finish({_over_bits('identity_add', '(U(0), U(0))', runs)})"


def _sum_of_words(runs: list[Run]) -> str:
    """Return the sum of the 16-bit words that the fields form, padded with zeros at the end."""
    fixed = [(valid, run) for valid, run in runs if isinstance(run, list)]
    bits_of = [sum(width for _, width in run) for _, run in fixed]
    odd = any(valid and bits % 16 for (valid, _), bits in zip(fixed[:-1], bits_of, strict=False))
    if odd or len(fixed) < len(runs):
        # What may be missing or shorter changes how later bits are cut into words.
        return f"({_over_bits('csum16_add', 'U(0)', runs)} >> U(8))"
    remaining = (sum(bits_of) + 15) // 16 * 16
    terms = []
    for (valid, run), bits in zip(fixed, bits_of, strict=True):
        total = " + ".join(_words16(run, remaining))
        remaining -= bits
        terms.append(f"(({total}) if {valid} else U(0))" if valid else total)
    return " + ".join(terms)


def _words16(chunks: list[Chunk], remaining: int) -> list[str]:
    """Return the terms of fields that begin ``remaining`` bits before the end of all words."""
    terms = []
    for text, bits in chunks:
        start, end = remaining, remaining - bits
        remaining = end
        for word16 in range(end // 16, (start - 1) // 16 + 1):
            shift = end - 16 * word16
            moved = f"({text} << U({shift}))" if shift > 0 else f"({text} >> U({-shift}))" if shift < 0 else text
            terms.append(f"({moved} & U(0xffff))")
    return terms
