"""The format of Chakra execution traces: messages behind their lengths, first the metadata, then a node each.

Field numbers are those of MLCommons Chakra, ``schema/protobuf/et_def.proto``. Two descriptions of a node read the same
bytes: a lean one, for what every node needs, and a full one with its attributes.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from topologies.files import shown_path
from topologies.printable import quoted

VERSION = "1.1.0-chakra.0.0.4"
"""The version that files written here name."""


class ChakraError(ValueError):
    """A trace that cannot be used; the message names the file, and the rank and the node where there is one."""


class NodeType(IntEnum):
    """What a node is."""

    INVALID = 0
    METADATA = 1
    MEMORY_LOAD = 2
    MEMORY_STORE = 3
    COMPUTATION = 4
    SEND = 5
    RECEIVE = 6
    COLLECTIVE = 7
    STORAGE = 8
    BATCH = 9
    CHECKPOINT = 10


class CollectiveType(IntEnum):
    """What a collective does."""

    ALL_REDUCE = 0
    REDUCE = 1
    ALL_GATHER = 2
    GATHER = 3
    SCATTER = 4
    BROADCAST = 5
    ALL_TO_ALL = 6
    REDUCE_SCATTER = 7
    REDUCE_SCATTER_BLOCK = 8
    BARRIER = 9


_Field = descriptor_pb2.FieldDescriptorProto
_VALUES = {
    "double_val": (3, _Field.TYPE_DOUBLE),
    "float_val": (5, _Field.TYPE_FLOAT),
    "int32_val": (7, _Field.TYPE_INT32),
    "int64_val": (9, _Field.TYPE_INT64),
    "uint32_val": (11, _Field.TYPE_UINT32),
    "uint64_val": (13, _Field.TYPE_UINT64),
    "sint32_val": (15, _Field.TYPE_SINT32),
    "sint64_val": (17, _Field.TYPE_SINT64),
    "fixed32_val": (19, _Field.TYPE_FIXED32),
    "fixed64_val": (21, _Field.TYPE_FIXED64),
    "sfixed32_val": (23, _Field.TYPE_SFIXED32),
    "sfixed64_val": (25, _Field.TYPE_SFIXED64),
    "bool_val": (27, _Field.TYPE_BOOL),
    "string_val": (29, _Field.TYPE_STRING),
}
"""Single values of an attribute; lists are not needed."""


def _message_classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="trainyard/chakra.proto", package="trainyard.chakra")

    def message(name: str, *fields: tuple[str, int, int, str | None, bool]) -> descriptor_pb2.DescriptorProto:
        described = file.message_type.add(name=name)
        for field, number, kind, of, is_repeated in fields:
            label = _Field.LABEL_REPEATED if is_repeated else _Field.LABEL_OPTIONAL
            added = described.field.add(name=field, number=number, type=kind, label=label)
            if of is not None:
                added.type_name = f".trainyard.chakra.{of}"
        return described

    file.syntax = "proto3"
    values = [(name, number, kind, None, False) for name, (number, kind) in _VALUES.items()]
    attribute = message("Attribute", ("name", 1, _Field.TYPE_STRING, None, False), *values)
    attribute.oneof_decl.add(name="value")
    for field in attribute.field:
        if field.name != "name":
            field.oneof_index = 0
    attributes = ("attr", 10, _Field.TYPE_MESSAGE, "Attribute", True)
    lean = [
        ("id", 1, _Field.TYPE_UINT64, None, False),
        ("type", 3, _Field.TYPE_INT32, None, False),
        ("ctrl_deps", 4, _Field.TYPE_UINT64, None, True),
        ("data_deps", 5, _Field.TYPE_UINT64, None, True),
        # The format has no sign here; a negative number that was written all the same shows as one.
        ("duration_micros", 7, _Field.TYPE_INT64, None, False),
    ]
    message("LeanNode", *lean)
    message("Inputs", ("values", 1, _Field.TYPE_STRING, None, False))
    named = ("name", 2, _Field.TYPE_STRING, None, False)
    message("Node", *lean, named, ("inputs", 8, _Field.TYPE_MESSAGE, "Inputs", False), attributes)
    message("Metadata", ("version", 1, _Field.TYPE_STRING, None, False))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"trainyard.chakra.{name}"))
        for name in ("LeanNode", "Node", "Metadata")
    }


_CLASSES = _message_classes()
LeanNode: Any = _CLASSES["LeanNode"]
"""A node without its name and its attributes."""
Node: Any = _CLASSES["Node"]
"""A node with its name and its attributes."""
Metadata: Any = _CLASSES["Metadata"]
"""What a file begins with."""


def messages(content: bytes, path: Path) -> Iterator[bytes]:
    """Yield the messages of a file. Raises ChakraError where it ends inside one."""
    place, end, number = 0, len(content), 0
    while place < end:
        size = content[place]
        place += 1
        if size >= 0x80:
            size &= 0x7F
            shift, byte = 7, 0x80
            while byte >= 0x80:
                if place == end or shift > 63:
                    raise ChakraError(f"{shown_path(path)}: message {number} is truncated, or this is no Chakra trace")
                byte = content[place]
                place += 1
                size |= (byte & 0x7F) << shift
                shift += 7
        if size > end - place:
            raise ChakraError(f"{shown_path(path)}: message {number} is truncated, or this is no Chakra trace")
        yield content[place : place + size]
        place += size
        number += 1


def framed(message: Any) -> bytes:
    """Return a message behind its length, as a file has it."""
    content: bytes = message.SerializeToString()
    size, prefix = len(content), bytearray()
    while size >= 0x80:
        prefix.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes((*prefix, size)) + content


def file_header(number: int, groups: Mapping[str, Iterable[int]]) -> bytes:
    """Return what a file begins with: its metadata, and a node of this number with the ranks of communicators."""
    described = Node(id=number, type=NodeType.METADATA, name="process_group:init")
    listed = [{"pg_name": name, "ranks": list(ranks)} for name, ranks in groups.items()]
    described.inputs.values = f"['{json.dumps(listed)}']"
    return framed(Metadata(version=VERSION)) + framed(described)


def full_node(content: bytes, where: str) -> Any:
    """Return a node with its attributes. Raises ChakraError where they cannot be read."""
    try:
        return Node.FromString(content)
    except DecodeError as error:
        raise ChakraError(f"{where}: cannot be read: {quoted(str(error))}") from error


def attributes(node: Any) -> dict[str, Any]:
    """Return the attributes of a node that have a single value."""
    values: dict[str, Any] = {}
    for attribute in node.attr:
        kind = attribute.WhichOneof("value")
        if kind is not None:
            values[attribute.name] = getattr(attribute, kind)
    return values
