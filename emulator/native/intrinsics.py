"""Functions of machine code without a source: those of the C library, and what caches and other threads need."""

from dataclasses import dataclass

from emulator.native.arithmetic import converted, typed
from emulator.native.arrays import ITEMS
from emulator.native.code import I64, U64, Array, Code, LoweringError, Value, with_types


@dataclass(frozen=True)
class External:
    """A function of the C library; numbers of 32 bits are its ``int``s. ``errno`` is not to be had."""

    name: str
    result_bits: int
    argument_bits: tuple[int, ...]

    @property
    def declaration(self) -> str:
        """What a module says that calls the function."""
        return f"declare i{self.result_bits} @{self.name}({', '.join(f'i{bits}' for bits in self.argument_bits)})"

    def call(self, code: Code, arguments: list[Value]) -> Value:
        """Append a call. Raises LoweringError for another number of arguments."""
        if len(arguments) != len(self.argument_bits):
            raise LoweringError(f"{self.name} of {len(arguments)} arguments")
        given = []
        for bits, argument in zip(self.argument_bits, arguments, strict=True):
            text = converted(code, typed(argument), I64, cast=True).text
            given.append(f"i{bits} {text if bits == 64 else code.value(I64, f'trunc i64 {text} to i{bits}').text}")
        result = code.value(I64, f"call i{self.result_bits} @{self.name}({', '.join(given)})")
        if self.result_bits == 64:
            return result
        return code.value(I64, f"sext i{self.result_bits} {result.text} to i64")


class Prefetch:
    """Brings an item of an array into the processor's cache without waiting; any index is allowed."""

    declaration = "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"

    def call(self, code: Code, arguments: list[Value]) -> None:
        """Append a call for an array and an index."""
        array, index = arguments
        code.append(f"call void @llvm.prefetch.p0(ptr {_item(code, array, index)}, i32 0, i32 3, i32 1)")


class LoadAcquire:
    """Reads an integer that another thread stores, before all that this thread reads later."""

    declaration = ""

    def call(self, code: Code, arguments: list[Value]) -> Value:
        """Append a call for an array and an index."""
        array, index = arguments
        return code.value(I64, f"load atomic i64, ptr {_item(code, array, index)} acquire, align 8")


class StoreRelease:
    """Stores an integer for other threads, after all that this thread has written."""

    declaration = ""

    def call(self, code: Code, arguments: list[Value]) -> None:
        """Append a call for an array, an index and the integer."""
        array, index, value = arguments
        word = converted(code, value, I64, cast=True).text
        code.append(f"store atomic i64 {word}, ptr {_item(code, array, index)} release, align 8")


class CallAddress:
    """Calls a function that returns nothing at an address, which ``Entry.inner_address`` has given."""

    declaration = ""

    def call(self, code: Code, arguments: list[Value]) -> None:
        """Append a call for the address and the function's arguments."""
        address, *others = arguments
        pointer = code.value(U64, f"inttoptr i64 {converted(code, address, I64, cast=True).text} to ptr")
        code.append(f"call void {pointer.text}({with_types(others)})")


def _item(code: Code, array: Value, index: Value) -> str:
    """Return the address of an item; a negative index lies before the array."""
    if not isinstance(array.kind, Array):
        raise LoweringError(f"an item of a {array.kind}")
    at = converted(code, index, I64, cast=True).text
    return code.value(U64, f"getelementptr {ITEMS[array.kind.item]}, ptr {array.text}, i64 {at}").text


Intrinsic = External | Prefetch | LoadAcquire | StoreRelease | CallAddress
"""Functions without a source."""
