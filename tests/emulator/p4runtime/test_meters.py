"""Meters over P4Runtime, and their colours as time passes."""

from dataclasses import dataclass

import pytest
from finsy.proto import p4r, rpc_code
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.p4runtime.read import read_batch
from emulator.p4runtime.target import Target
from emulator.p4runtime.write import write_batch
from tests.bmv2.meter_sessions import arrival, meter_entry, metered_entry
from tests.bmv2.session import Packet
from tests.bmv2.small_programs import METERS, EmulatedProgram
from tests.emulator.p4runtime.messages import DELETE, INSERT, MODIFY
from tests.emulator.p4runtime.writing import write

PS_PER_US = 1_000_000
CONFIG = p4r.MeterConfig(cir=1, cburst=2, pir=3, pburst=4)
_EMULATED = EmulatedProgram(METERS)


@pytest.fixture
def target() -> Target:
    _EMULATED.clear()
    return _EMULATED.target


def read(target: Target, request: p4r.Entity) -> list[p4r.Entity]:
    entities, (result,) = read_batch(target, [request])
    assert result.canonical_code == rpc_code.OK
    return entities


def put(target: Target, kind: p4r.Update.Type.ValueType, *entities: p4r.Entity) -> None:
    write_batch(target, [p4r.Update(type=kind, entity=entity) for entity in entities])


def direct(entry: p4r.Entity, config: p4r.MeterConfig | None = None) -> p4r.Entity:
    """The meter of a table entry, whose action does not matter."""
    key = p4r.TableEntry(
        table_id=entry.table_entry.table_id, match=entry.table_entry.match, priority=entry.table_entry.priority
    )
    return p4r.Entity(direct_meter_entry=p4r.DirectMeterEntry(table_entry=key, config=config))


def test_indirect_meters_are_read_as_they_were_written(target: Target) -> None:
    alias = "packet_meter"
    put(target, MODIFY, meter_entry(alias, 2, CONFIG))
    cells = [meter_entry(alias, index, CONFIG if index == 2 else None) for index in range(8)]
    one, array, everything = meter_entry(alias, 2, None), meter_entry(alias, 0, None), p4r.Entity()
    array.meter_entry.ClearField("index")
    everything.meter_entry.SetInParent()
    assert read(target, one) == [cells[2]]
    assert read(target, array) == cells
    assert len(read(target, everything)) == 3 * 8
    array.meter_entry.config.CopyFrom(CONFIG)
    put(target, MODIFY, array)
    assert read(target, one) == [cells[2]]
    array.meter_entry.ClearField("config")
    put(target, MODIFY, array)
    assert read(target, one) == [one]


def test_direct_meters_come_and_go_with_their_entries(target: Target) -> None:
    entry = metered_entry("by_bytes", 5, CONFIG)
    bare = metered_entry("by_bytes", 5, None)
    asked = p4r.Entity()
    asked.table_entry.table_id = entry.table_entry.table_id
    asked.table_entry.meter_config.SetInParent()
    put(target, INSERT, entry)
    assert read(target, asked) == [entry]
    assert read(target, direct(entry)) == [direct(entry, CONFIG)]
    put(target, MODIFY, bare)  # an entry that is written without rates has none any more
    assert read(target, asked) == [bare]
    put(target, MODIFY, direct(entry, CONFIG))
    asked.table_entry.ClearField("meter_config")
    assert read(target, asked) == [bare]
    assert read(target, direct(entry)) == [direct(entry, CONFIG)]
    put(target, DELETE, bare)
    put(target, INSERT, bare)
    assert read(target, direct(entry)) == [direct(entry)]


WRONG = {
    "negative": p4r.MeterConfig(cir=-1),
    "burst too large": p4r.MeterConfig(cburst=1 << 32, pburst=1),
    "peak below committed": p4r.MeterConfig(cir=2, pir=1),
    "excess burst": p4r.MeterConfig(cir=1, pir=1, eburst=1),
}


@pytest.mark.parametrize("config", WRONG.values(), ids=WRONG.keys())
def test_rates_that_cannot_be_are_refused(target: Target, config: p4r.MeterConfig) -> None:
    entry = metered_entry("by_packets", 1, CONFIG)
    put(target, INSERT, entry)
    put(target, MODIFY, meter_entry("packet_meter", 1, CONFIG))
    for kind, entity in (
        (MODIFY, meter_entry("packet_meter", 1, config)),
        (MODIFY, direct(entry, config)),
        (MODIFY, metered_entry("by_packets", 1, config)),
        (INSERT, metered_entry("by_packets", 2, config)),
    ):
        assert write(target, kind, entity).canonical_code == rpc_code.INVALID_ARGUMENT
    assert read(target, meter_entry("packet_meter", 1, None)) == [meter_entry("packet_meter", 1, CONFIG)]
    assert read(target, direct(entry)) == [direct(entry, CONFIG)]
    assert len(list(target.switch.entries("Metered.by_packets"))) == 1


def test_other_refusals(target: Target) -> None:
    cell, missing = meter_entry("packet_meter", 1, CONFIG), metered_entry("by_packets", 9, None)
    counted = meter_entry("packet_meter", 1, CONFIG)
    counted.meter_entry.counter_data.SetInParent()
    for kind, entity, code in (
        (INSERT, cell, rpc_code.INVALID_ARGUMENT),
        (DELETE, cell, rpc_code.INVALID_ARGUMENT),
        (MODIFY, meter_entry("packet_meter", -1, CONFIG), rpc_code.INVALID_ARGUMENT),
        (MODIFY, meter_entry("packet_meter", 8, CONFIG), rpc_code.OUT_OF_RANGE),
        (MODIFY, counted, rpc_code.UNIMPLEMENTED),
        (MODIFY, direct(missing, CONFIG), rpc_code.NOT_FOUND),
        (INSERT, direct(missing, CONFIG), rpc_code.INVALID_ARGUMENT),
    ):
        assert write(target, kind, entity).canonical_code == code


@dataclass
class Bucket:
    """Whole tokens that come with the time since the fabric began, as BMv2 counts them."""

    rate: int
    burst: int

    def __post_init__(self) -> None:
        self.tokens, self.filled = self.burst, 0

    def take(self, amount: int, now_us: int) -> bool:
        filled = int(now_us * (self.rate / 1e6))
        self.tokens = min(self.burst, self.tokens + filled - self.filled)
        self.filled = filled
        if self.tokens < amount:
            return False
        self.tokens -= amount
        return True


rates = st.integers(0, 5000) | st.integers(0, 10**12)
bursts = st.integers(0, 300)
waits_us = st.integers(0, 20_000)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(rates, rates, bursts, bursts, st.lists(st.tuples(waits_us, st.binary(max_size=90)), min_size=1, max_size=10))
def test_colours_are_those_of_two_buckets(
    one_rate: int, other_rate: int, committed: int, peak: int, arrivals: list[tuple[int, bytes]]
) -> None:
    """RFC 2698: red above the peak, yellow above the committed rate; what is red takes nothing."""
    _EMULATED.clear()
    cir, pir = sorted((one_rate, other_rate))
    config = p4r.MeterConfig(cir=cir, cburst=committed, pir=pir, pburst=peak)
    cells = [meter_entry(alias, 1, config) for alias in ("packet_meter", "byte_meter", "egress_meter")]
    put(_EMULATED.target, MODIFY, *cells)
    put(_EMULATED.target, INSERT, metered_entry("by_packets", 1, config), metered_entry("by_bytes", 1, config))
    buckets = [(Bucket(pir, peak), Bucket(cir, committed)) for _ in range(5)]
    for wait_us, payload in arrivals:
        now_us = _EMULATED.fabric.now_ps // PS_PER_US
        octets = arrival(1, 1, payload)
        colours = []
        for (upper, lower), amount in zip(buckets, (1, len(octets), 1, len(octets), 1), strict=True):
            colours.append(2 if not upper.take(amount, now_us) else 1 if not lower.take(amount, now_us) else 0)
        colours[3] += 16  # what the action adds to the colour
        [sent] = _EMULATED.send(Packet(1, octets))
        assert list(sent.octets[3:8]) == colours
        _EMULATED.fabric.run(_EMULATED.fabric.now_ps + wait_us * PS_PER_US)
