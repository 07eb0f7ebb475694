"""The windowed controller on an ideal link: start-up, the cycle of gains, and steps of bandwidth."""

import pytest

from hostlib.compression.choice import Choice, Precision
from hostlib.compression.control.paper import PaperParameters
from hostlib.compression.control.windowed import CYCLE_GAINS, Step, WindowedState, decide, start

PARAMETERS = PaperParameters()
DENSE_BYTES = 80.85e6
COMPUTE_S = 0.25
LATENCY_S = 1e-3


def bytes_of(choice: Choice) -> float:
    """Of an ideal codec, whose bytes are the ratio of the precision's; dense is ``DENSE_BYTES``."""
    return DENSE_BYTES * choice.ratio * (0.5 if choice.precision == Precision.FP16 else 1)


def run(bandwidths_mbps: list[float]) -> tuple[list[WindowedState], list[float]]:
    """The states, and the bytes over what the link can carry while a step computes, with decisions two steps late."""
    state, choice = start(PARAMETERS)
    states, loads, waiting = [], [], None
    for mbps in bandwidths_mbps:
        bandwidth = mbps * 1e6 / 8
        transfer_s = LATENCY_S + bytes_of(choice) / bandwidth
        step = Step(choice, bytes_of(choice), transfer_s, max(COMPUTE_S, COMPUTE_S / 3 + transfer_s))
        loads.append(bytes_of(choice) / (bandwidth * COMPUTE_S))
        if waiting:
            state, choice = decide(state, waiting, DENSE_BYTES, PARAMETERS)
        states.append(state)
        waiting = step
    return states, loads


@pytest.mark.parametrize("mbps", [50, 200, 500, 800])
def test_it_finds_what_the_link_carries_in_a_step(mbps: float) -> None:
    states, loads = run([mbps] * 200)
    assert not states[-1].starting
    assert sorted(loads[100:])[50] == pytest.approx(0.9, rel=0.02)


def test_it_sends_dense_where_that_fits() -> None:
    states, _ = run([10_000] * 60)
    assert states[-1].ratio == 1


@pytest.mark.parametrize(("before", "after"), [(200, 800), (800, 200), (100, 500), (500, 100)])
def test_it_follows_a_step_of_bandwidth(before: float, after: float) -> None:
    """A fall waits for the old maximum to leave its window of ten; a rise is a new maximum at once."""
    _, loads = run([before] * 100 + [after] * 60)
    follows_in = 4 if after > before else 14
    settled = loads[100 + follows_in :]
    assert max(settled) < 1.25 * 0.95  # 0.9 of the product, probing
    assert len([load for load in settled if load < 0.75 * 0.85]) <= 2  # but for looking for RTprop, at the floor
    assert sorted(settled)[len(settled) // 2] == pytest.approx(0.9, rel=0.02)


def test_the_cycle_probes_drains_and_cruises() -> None:
    """With BtlBw 1000 bytes/s and RTprop 1 s, all in windows, each decision is its gain times 0.9 of 1000 bytes."""
    sent = Choice(0.2, Precision.FP32, start(PARAMETERS)[1].collective)
    state = WindowedState(0.2, full_steps=3)
    ratios = []
    for _ in CYCLE_GAINS:
        state, _ = decide(state, Step(sent, 1000, 1.0, 1.0), 1e6, PARAMETERS)
        ratios.append(state.ratio)
    assert ratios == pytest.approx([0.18 * gain for gain in (1.25, 0.75, 1, 1, 1, 1, 1, 1)])


def test_start_up_doubles_until_the_rate_stops_growing() -> None:
    state, choice = start(PARAMETERS)
    ratios = []
    for rate in [100, 200, 300, 310, 320, 330]:
        state, _ = decide(state, Step(choice, rate, 1.0, 1.0), 1e6, PARAMETERS)
        ratios.append(state.ratio)
        assert state.starting == (rate < 330)
    assert ratios[:5] == pytest.approx([0.02, 0.04, 0.08, 0.16, 0.32])


def test_it_looks_for_the_shortest_step_when_ten_seconds_had_none() -> None:
    sent = Choice(0.2, Precision.FP32, start(PARAMETERS)[1].collective)
    state = WindowedState(0.2, full_steps=3)
    state, _ = decide(state, Step(sent, 1000, 1.0, 1.0), 1e6, PARAMETERS)
    for _ in range(8):
        state, _ = decide(state, Step(sent, 1000, 1.0, 1.2), 1e6, PARAMETERS)
        assert state.ratio > PARAMETERS.floor
    state, _ = decide(state, Step(sent, 1000, 1.0, 1.2), 1e6, PARAMETERS)
    assert state.ratio == PARAMETERS.floor
    state, _ = decide(state, Step(sent, 1000, 1.0, 1.2), 1e6, PARAMETERS)
    assert state.ratio > PARAMETERS.floor


@pytest.mark.parametrize("step", [(0, 1.0, 1.0), (100, 0.0, 1.0), (100, 1.0, 0.0)])
def test_an_empty_step_changes_nothing(step: tuple[float, float, float]) -> None:
    state, choice = start(PARAMETERS)
    assert decide(state, Step(choice, *step), 1e6, PARAMETERS) == (state, choice)
