"""Messages drawn from their descriptors: plausible ones, odd ones, and octets that are none."""

from collections.abc import Mapping
from random import Random
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from tests.fuzz import hostile
from tests.fuzz.mutations import mutated_bytes

Words = Mapping[str, tuple[Any, ...]]
"""By the name of a field: values that make sense there."""

_DEEPEST = 5
_SHARE_OF_TEMPLATES = 0.6
_OVERSIZED_BYTES = 5 << 20
_INTEGERS = {
    FieldDescriptor.CPPTYPE_INT32: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(1 << 63), (1 << 63) - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, (1 << 32) - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, (1 << 64) - 1),
}
_PYTHON_TYPES = {
    **dict.fromkeys(_INTEGERS, int),
    FieldDescriptor.CPPTYPE_DOUBLE: float,
    FieldDescriptor.CPPTYPE_FLOAT: float,
    FieldDescriptor.CPPTYPE_STRING: str,
}


def drawn_octets(message: Message, draws: Random, words: Words, template: Message | None = None) -> bytes:
    """Return the octets of a request of the type of an empty ``message``; ``template`` is one that succeeds."""
    if template is not None and draws.random() < _SHARE_OF_TEMPLATES:
        message.CopyFrom(template)
        if draws.random() < 0.5:
            return message.SerializeToString()
        fill(message, draws, words, sanity=draws.choice((0.0, 0.5)), density=0.1)
    else:
        fill(message, draws, words, sanity=draws.choice((0.0, 0.5, 0.9, 1.0)), density=0.7)
    octets = message.SerializeToString()
    match draws.randrange(40):
        case 0:
            return draws.randbytes(draws.choice((1, 10, 1000)))
        case 1 | 2 | 3:
            return mutated_bytes(octets, draws)
        case 4:
            return octets[: draws.randrange(len(octets) + 1)]
        case 5:
            return octets + b"\xfa\x7f" + bytes([100]) + draws.randbytes(100)  # an unknown field
        case 6:
            return (octets * draws.choice((2, 50)))[:_OVERSIZED_BYTES]
        case 7 if draws.random() < 0.1:
            return octets + bytes(_OVERSIZED_BYTES)
    return octets


def fill(message: Message, draws: Random, words: Words, sanity: float, density: float, depth: int = 0) -> None:
    """Set a share ``density`` of a message's fields, each to what makes sense with probability ``sanity``."""
    for field in _chosen(message.DESCRIPTOR, draws, density):
        if field.message_type is not None and depth == _DEEPEST:
            continue
        if field.is_repeated:
            number = draws.choice((0, 1, 1, 2, 3)) if draws.random() < 0.97 else draws.choice((100, 3000))
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                continue
            for _ in range(min(number, 30) if depth > 1 else number):
                if field.message_type is not None:
                    fill(getattr(message, field.name).add(), draws, words, sanity, density, depth + 1)
                else:
                    getattr(message, field.name).append(_scalar(field, draws, words, sanity))
        elif field.message_type is not None:
            inner = getattr(message, field.name)
            inner.SetInParent()
            fill(inner, draws, words, sanity, density, depth + 1)
        else:
            setattr(message, field.name, _scalar(field, draws, words, sanity))


def _chosen(descriptor: Descriptor, draws: Random, density: float) -> list[FieldDescriptor]:
    taken = {oneof.name: draws.choice(oneof.fields).name for oneof in descriptor.oneofs}
    return [
        field
        for field in descriptor.fields
        if (field.containing_oneof is None or taken[field.containing_oneof.name] == field.name)
        and draws.random() < density
    ]


def _scalar(field: FieldDescriptor, draws: Random, words: Words, sanity: float) -> Any:
    kind = field.cpp_type
    sensible = [word for word in words.get(field.name, ()) if type(word) is _PYTHON_TYPES.get(kind)]
    if sensible and field.type != FieldDescriptor.TYPE_BYTES and draws.random() < sanity:
        return draws.choice(sensible)
    if field.enum_type is not None:
        return draws.choice([value.number for value in field.enum_type.values])
    if kind in _INTEGERS:
        least, most = _INTEGERS[kind]
        return min(most, max(least, draws.choice((*hostile.NUMBERS, draws.randrange(1000)))))
    if kind in (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT):
        return draws.choice(hostile.FLOATS)
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return draws.random() < 0.5
    if field.type == FieldDescriptor.TYPE_BYTES:
        return draws.choice((*hostile.BYTES, draws.randbytes(4), draws.randbytes(300)))
    return draws.choice(hostile.TEXTS) if draws.random() < 0.95 else "n" * 100_000
