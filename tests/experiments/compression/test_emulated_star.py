"""Collectives as packets take what they take as fluid flows, and what packets and queues add."""

import pytest

from experiments.compression.conditions import Condition, Conditions, fixed
from experiments.compression.emulated_star import EmulatedStar
from experiments.compression.methods import METHODS
from experiments.compression.simulated_star import SimulatedStar
from experiments.compression.star import HOP_S, Transfer, all_gather, all_reduce, exchange
from experiments.compression.stars import star_on
from experiments.compression.timeline import Job, run
from experiments.scenarios.backend import Backend
from tests.experiments.compression.test_timeline import FREE, TWO

WINDOW_BITS = 8 * 32 * 4096
"""What a stream keeps in the queue of a slow link."""


def _took_s(conditions: Conditions, transfer: Transfer, start_s: float = 0.0) -> tuple[float, float]:
    """Return what a collective takes on the simulator, and on the emulator."""
    simulated, emulated = (star(conditions).finish_s(transfer, start_s) for star in (SimulatedStar, EmulatedStar))
    return simulated - start_s, emulated - start_s


@pytest.mark.parametrize("rate_mbps", [200, 800, 10_000])
@pytest.mark.parametrize(
    "transfer",
    [all_reduce(46.8e6), all_reduce(2.1e6), all_gather(300e3), all_gather(30e3), exchange(2e6), exchange(30e3)],
    ids=["all-reduce", "short all-reduce", "all-gather", "short all-gather", "exchange", "short exchange"],
)
def test_packets_take_what_fluid_flows_take(transfer: Transfer, rate_mbps: float) -> None:
    """Within a thousandth, and a hop's time for each message: its packets are stored before they are sent on."""
    simulated_s, emulated_s = _took_s(fixed(rate_mbps), transfer)
    assert simulated_s < emulated_s < 1.001 * simulated_s + transfer.hops * HOP_S


@pytest.mark.parametrize("streams", [1, 2, 4])
@pytest.mark.parametrize(
    "transfer",
    [all_reduce(16e6), all_reduce(2.1e6), all_gather(300e3), exchange(1e6)],
    ids=["all-reduce", "short all-reduce", "all-gather", "exchange"],
)
def test_messages_wait_behind_what_streams_keep_in_queues(transfer: Transfer, streams: int) -> None:
    """Within 3 %, and the time that a slow link takes for the windows of all streams, for each message."""
    rate_bps = 1e9
    conditions = Conditions("streams", (Condition(0.0, rate_bps, streams),))
    simulated_s, emulated_s = _took_s(conditions, transfer)
    waits_s = streams * WINDOW_BITS / rate_bps
    assert simulated_s < emulated_s < 1.03 * simulated_s + transfer.hops * waits_s
    if transfer.hops > 1:
        assert emulated_s > simulated_s + transfer.hops * waits_s / 2


def test_a_rate_that_changes_under_way_counts_from_then_on() -> None:
    conditions = Conditions("halved twice", (Condition(0.0, 400e6), Condition(1.0, 200e6), Condition(2.0, 100e6)))
    simulated_s, emulated_s = _took_s(conditions, all_gather(60e6 / 7), start_s=0.5)
    # 25 MB by 1 s, 25 MB by 2 s, and 10 MB at 12.5 MB/s.
    assert simulated_s == pytest.approx(1.5 + 0.8, rel=1e-3)
    assert emulated_s == pytest.approx(simulated_s, rel=1e-3)


def test_streams_that_begin_under_way_take_their_share_from_then_on() -> None:
    conditions = Conditions("joined", (Condition(0.0, 1e9), Condition(0.5, 1e9, streams=1)))
    simulated_s, emulated_s = _took_s(conditions, all_gather(100e6 / 7))
    assert simulated_s == pytest.approx(0.5 + 2 * 0.3, rel=1e-3)
    assert simulated_s < emulated_s < 1.03 * simulated_s


def test_nothing_to_send_takes_its_hops() -> None:
    assert EmulatedStar(fixed(500)).finish_s(all_reduce(0.0), 2.0) == pytest.approx(2.0 + 14 * HOP_S, abs=1e-4)


@pytest.mark.parametrize("name", ["AllReduce", "TopK-0.1", "budget"])
def test_steps_are_as_long_on_packets(name: str) -> None:
    simulated, emulated = (
        run(Job(TWO, 0.5, FREE), METHODS[name], fixed(800), 12, backend=backend)
        for backend in (Backend.SIMULATOR, Backend.EMULATOR)
    )
    assert emulated[-1].end_s == pytest.approx(simulated[-1].end_s, rel=0.005)
    assert emulated[-1].end_s != simulated[-1].end_s


def test_a_back_end_without_virtual_time_is_named() -> None:
    with pytest.raises(ValueError, match="expected one of simulator, emulator, not mininet"):
        star_on(Backend.MININET, fixed(500))
