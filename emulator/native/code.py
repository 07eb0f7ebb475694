"""LLVM code of one function, as text: types, values, instructions, blocks and local variables."""

from collections.abc import Sequence
from dataclasses import dataclass

U64, I64, F64, BOOL = "u64", "i64", "f64", "bool"
BYTE = "byte"  # an item of an array of bytes, already as wide as a word; it takes the type that it is used with
NUMBER = "number"  # an integer of the source; so does it. Its text is decimal.

_SCALARS = {U64: "i64", I64: "i64", BYTE: "i64", F64: "double", BOOL: "i1"}


class LoweringError(Exception):
    """The source holds something that the compiler of machine code does not know."""


@dataclass(frozen=True)
class Array:
    """A contiguous array: type of its items, and shape of its rows, () where a row is an item.

    Its parts are an address and the number of rows.
    """

    item: str
    row: tuple[int, ...] = ()


@dataclass(frozen=True)
class Tuple:
    """A tuple of words and signed numbers."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Record:
    """A named tuple of arrays. Its parts are those of its fields, in order."""

    fields: tuple[tuple[str, Array], ...]


Kind = str | Array | Tuple | Record
"""A type."""


@dataclass(frozen=True)
class Value:
    """A value: its type, and LLVM's text for each of its parts; most have one."""

    kind: Kind
    parts: tuple[str, ...]

    @property
    def text(self) -> str:
        """The only part, or the first one."""
        return self.parts[0]


def scalar(kind: Kind, text: str) -> Value:
    """Return a value of one part."""
    return Value(kind, (text,))


def llvm_types(kind: Kind) -> list[str]:
    """Return LLVM's types for the parts of a value."""
    match kind:
        case Array():
            return ["ptr", "i64"]
        case Record(fields):
            return [part for _, array in fields for part in llvm_types(array)]
        case Tuple(items):
            return [f"[{len(items)} x i64]"]
        case str():
            return [_SCALARS[kind]]


def llvm_type(kind: Kind | None) -> str:
    """Return LLVM's type for a value of one part; None is the type of what returns nothing."""
    return llvm_types(kind)[0] if kind is not None else "void"


def with_types(values: Sequence[Value]) -> str:
    """Return the parts of values with their types, as arguments of a call."""
    return ", ".join(
        f"{kind} {part}" for value in values for kind, part in zip(llvm_types(value.kind), value.parts, strict=True)
    )


class Code:
    """Collects the instructions of a function, block by block."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._places: list[str] = []
        self._names = 0
        self.has_ended = False  # the block has its last instruction; nothing may follow
        self.block = "entry"

    def name(self, kind: str = "v") -> str:
        """Return a new name for a value or a block, without its percent sign."""
        self._names += 1
        return f"{kind}{self._names}"

    def value(self, kind: Kind, instruction: str) -> Value:
        """Append an instruction that gives a value of one part."""
        name = f"%{self.name()}"
        self._lines.append(f"  {name} = {instruction}")
        return scalar(kind, name)

    def append(self, instruction: str) -> None:
        """Append an instruction that gives none."""
        self._lines.append(f"  {instruction}")

    def end(self, instruction: str) -> None:
        """Append the last instruction of a block."""
        if not self.has_ended:
            self.append(instruction)
            self.has_ended = True

    def start(self, block: str) -> None:
        """Begin a block; the one before goes on into it unless it has ended."""
        self.end(f"br label %{block}")
        self._lines.append(f"{block}:")
        self.has_ended = False
        self.block = block

    def branch(self, condition: Value, then: str, otherwise: str) -> None:
        """End a block with a condition."""
        self.end(f"br i1 {condition.text}, label %{then}, label %{otherwise}")

    def place(self, kind: Kind) -> Value:
        """Return the place of a new local variable; LLVM keeps most of them in registers."""
        name = f"%{self.name('place')}"
        self._places.append(f"  {name} = alloca {llvm_type(kind)}")
        return scalar(kind, name)

    def load(self, place: Value) -> Value:
        """Read a local variable."""
        return self.value(place.kind, f"load {llvm_type(place.kind)}, ptr {place.text}")

    def store(self, place: Value, value: Value) -> None:
        """Write a local variable."""
        self.append(f"store {llvm_type(place.kind)} {value.text}, ptr {place.text}")

    def text(self) -> str:
        """Return all instructions."""
        return "\n".join(["entry:", *self._places, *self._lines])
