"""Every packet that is sent is delivered, counted as dropped, in a queue or on a link."""

from collections import Counter
from dataclasses import asdict, dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.engine import state as s
from emulator.fabric import EmulatedFabric
from emulator.observations import TraceKind
from tests.emulator.fabrics import advance, dumbbell, emulated, five_tuple, prioritise
from tests.emulator.packets import ipv4_packet

END_PS = 400_000_000
HOSTS = 4


@dataclass(frozen=True)
class Injection:
    """So many copies of a packet that comes from a host, at once."""

    source: int
    destination: int
    time_to_live: int
    dscp: int
    checksum_error: int
    length: int
    copies: int


@dataclass(frozen=True)
class Transfer:
    """A host sends to another."""

    source: int
    destination: int
    level: int
    size_bytes: int


@dataclass(frozen=True)
class Switching:
    """A link goes down or comes up."""

    link: int
    up: bool


hosts = st.integers(0, HOSTS - 1)
events = st.one_of(
    st.builds(
        Injection,
        hosts,
        st.integers(0, HOSTS),
        st.sampled_from([0, 1, 2, 64]),
        st.integers(0, 63).map(lambda dscp: dscp & ~1),
        st.sampled_from([0, 0, 0, 1]),
        st.integers(60, 3000),
        st.integers(1, 12),
    ),
    st.builds(Transfer, hosts, hosts, st.integers(0, 7), st.integers(1, 300_000)),
    st.builds(Switching, st.integers(0, 9), st.booleans()),
)
schedules = st.lists(st.tuples(st.integers(0, END_PS // 2), events), min_size=1, max_size=20)


class Ledger:
    """Does what a schedule says, and knows what was sent."""

    def __init__(self, result: EmulatedFabric) -> None:
        self.result = result
        self.sent = 0
        self.flows = 0

    def carry_out(self, event: Injection | Transfer | Switching) -> None:
        """Let one thing happen now."""
        match event:
            case Injection():
                self._inject(event)
            case Transfer():
                connection = five_tuple(
                    self.result.fabric, f"h{event.source}", f"h{event.destination}", 50_000 + self.flows
                )
                prioritise(self.result, connection, event.level)
                self.result.start_transfer(self.result.add_flow(connection), event.size_bytes)
                self.flows += 1
            case Switching():
                self.result.set_link(event.link, up=event.up)

    def _inject(self, event: Injection) -> None:
        fabric = self.result.fabric
        # The host after the last is one that nobody routes to.
        connection = five_tuple(fabric, f"h{event.source}", f"h{event.destination % HOSTS}")
        if event.destination == HOSTS:
            connection = replace(connection, destination_address=1)
        packet = ipv4_packet(
            connection,
            time_to_live=event.time_to_live,
            dscp=event.dscp,
            checksum_error=event.checksum_error,
        )
        for _ in range(event.copies):
            self.result.inject(fabric.nics[f"h{event.source}"][0].link, packet, event.length)
        self.sent += event.copies


def waiting(result: EmulatedFabric) -> Counter[int]:
    """The packets in queues and on links by kind, as their chains have them."""
    state, found = result._state, Counter[int]()
    for row in state.links:
        chains = [(row[s.LINK_FIRST], None)]
        queues = range(0, s.QUEUES * s.QUEUE_COLUMNS, s.QUEUE_COLUMNS)
        chains += [(row[s.LINK_HEAD + queue], row[s.LINK_PACKETS + queue]) for queue in queues]
        for first, count in chains:
            packet, number = int(first), 0
            while packet != s.NONE and number != count:
                found[int(state.packets[packet, s.PACKET_KIND])] += 1
                packet, number = int(state.packets[packet, s.PACKET_NEXT]), number + 1
            assert count is None or number == count
    return found


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(schedules, st.sampled_from([3_000, 20_000]), st.integers(END_PS // 2, END_PS))
def test_no_packet_is_lost_uncounted_or_there_twice(
    schedule: list[tuple[int, Injection | Transfer | Switching]], limit_bytes: int, end_ps: int
) -> None:
    result = emulated(dumbbell(HOSTS // 2), queue_limit_bytes=limit_bytes, trace_rows=100)
    ledger = Ledger(result)
    for time_ps, event in sorted(schedule, key=lambda pair: pair[0]):
        advance(result, time_ps)
        ledger.carry_out(event)
    advance(result, end_ps)
    inside = waiting(result)
    assert inside.total() == len(result._state.packets) - result._state.scalars[s.FREE_PACKETS]
    reasons = Counter[str]()
    for drops in (result.host_drops(), *map(result.drops, result.switches)):
        reasons.update(asdict(drops))
    lost = [row for row in result.take_trace() if row.kind is TraceKind.LOST]
    assert len(lost) == reasons.pop("queue_full") + reasons.pop("link_down")
    # Of the packets of flows the program drops none.
    lost_of_sent = sum(row.flow == s.NONE for row in lost)
    assert ledger.sent == len(result.captured()) + lost_of_sent + reasons.total() + inside[s.RAW]
    assert result.misdelivered == 0
