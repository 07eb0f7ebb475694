"""Messages of whole numbers alone, as rows of 64-bit integers: those of every run, for which JSON takes too long.

Fields are ints and bools, tuples of ints, tuples of tuples of so many ints, and mappings of ints to ints. Each but the
first two begins with its length. What is decoded is made by the class's own constructor.
"""

import struct
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from functools import cache
from itertools import chain
from typing import Any

from runtime.codec import MalformedError

_WORD_BYTES = 8


def to_words(message: object) -> bytes:
    """Return the fields of a dataclass as words. Raises ValueError for numbers of more than 64 bits."""
    words: list[int] = []
    of_class: Any = type(message)
    for name, kind in _fields(of_class):
        value = getattr(message, name)
        if kind == "number":
            words.append(value)
        else:
            words.append(len(value))
            if kind == "numbers":
                words.extend(value)
            else:
                words.extend(chain.from_iterable(value.items() if kind == "mapping" else value))
    try:
        return _struct(len(words)).pack(*words)
    except struct.error as error:
        raise ValueError(f"{type(message).__name__}: {error}") from None


def from_words(kind: type, received: bytes) -> object:
    """Return the dataclass of ``kind`` that words are. Raises MalformedError."""
    number, rest = divmod(len(received), _WORD_BYTES)
    if rest:
        raise MalformedError(f"{kind.__name__}: expected whole words")
    words = iter(_struct(number).unpack(received))
    try:
        values = [_READERS[how](words) if isinstance(how, str) else _rows(words, how) for _, how in _fields(kind)]
    except (StopIteration, RuntimeError):
        raise MalformedError(f"{kind.__name__}: it ends too early") from None
    if next(words, None) is not None:
        raise MalformedError(f"{kind.__name__}: it goes on after its end")
    try:
        return kind(*values)
    except ValueError as error:
        raise MalformedError(f"{kind.__name__}: {error}") from None


@cache
def _struct(words: int) -> struct.Struct:
    return struct.Struct(f"!{words}q")


@cache
def _fields(kind: type) -> tuple[tuple[str, str | int], ...]:
    """Return the name of each field with its form; of rows it is their width."""
    hints = typing.get_type_hints(kind)
    return tuple((each.name, _form(hints[each.name])) for each in fields(kind))


def _form(hint: Any) -> str | int:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint in (int, bool):
        return "number"
    if origin is Mapping:
        return "mapping"
    assert origin is tuple
    assert arguments[1] is Ellipsis
    return "numbers" if arguments[0] is int else len(typing.get_args(arguments[0]))


def _numbers(words: Iterator[int]) -> tuple[int, ...]:
    return tuple([next(words) for _ in range(_length(words))])


def _rows(words: Iterator[int], width: int) -> tuple[tuple[int, ...], ...]:
    return tuple([tuple([next(words) for _ in range(width)]) for _ in range(_length(words))])


def _mapping(words: Iterator[int]) -> dict[int, int]:
    return {next(words): next(words) for _ in range(_length(words))}


def _length(words: Iterator[int]) -> int:
    length = next(words)
    if length < 0:
        raise MalformedError(f"expected a length, got {length}")
    return length


_READERS: dict[str, Callable[[Iterator[int]], Any]] = {"number": next, "numbers": _numbers, "mapping": _mapping}
