"""The device config of older clients: a BMv2 JSON inside BMv2's own message, ``p4.tmp.P4DeviceConfig``.

The message has a flag (field 1), settings (field 2) and the JSON (field 3). Its definition is in no package, so that
its few fields are read here (Protocol Buffers, Encoding).
"""

_VARINT, _BYTES = 0, 2
_JSON = 3
_FIELDS = {1: _VARINT, 2: _BYTES, 3: _BYTES}


def unwrapped(data: bytes) -> bytes:
    """Return the JSON inside a message, or the data as they are where they are no such message."""
    if data.lstrip()[:1] == b"{":
        return data
    found = data
    at = 0
    try:
        while at < len(data):
            tag, at = _varint(data, at)
            field, kind = tag >> 3, tag & 7
            if _FIELDS.get(field) != kind:
                return data
            number, at = _varint(data, at)
            if kind == _BYTES:
                if at + number > len(data):
                    return data
                if field == _JSON:
                    found = data[at : at + number]
                at += number
    except IndexError:  # it ends inside a number
        return data
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of seven bits a byte, the least first, and where it ends."""
    number, shift = 0, 0
    while True:
        number |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not data[at - 1] & 0x80:
            return number, at
