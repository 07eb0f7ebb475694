"""The message P4DeviceConfig, which controllers of p4lang's tutorials import as p4.tmp.p4config_pb2."""

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_BOOL, _BYTES = 8, 12
_OPTIONAL = 1

_file = descriptor_pb2.FileDescriptorProto(name="p4/tmp/p4config.proto", package="p4.tmp", syntax="proto3")
_message = _file.message_type.add(name="P4DeviceConfig")
_message.field.add(name="reassign", number=1, type=_BOOL, label=_OPTIONAL)
_message.field.add(name="device_data", number=3, type=_BYTES, label=_OPTIONAL)
_pool = descriptor_pool.Default()
_pool.AddSerializedFile(_file.SerializeToString())
_descriptor = _pool.FindMessageTypeByName("p4.tmp.P4DeviceConfig")
if hasattr(message_factory, "GetMessageClass"):
    P4DeviceConfig = message_factory.GetMessageClass(_descriptor)
else:
    P4DeviceConfig = message_factory.MessageFactory(_pool).GetPrototype(_descriptor)
