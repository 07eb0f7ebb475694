"""Random sessions with the program of meters.

No two switches agree on times: buckets fill so slowly that no token comes while a session lasts, or at once.
"""

import struct
from random import Random

from finsy.proto import p4r

from tests.bmv2.session import Packet, Session
from tests.bmv2.small_programs import METERS

PACKETS_PER_SESSION = 40
INDICES, KEYS = 3, 3

_P4INFO = METERS.pipeline.message.p4info
_METERS = {meter.preamble.alias: meter.preamble.id for meter in _P4INFO.meters}
_TABLES = {table.preamble.alias: table for table in _P4INFO.tables}
_FULL_MASK = b"\xff"


def arrival(index: int, key: int, payload: bytes = b"") -> bytes:
    """A packet for the meters of an index and the table entries of a key; it has 8 bytes and its payload."""
    return struct.pack("!HB", index, key) + bytes(5) + payload


def meter_entry(alias: str, index: int, config: p4r.MeterConfig | None) -> p4r.Entity:
    """The rates of an indirect meter."""
    return p4r.Entity(meter_entry=p4r.MeterEntry(meter_id=_METERS[alias], index=p4r.Index(index=index), config=config))


def metered_entry(alias: str, key: int, config: p4r.MeterConfig | None) -> p4r.Entity:
    """An entry of a table with a direct meter."""
    table = _TABLES[alias]
    entry = p4r.TableEntry(table_id=table.preamble.id, meter_config=config)
    entry.action.action.action_id = table.action_refs[0].id
    match = entry.match.add(field_id=1)
    if alias == "by_packets":
        match.exact.value = bytes([key])
    else:
        match.ternary.value, match.ternary.mask, entry.priority = bytes([key]), _FULL_MASK, 1 + key
        entry.action.action.params.add(param_id=1, value=bytes([16 * key]))
    return p4r.Entity(table_entry=entry)


def meter_session(seed: int) -> Session:
    """The session of a seed; some meters are left as they are, so that all is green."""
    random = Random(seed)
    entries = [
        meter_entry(alias, index, _config(random, in_bytes="byte" in alias)) for alias in _METERS for index in range(2)
    ]
    for key in range(1, KEYS):
        entries.append(metered_entry("by_packets", key, _config(random, in_bytes=False) if key == 1 else None))
        entries.append(metered_entry("by_bytes", key, _config(random, in_bytes=True)))
    packets = (
        arrival(random.randrange(INDICES), random.randrange(1, KEYS + 1), random.randbytes(random.choice((0, 12, 92))))
        for _ in range(PACKETS_PER_SESSION)
    )
    return Session(tuple(entries), tuple(Packet(1, packet) for packet in packets))


def _config(random: Random, *, in_bytes: bool) -> p4r.MeterConfig:
    unit = 60 if in_bytes else 1
    committed, peak = (random.randrange(9) * unit for _ in range(2))
    return p4r.MeterConfig(cir=0, cburst=committed, pir=random.choice((0, 0, 10**12)), pburst=peak + unit)
