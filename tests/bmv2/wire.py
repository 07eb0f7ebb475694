"""BMv2's packet stream and port states, as much of them as is used here: one message type for either way.

The gRPC methods and the numbers of the fields are those that a running simple_switch_grpc speaks.
"""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

METHOD = "/p4.bm.DataplaneInterface/PacketStream"
PORT_METHOD = "/p4.bm.DataplaneInterface/SetPortOperStatus"

DOWN, UP = 1, 2
"""What a port's status may be set to."""

_FIELD = descriptor_pb2.FieldDescriptorProto
_PACKAGE = "trainyard.tests"


def _message_class(name: str, *fields: tuple[int, str, Any]) -> Any:
    file = descriptor_pb2.FileDescriptorProto(name=f"trainyard/tests/{name}.proto", package=_PACKAGE)
    file.syntax = "proto3"
    message = file.message_type.add(name=name)
    for number, field, kind in fields:
        message.field.add(name=field, number=number, type=kind, label=_FIELD.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


PortPacket = _message_class(
    "PortPacket",
    (2, "device_id", _FIELD.TYPE_UINT64),
    (3, "port", _FIELD.TYPE_UINT32),
    (4, "packet", _FIELD.TYPE_BYTES),
)
"""A packet that arrives at a port or leaves by it."""

PortStatus = _message_class(
    "PortStatus",
    (1, "device_id", _FIELD.TYPE_UINT64),
    (2, "port", _FIELD.TYPE_UINT32),
    (3, "status", _FIELD.TYPE_UINT32),
)
"""A port goes down, or comes up."""
