"""Where one iteration ends and the next begins: at steps of the optimizer, else where collectives repeat."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hostlib.torch.events import Event, Issue, StepBegin, StepEnd
from hostlib.torch.iterations import Cutter, Iteration, shortest_period


def issue(number: int, time_ns: int, size_bytes: int = 8, group: str = "0") -> Issue:
    return Issue(number, time_ns, "allreduce_", group, size_bytes, None, ())


def repeated(sizes: Sequence[int], times: int, first: int = 0) -> list[Event]:
    """Collectives of these sizes, over and over, one each nanosecond."""
    count = len(sizes) * times
    return [issue(first + at, first + at, sizes[at % len(sizes)]) for at in range(count)]


def sizes_of(iteration: Iteration) -> list[int]:
    return [each.size_bytes for each in iteration.issues]


def test_an_iteration_lasts_from_the_end_of_a_step_to_the_end_of_the_next() -> None:
    cutter = Cutter()
    second = (issue(2, 12), issue(3, 14), StepBegin(15), StepEnd(16))
    assert cutter.cut([issue(1, 2), StepBegin(3), StepEnd(6), *second]) == [Iteration(6, 16, second)]
    third = (issue(4, 20), StepEnd(26))
    assert cutter.cut(third) == [Iteration(16, 26, third)]


def test_of_several_optimizers_the_last_one_ends_the_iteration() -> None:
    generator, discriminator = 7, 3
    events: list[Event] = []
    for begin in range(0, 40, 10):
        events += [issue(begin + 1, begin + 1, 8), StepEnd(begin + 2, discriminator)]
        events += [issue(begin + 3, begin + 3, 16), StepEnd(begin + 4, generator)]
    ended = Cutter().cut(events)
    assert [(each.begin_ns, each.end_ns) for each in ended] == [(4, 14), (14, 24), (24, 34)]
    assert [sizes_of(each) for each in ended] == [[8, 16]] * 3


def test_an_optimizer_for_each_parameter_ends_no_iteration_of_its_own() -> None:
    def backward(begin: int) -> list[Event]:
        found: list[Event] = []
        for parameter in range(5):
            found += [issue(parameter, begin + 2 * parameter), StepEnd(begin + 2 * parameter + 1, parameter)]
        return found

    ended = Cutter().cut([event for begin in range(0, 400, 100) for event in backward(begin)])
    assert [(each.begin_ns, each.end_ns) for each in ended] == [(9, 109), (109, 209), (209, 309)]
    assert [len(each.issues) for each in ended] == [5, 5, 5]


def test_another_optimizer_may_take_over() -> None:
    steps = [(1, 5), (2, 5), (3, 5), (4, 6), (5, 6), (6, 6)]
    ended = Cutter().cut([event for at, by in steps for event in (issue(at, 10 * at), StepEnd(10 * at + 1, by))])
    assert [(each.begin_ns, each.end_ns) for each in ended] == [(11, 21), (21, 31), (31, 41), (41, 51), (51, 61)]


def test_what_comes_before_the_first_step_is_no_iteration() -> None:
    cutter = Cutter()
    assert cutter.cut([issue(1, 1), issue(2, 2)]) == []
    assert cutter.cut([StepEnd(3)]) == []
    assert cutter.cut([StepEnd(4), StepEnd(5)]) == []


def test_an_iteration_without_collectives_belongs_to_the_next() -> None:
    ended = Cutter().cut([issue(1, 1), StepEnd(2), StepEnd(3), StepEnd(4), issue(2, 5), StepEnd(6)])
    (iteration,) = ended
    assert (iteration.begin_ns, iteration.end_ns) == (2, 6)


def test_accumulated_gradients_are_one_iteration_however_many_backward_passes_they_take() -> None:
    micro_batches = [issue(number, 10 + number, group=str(number % 2)) for number in range(8)]
    (iteration,) = Cutter().cut([issue(100, 1), StepEnd(2), *micro_batches, StepEnd(30)])
    assert iteration.issues == tuple(micro_batches)
    assert iteration.sent_bytes == {"0": 32, "1": 32}


@given(
    collectives=st.lists(st.integers(0, 3), min_size=1, max_size=12),
    cuts=st.lists(st.integers(0, 60), max_size=5),
)
def test_steps_cut_the_same_however_the_events_come_in(collectives: list[int], cuts: list[int]) -> None:
    events: list[Event] = []
    for count in collectives:
        events += [issue(len(events) + at, len(events) + at) for at in range(count)]
        events.append(StepEnd(len(events)))
    cutter = Cutter()
    ended: list[Iteration] = []
    bounds = [0, *sorted(cuts), len(events)]
    for begin, end in pairwise(bounds):
        ended += cutter.cut(events[begin:end])
    assert ended == Cutter().cut(events)
    assert len(ended) == max(0, sum(count > 0 for count in collectives) - 1)
    for before, after in pairwise(ended):
        assert before.end_ns == after.begin_ns


def test_without_steps_an_iteration_is_what_repeats() -> None:
    ended = Cutter().cut(repeated([1, 2, 3], 30))
    assert len(ended) >= 20
    for iteration in ended:
        assert sorted(sizes_of(iteration)) == [1, 2, 3]
        assert iteration.end_ns - iteration.begin_ns == 3


def test_few_collectives_are_the_program_s_beginning() -> None:
    assert Cutter().cut(repeated([1], 63)) == []


def test_without_steps_what_is_set_up_first_is_no_iteration() -> None:
    set_up: list[Event] = [issue(at, at, 1000 + at) for at in range(50)]
    ended = Cutter().cut([*set_up, *repeated([1, 2, 3], 30, first=50)])
    assert len(ended) >= 20
    assert {tuple(sorted(sizes_of(iteration))) for iteration in ended} == {(1, 2, 3)}


@given(period=st.integers(1, 7), counts=st.lists(st.integers(0, 150), min_size=1, max_size=8))
def test_repetitions_cut_whole_iterations_however_the_events_come_in(period: int, counts: list[int]) -> None:
    sizes = list(range(1, period + 1))
    events = repeated(sizes, sum(counts) // period + 1)
    cutter = Cutter()
    ended: list[Iteration] = []
    for count in counts:
        ended += cutter.cut(events[:count])
        del events[:count]
    for iteration in ended:
        assert sorted(sizes_of(iteration)) == sizes
    for before, after in pairwise(ended):
        assert before.end_ns == after.begin_ns


def test_a_program_that_begins_to_step_is_cut_at_its_steps() -> None:
    cutter = Cutter()
    assert cutter.cut(repeated([1, 2, 3], 30))
    ended = cutter.cut([issue(100, 100), StepEnd(101), issue(101, 102), StepEnd(103)])
    assert (ended[-1].begin_ns, ended[-1].end_ns) == (101, 103)


def test_what_never_repeats_is_kept_only_so_far() -> None:
    cutter = Cutter()
    for first in range(0, 40_000, 10_000):
        assert cutter.cut([issue(at, at, at) for at in range(first, first + 10_000)]) == []
    assert len(cutter._events) < 20_000


def slow_period(keys: Sequence[object]) -> int | None:
    """What ``shortest_period`` is to find, said another way."""
    for period in range(1, len(keys) // 3 + 1):
        one = list(keys[-period:])
        if list(keys[-3 * period :]) == one * 3:
            return period
    return None


@given(st.lists(st.integers(0, 2), max_size=30), st.lists(st.integers(0, 2), min_size=1, max_size=5), st.integers(0, 5))
def test_the_shortest_period_is_that_of_the_last_three_repetitions(
    head: list[int], repeats: list[int], times: int
) -> None:
    keys = head + repeats * times
    assert shortest_period(keys) == slow_period(keys)
