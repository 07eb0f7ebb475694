"""The device config that bf_switchd loads, read by protobuf itself."""

import struct
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from p4src.device_config import device_config, main


def _parts(packed: bytes) -> list[bytes]:
    field = FieldDescriptorProto(
        name="device_data", number=2, type=FieldDescriptorProto.TYPE_BYTES, label=FieldDescriptorProto.LABEL_OPTIONAL
    )
    message = DescriptorProto(name="P4DeviceConfig", field=[field])
    pool = DescriptorPool()
    pool.Add(FileDescriptorProto(name="p4config.proto", package="p4.tmp", message_type=[message]))
    read = GetMessageClass(pool.FindMessageTypeByName("p4.tmp.P4DeviceConfig")).FromString(packed)
    data, parts = bytes(getattr(read, field.name)), []
    while data:
        (length,) = struct.unpack_from("<i", data)
        parts.append(data[4 : 4 + length])
        data = data[4 + length :]
    return parts


@pytest.mark.parametrize("size", [0, 100, 127, 128, 70_000])
def test_name_binary_and_description_stand_behind_their_lengths(size: int) -> None:
    assert _parts(device_config(b"\x80" * size, b"{}")) == [b"trainyard", b"\x80" * size, b"{}"]


def test_the_folder_of_the_compiler_becomes_one_file(tmp_path: Path) -> None:
    (tmp_path / "tofino.bin").write_bytes(b"binary")
    (tmp_path / "context.json").write_bytes(b"{}")
    assert main([str(tmp_path), str(tmp_path / "config.bin")]) == 0
    assert _parts((tmp_path / "config.bin").read_bytes()) == [b"trainyard", b"binary", b"{}"]


def test_a_missing_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path), str(tmp_path / "config.bin")]) == 1
    assert "tofino.bin: No such file or directory" in capsys.readouterr().err
    assert not (tmp_path / "config.bin").exists()
