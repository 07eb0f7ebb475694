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

    Its parts are an address, the number of rows, and the sizes in place of which the shape has 0. Arrays in memories of
    different names have no byte in common; of an array without such a name nothing is known. A negative index counts
    from the end only where ``is_signed``.
    """

    item: str
    row: tuple[int, ...] = ()
    memory: str = ""
    is_signed: bool = True


@dataclass(frozen=True)
class Tuple:
    """A tuple of words and signed numbers."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Record:
    """A named tuple. Its parts are those of its fields, in order."""

    fields: "tuple[tuple[str, Kind], ...]"

    @property
    def is_of_numbers(self) -> bool:
        """Whether no field is an array."""
        return all(isinstance(kind, str) for _, kind in self.fields)


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


@dataclass(frozen=True)
class Place:
    """Where an item of an array is: the item's type, its address, and the name of the array's memory."""

    item: str
    address: str
    memory: str

    @property
    def tag(self) -> str:
        """What LLVM is told of an access: one of another type never meets it (type-based alias analysis)."""
        return f", !tbaa !{self.memory}" if self.memory else ""


def scalar(kind: Kind, text: str) -> Value:
    """Return a value of one part."""
    return Value(kind, (text,))


def llvm_types(kind: Kind) -> list[str]:
    """Return LLVM's types for the parts of a value."""
    match kind:
        case Array(row=row):
            return ["ptr", "i64", *["i64"] * row.count(0)]
        case Record(fields):
            return [part for _, kind in fields for part in llvm_types(kind)]
        case Tuple(items):
            return [f"[{len(items)} x i64]"]
        case str():
            return [_SCALARS[kind]]


def llvm_type(kind: Kind | None) -> str:
    """Return LLVM's type for a value, a structure where it has several parts; None is that of what returns nothing."""
    if kind is None:
        return "void"
    types = llvm_types(kind)
    return types[0] if len(types) == 1 else f"{{ {', '.join(types)} }}"


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

    def joined(self, value: Value) -> str:
        """Return a value as one, as functions return it."""
        if len(value.parts) == 1:
            return value.text
        whole, made = llvm_type(value.kind), "undef"
        for number, (kind, part) in enumerate(zip(llvm_types(value.kind), value.parts, strict=True)):
            made = self.value(value.kind, f"insertvalue {whole} {made}, {kind} {part}, {number}").text
        return made

    def split(self, kind: Kind, text: str) -> Value:
        """Return the value that a function has returned as one."""
        count, whole = len(llvm_types(kind)), llvm_type(kind)
        if count == 1:
            return scalar(kind, text)
        parts = (self.value(kind, f"extractvalue {whole} {text}, {number}").text for number in range(count))
        return Value(kind, tuple(parts))

    def place(self, kind: Kind) -> Value:
        """Return the place of a new local variable; LLVM keeps most of them in registers."""
        names = [(f"%{self.name('place')}", part) for part in llvm_types(kind)]
        self._places += [f"  {name} = alloca {part}" for name, part in names]
        return Value(kind, tuple(name for name, _ in names))

    def load(self, place: Value) -> Value:
        """Read a local variable."""
        parts = zip(llvm_types(place.kind), place.parts, strict=True)
        return Value(place.kind, tuple(self.value(place.kind, f"load {kind}, ptr {part}").text for kind, part in parts))

    def store(self, place: Value, value: Value) -> None:
        """Write a local variable."""
        for kind, to, part in zip(llvm_types(place.kind), place.parts, value.parts, strict=True):
            self.append(f"store {kind} {part}, ptr {to}")

    def text(self) -> str:
        """Return all instructions."""
        return "\n".join(["entry:", *self._places, *self._lines])
