"""Frozen dataclasses as JSON and back, with every field checked: what strangers send is data, never code.

A dataclass becomes the list of its fields in order, a tuple a list, a mapping an object. What is decoded is made by the
class's own constructor, so its checks hold.
"""

import types
import typing
from collections.abc import Callable, Hashable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")
_Decoder = Callable[[Any], Any]


class MalformedError(ValueError):
    """What was received is not what was expected."""


def plain_fields(value: object) -> list[object]:
    """Return the fields of a dataclass, for ``json.dumps(..., default=plain_fields)``."""
    if not is_dataclass(value):
        raise TypeError(f"{type(value).__name__} cannot be sent")
    return [getattr(value, name) for name in _names(value.__class__)]


def decode_plain(kind: type[T], plain: object) -> T:
    """Return the dataclass of ``kind`` that plain JSON is. Raises MalformedError, which says what is wrong."""
    try:
        decoded: T = _decoder(typing.cast("Hashable", kind))(plain)
    except MalformedError:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise MalformedError(f"{kind.__name__}: {error}") from None
    return decoded


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind) if each.init)


@cache
def _decoder(kind: Any) -> _Decoder:
    """Return the function that makes a ``kind`` of plain JSON."""
    if kind is Any:
        return lambda plain: plain
    if is_dataclass(kind):
        return _dataclass_decoder(typing.cast("type", kind))
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple:
        return _tuple_decoder(arguments)
    if origin in (dict, Mapping):
        return _mapping_decoder(*arguments)
    if origin in (typing.Union, types.UnionType):
        return _optional_decoder(arguments)
    return _plain_decoder(kind)


def _dataclass_decoder(kind: type) -> _Decoder:
    hints = typing.get_type_hints(kind)
    decoders = [(name, _decoder(hints[name])) for name in _names(kind)]

    def decoded(plain: Any) -> Any:
        if type(plain) is not list or len(plain) != len(decoders):
            raise MalformedError(f"{kind.__name__}: expected {len(decoders)} fields")
        return kind(*(decoder(each) for (_, decoder), each in zip(decoders, plain, strict=True)))

    return decoded


def _tuple_decoder(arguments: tuple[Any, ...]) -> _Decoder:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        each_decoder = _decoder(arguments[0])

        def decoded(plain: Any) -> Any:
            if type(plain) is not list:
                raise MalformedError(f"expected a list, got {type(plain).__name__}")
            return tuple(map(each_decoder, plain))

        return decoded
    decoders = tuple(map(_decoder, arguments))

    def decoded_of_length(plain: Any) -> Any:
        if type(plain) is not list or len(plain) != len(decoders):
            raise MalformedError(f"expected a list of {len(decoders)}")
        return tuple(decoder(each) for decoder, each in zip(decoders, plain, strict=True))

    return decoded_of_length


def _mapping_decoder(key: Any, value: Any) -> _Decoder:
    each_decoder = _decoder(value)
    key_of = int if key is int else str

    def decoded(plain: Any) -> Any:
        if type(plain) is not dict:
            raise MalformedError(f"expected an object, got {type(plain).__name__}")
        return {key_of(name): each_decoder(each) for name, each in plain.items()}

    return decoded


def _optional_decoder(arguments: tuple[Any, ...]) -> _Decoder:
    (kind,) = (each for each in arguments if each is not type(None))
    decoder = _decoder(kind)
    return lambda plain: None if plain is None else decoder(plain)


def _plain_decoder(kind: Any) -> _Decoder:
    allowed = (int, float) if kind is float else (kind,)

    def decoded(plain: Any) -> Any:
        if type(plain) not in allowed:
            raise MalformedError(f"expected {kind.__name__}, got {type(plain).__name__}")
        return plain

    return decoded
