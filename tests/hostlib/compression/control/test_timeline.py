"""Forecasts of a step, by hand and against a simulation in small slices of time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostlib.compression.control.timeline import Forecast, Service, Timing, forecast

SLICES = st.integers(0, 20)


def test_buckets_wait_for_the_link_and_the_link_for_buckets() -> None:
    timing = Timing((1.0, 2.0, 10.0), 11.0, 15.0)
    services = [Service(0, 4.0, 0), Service(0, 3.0, 0), Service(0, 2.0, 0)]
    assert forecast(timing, services) == Forecast(12.0, 2)  # 1 to 5, 5 to 8, 10 to 12


def test_encoding_delays_all_that_follows_and_the_backward_pass() -> None:
    timing = Timing((1.0, 2.0), 2.0, 3.0)
    assert forecast(timing, [Service(0.5, 1.0, 0), Service(0.25, 0.125, 0)]) == Forecast(2.875, 1)
    assert forecast(timing, [Service(0.5, 0, 0), Service(0.25, 0, 0)]).finish_s == 2.75


def test_decoding_is_serial_behind_the_link() -> None:
    timing = Timing((0.0, 1.0), 1.0, 2.0)
    assert forecast(timing, [Service(0, 1.0, 5.0), Service(0, 1.0, 2.0)]).finish_s == 8.0


def test_a_job_without_buckets_ends_with_its_backward_pass() -> None:
    assert forecast(Timing((), 2.0, 3.0), []).finish_s == 2.0


@given(st.lists(st.tuples(SLICES, SLICES, SLICES, SLICES), min_size=1, max_size=6), SLICES)
def test_it_is_what_three_queues_do(buckets: list[tuple[int, int, int, int]], backward: int) -> None:
    """The reference moves each resource's work slice by slice: computation with encoding, link, decoder."""
    ready = sorted(bucket[0] for bucket in buckets)
    backward = max(backward, ready[-1])
    pending = list(zip(ready, (bucket[1:] for bucket in buckets), strict=True))
    computed = time = done = 0
    encoding: list[list[int]] = []
    links: list[list[int]] = []
    decoders: list[list[int]] = []
    while True:
        while True:  # what takes no time happens at once
            before = (len(pending), len(encoding), len(links), len(decoders))
            if pending and not encoding and pending[0][0] <= computed:
                encoding.append(list(pending.pop(0)[1]))
            if encoding and not encoding[0][0]:
                links.append(encoding.pop(0))
            if links and not links[0][1]:
                decoders.append(links.pop(0))
            if decoders and not decoders[0][2]:
                decoders.pop(0)
            if before == (len(pending), len(encoding), len(links), len(decoders)):
                break
        if not (pending or encoding or links or decoders) and computed >= backward:
            done = time
            break
        if encoding:
            encoding[0][0] -= 1
        else:
            computed += 1
        if links:
            links[0][1] -= 1
        if decoders:
            decoders[0][2] -= 1
        time += 1
    timing = Timing(tuple(map(float, ready)), float(backward), float(backward))
    found = forecast(timing, [Service(*map(float, bucket[1:])) for bucket in buckets])
    assert found.finish_s == pytest.approx(done)
