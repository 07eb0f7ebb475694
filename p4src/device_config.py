"""Pack what p4c has written for Tofino into the device config that ``bf_switchd``'s P4Runtime server loads.

Example::

    python -m p4src.device_config out/tofino/pipe out/tofino/device_config.bin

The server, PI's, takes a message ``p4.tmp.P4DeviceConfig`` whose field 2 has three parts: the program's name, the
binary and its description. Each stands behind its length, 32 bits with the least significant byte first. Sources:
``proto/p4/tmp/p4config.proto`` of p4lang/PI, ``p4runtime_update_config.py`` of p4lang/open-p4studio.
"""

import struct
import sys
from pathlib import Path

_PROGRAM = b"trainyard"
_DEVICE_DATA_TAG = b"\x12"
"""Field 2, of bytes."""


def device_config(binary: bytes, context: bytes) -> bytes:
    """Return the device config of ``tofino.bin`` and ``context.json``."""
    parts = (struct.pack("<i", len(part)) + part for part in (_PROGRAM, binary, context))
    data = b"".join(parts)
    return _DEVICE_DATA_TAG + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    """Return a number as protobuf writes it: 7 bits a byte, the least significant first."""
    octets = bytearray()
    while number > 0x7F:
        octets.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*octets, number])


def main(arguments: list[str]) -> int:
    """Read the folder ``pipe`` that p4c has written, and write the device config."""
    if len(arguments) != 2:
        print("usage: python -m p4src.device_config PIPE_FOLDER FILE", file=sys.stderr)
        return 2
    folder, file = map(Path, arguments)
    try:
        file.write_bytes(device_config((folder / "tofino.bin").read_bytes(), (folder / "context.json").read_bytes()))
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
