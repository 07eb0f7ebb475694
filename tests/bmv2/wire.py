"""BMv2's packet stream, as much of it as is used here: one message type for either way.

The gRPC method and the numbers of the fields are those that a running simple_switch_grpc speaks.
"""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

METHOD = "/p4.bm.DataplaneInterface/PacketStream"

_FIELD = descriptor_pb2.FieldDescriptorProto
_PACKAGE, _NAME = "trainyard.tests", "PortPacket"
_FIELDS = {2: ("device_id", _FIELD.TYPE_UINT64), 3: ("port", _FIELD.TYPE_UINT32), 4: ("packet", _FIELD.TYPE_BYTES)}


def _message_class() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="trainyard/tests/port_packet.proto", package=_PACKAGE)
    file.syntax = "proto3"
    message = file.message_type.add(name=_NAME)
    for number, (name, kind) in _FIELDS.items():
        message.field.add(name=name, number=number, type=kind, label=_FIELD.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{_NAME}"))


PortPacket = _message_class()
"""A packet that arrives at a port or leaves by it."""
