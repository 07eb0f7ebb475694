"""Steps in virtual time by hand: one model of two buckets, no codec times, one link that matters."""

import pytest

from experiments.compression.conditions import Condition, Conditions, fixed
from experiments.compression.methods import DENSE, METHODS, Method
from experiments.compression.real_models import Layer, RealModel
from experiments.compression.sending import CodecTable, sending_of, sendings
from experiments.compression.simulated_star import SimulatedStar
from experiments.compression.star import HOP_S
from experiments.compression.timeline import Job, run
from hostlib.compression.choice import Choice, Collective, Precision, low_rank
from hostlib.compression.codecs.payload import Form
from hostlib.compression.control.cost import Linear, MeasuredCosts

MILLION = 1_000_000
TWO = RealModel("two", (Layer("first", (2 * MILLION, 5)), Layer("last", (2 * MILLION, 1))))
"""Buckets of 2 million elements, ready after a sixth of the backward pass, and of 10 million, ready at its end."""
FREE = CodecTable("free", MeasuredCosts(hop_s=HOP_S), Form.PLAIN)
RATE_MBPS = 800.0
BYTES_PER_S = 1e8


def _step(method: Method, table: CodecTable = FREE, compute_s: float = 3.0) -> tuple[float, float, float]:
    (step,) = run(Job(TWO, compute_s, table), method, fixed(RATE_MBPS), 1)
    return step.end_s, step.busy_s, step.free_s


def test_the_last_bucket_is_exposed() -> None:
    assert [(bucket.elements, bucket.ready_share) for bucket in TWO.buckets] == [
        (2 * MILLION, pytest.approx(1 / 6)),
        (10 * MILLION, 1.0),
    ]
    # Forward 1 s, backward 2 s. The first bucket takes 1.75 x 8 MB at 100 MB/s from 1 + 2/6 s on, and is done by
    # 1.474 s; the last one 0.7 s from 3 s on. A ring has 14 messages one after the other.
    end_s, busy_s, free_s = _step(METHODS["AllReduce"])
    assert end_s == pytest.approx(3.0 + 1.75 * 40e6 / BYTES_PER_S + 14 * HOP_S)
    assert busy_s == pytest.approx(1.75 * 48e6 / BYTES_PER_S + 28 * HOP_S)
    assert free_s == pytest.approx(2.0 - 2.0 / 6 + 0.02 * 3.0)


def test_a_bucket_waits_for_the_one_before_it() -> None:
    # Backward takes 0.02 s, the first bucket 0.14 s: the last one begins when that is done.
    end_s, _, _ = _step(METHODS["AllReduce"], compute_s=0.03)
    first_ready_s = 0.01 + 0.02 / 6
    assert end_s == pytest.approx(first_ready_s + 1.75 * 48e6 / BYTES_PER_S + 28 * HOP_S)


def test_top_k_gathers_seven_payloads_of_values_and_indices() -> None:
    # One in ten of 10 million, 8 bytes each, and a header of 16.
    end_s, _, _ = _step(METHODS["TopK-0.1"])
    assert end_s == pytest.approx(3.0 + 7 * (8 * MILLION + 16) / BYTES_PER_S + 7 * HOP_S)


def test_encoding_delays_the_backward_pass_and_decoding_the_end() -> None:
    table = CodecTable("slow", MeasuredCosts(Linear(0.1), Linear(0.05), Linear(), HOP_S), Form.PLAIN)
    end_s, _, _ = _step(METHODS["TopK-0.1"], table)
    # Both buckets are encoded before the last one can leave.
    assert end_s == pytest.approx(3.0 + 0.2 + 7 * (8 * MILLION + 16) / BYTES_PER_S + 7 * HOP_S + 0.05)


def test_fp16_halves_what_is_sent() -> None:
    assert _step(METHODS["fp16"])[1] == pytest.approx(1.75 * 24e6 / BYTES_PER_S + 28 * HOP_S)


def test_low_rank_sends_two_thin_matrices() -> None:
    model = RealModel("matrix", (Layer("a", (1000, 2000), has_bias=True),))
    (sending,) = sendings((low_rank(4),), model.buckets, FREE)
    # The bias as it is, P of 1000 x 4, Q of 2000 x 4, each by a ring.
    assert [transfer.flow_bytes for transfer in sending.transfers] == [1.75 * 4 * count for count in (1000, 4000, 8000)]


def test_low_rank_has_three_products_of_each_matrix() -> None:
    """One before P travels, and two that are charged behind; PyTorch's hook has as many."""
    model = RealModel("matrix", (Layer("a", (1000, 2000)), Layer("b", (3000, 1000))))
    table = CodecTable("slow", MeasuredCosts(factor=Linear(0, 0, 1e-9)), Form.PLAIN)
    sent = sendings((low_rank(4),) * len(model.buckets), model.buckets, table)
    assert sum(sending.encode_s for sending in sent) == pytest.approx(4 * 5e6 * 1e-9)
    assert sum(sending.decode_s for sending in sent) == pytest.approx(2 * 4 * 5e6 * 1e-9)


def test_a_matrix_that_low_rank_would_hardly_shrink_travels_as_it_is() -> None:
    model = RealModel("small", (Layer("a", (2000, 4)), Layer("b", (300, 300))))
    (sending,) = sendings((low_rank(100),), model.buckets, FREE)
    assert [transfer.flow_bytes for transfer in sending.transfers] == [1.75 * 4 * 98_000]


def test_a_sparse_reduce_scatter_is_an_exchange_and_an_all_gather() -> None:
    choice = Choice(0.01, Precision.FP16, Collective.REDUCE_SCATTER)
    first, second = sendings((choice, choice), TWO.buckets, FREE)[0].transfers
    # An eighth of 2 million elements, one in a hundred of them with 2 bytes of value and 4 of index.
    part_bytes = 16 + 2500 * 6
    assert first.flow_bytes == part_bytes
    assert second.flow_bytes == 7 * part_bytes
    assert (first.hops, second.hops) == (1, 7)


def test_a_sparse_reduce_scatter_takes_the_time_of_both() -> None:
    choice = Choice(0.01, Precision.FP16, Collective.REDUCE_SCATTER)
    star, now_s = SimulatedStar(fixed(RATE_MBPS)), 0.0
    for transfer in sendings((choice, choice), TWO.buckets, FREE)[1].transfers:
        now_s = star.finish_s(transfer, now_s)
    part_bytes = 16 + 12_500 * 6
    assert now_s == pytest.approx(2 * 7 * part_bytes / BYTES_PER_S + 8 * HOP_S)


def test_a_controller_begins_dense_and_follows_the_rate() -> None:
    conditions = Conditions("drop", (Condition(0.0, 10e9), Condition(60.0, 400e6)))
    steps = run(Job(TWO, 1.0, FREE), METHODS["budget"], conditions, 120)
    assert steps[0].plan == (DENSE, DENSE)
    before = [step.plan for step in steps if 30.0 < step.start_s < 60.0]
    after = [step for step in steps if step.start_s > 60.0][5:]
    assert all(sum(choice.ratio for choice in plan) > 1.0 for plan in before)
    assert max(step.end_s - step.start_s for step in after) < 1.1


def test_a_remainder_has_the_network_before_the_buckets() -> None:
    slow = Job(TWO, 1.0, FREE)
    steps = run(slow, METHODS["budget"], fixed(400), 30)
    assert steps[0].remainder is None
    last = steps[-1]
    assert last.remainder is not None
    alone = SimulatedStar(fixed(400))
    transfers = sending_of(last.remainder, TWO.buckets[-1], FREE).transfers
    took_s = 0.0
    for transfer in transfers:
        took_s = alone.finish_s(transfer, took_s)
    buckets_s = sum(
        alone.finish_s(transfer, 0.0)
        for sending in sendings(last.plan, TWO.buckets, FREE)
        for transfer in sending.transfers
    )
    assert last.busy_s == pytest.approx(took_s + buckets_s)
    # It begins with the step: all of it counts as free.
    assert last.free_s == pytest.approx(1.02)
    assert took_s > 1 / 3  # it is worth having
    assert last.end_s - last.start_s < 1.1


def test_a_run_repeats() -> None:
    job = Job(TWO, 0.5, FREE)
    for mode in ("budget", "windowed", "paper"):
        assert run(job, METHODS[mode], fixed(200), 30) == run(job, METHODS[mode], fixed(200), 30)


def test_the_papers_controller_sends_little_whatever_the_rate() -> None:
    # docs of control.paper: it collapses, and its start-up ends where it began.
    plans = [run(Job(TWO, 0.5, FREE), METHODS["paper"], fixed(rate), 60)[-1].plan for rate in (200.0, 2000.0)]
    for plan in plans:
        assert max(choice.ratio for choice in plan) < 0.1
