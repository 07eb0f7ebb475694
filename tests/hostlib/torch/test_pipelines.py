"""Tables of pipelines, played without communication: cases by hand, PyTorch's own schedules, and a plain reference."""

import random
from collections.abc import Mapping, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch.distributed.pipelining._schedule_visualizer import get_schedule_ops

from hostlib import arrangements
from hostlib.torch.intervals import Interval, covered
from hostlib.torch.pipelines import Action, Pass, Table, median_table, simulated

FORWARD, BACKWARD, WEIGHTS = Pass.FORWARD, Pass.BACKWARD, Pass.WEIGHTS
PassOf = tuple[Pass, int, int]


def table(passes: Sequence[PassOf], durations_s: Mapping[Pass, float]) -> tuple[Action, ...]:
    """The passes of a rank, one right behind the other."""
    found: list[Action] = []
    for kind, stage, micro_batch in passes:
        begin_s = found[-1].end_s if found else 0.0
        found.append(Action(kind, stage, micro_batch, begin_s, begin_s + durations_s[kind]))
    return tuple(found)


def gpipe(_num_stages: int, num_micro_batches: int, stage: int) -> list[PassOf]:
    return [(kind, stage, number) for kind in (FORWARD, BACKWARD) for number in range(num_micro_batches)]


def one_forward_one_backward(num_stages: int, num_micro_batches: int, stage: int) -> list[PassOf]:
    ahead = num_stages - stage
    passes = [(FORWARD, stage, number) for number in range(min(ahead, num_micro_batches))]
    for number in range(num_micro_batches):
        passes.append((BACKWARD, stage, number))
        if number + ahead < num_micro_batches:
            passes.append((FORWARD, stage, number + ahead))
    return passes


def offsets(windows: Sequence[Interval]) -> list[float]:
    """The ideal finishes of transfers, as an arrangement."""
    return [need_s - windows[0][1] for _, need_s in windows]


def slacks(windows: Sequence[Interval]) -> list[float]:
    return [need_s - release_s for release_s, need_s in windows]


def test_a_gpipe_of_two_stages_by_hand() -> None:
    # Rank 0: F0 0-1, F1 1-2, B0 5-7, B1 7-9. Rank 1: F0 1-2, F1 2-3, B0 3-5, B1 5-7.
    durations_s = {FORWARD: 1.0, BACKWARD: 2.0}
    found = simulated({stage: table(gpipe(2, 2, stage), durations_s) for stage in range(2)})
    assert found.windows == {(0, 1): ((1.0, 1.0), (2.0, 2.0)), (1, 0): ((5.0, 5.0), (7.0, 7.0))}
    assert found.timelines[0].simulated_s == (0.0, 1.0, 1.0, 2.0, 5.0, 7.0, 7.0, 9.0)
    assert found.last_need_s == 7.0


def test_a_1f1b_of_two_stages_by_hand() -> None:
    # Rank 0: F0 0-1, F1 1-2, B0 4-6, F2 6-7, B1 7-9, B2 10-12. Rank 1: F0 1-2, B0 2-4, F1 4-5, B1 5-7, F2 7-8, B2 8-10.
    durations_s = {FORWARD: 1.0, BACKWARD: 2.0}
    found = simulated({stage: table(one_forward_one_backward(2, 3, stage), durations_s) for stage in range(2)})
    assert found.windows == {
        (0, 1): ((1.0, 1.0), (2.0, 4.0), (7.0, 7.0)),
        (1, 0): ((4.0, 4.0), (7.0, 7.0), (10.0, 10.0)),
    }
    assert found.timelines[0].simulated_s[-1] == 12.0


def test_a_consumer_that_is_slower_lets_activations_wait() -> None:
    slow = {FORWARD: 3.0, BACKWARD: 0.0}
    tables = {0: table(gpipe(2, 3, 0), {FORWARD: 1.0, BACKWARD: 0.0}), 1: table(gpipe(2, 3, 1), slow)}
    assert simulated(tables).windows[0, 1] == ((1.0, 1.0), (2.0, 4.0), (3.0, 7.0))


@pytest.mark.parametrize(("num_stages", "num_micro_batches"), [(2, 4), (4, 4), (4, 8), (3, 7)])
def test_pipelines_of_equal_stages_have_the_arrangements_of_the_echelonflow_paper(
    num_stages: int, num_micro_batches: int
) -> None:
    forward_s, backward_s = 1.0, 2.0
    durations_s = {FORWARD: forward_s, BACKWARD: backward_s}
    both = {
        name: simulated(
            {stage: table(passes(num_stages, num_micro_batches, stage), durations_s) for stage in range(num_stages)}
        )
        for name, passes in (("gpipe", gpipe), ("1f1b", one_forward_one_backward))
    }
    for stage in range(1, num_stages):
        into, back = (stage - 1, stage), (stage, stage - 1)
        # Equation 6: equal distances.
        forward = arrangements.staggered(num_micro_batches, forward_s)
        assert offsets(both["gpipe"].windows[into]) == list(forward)
        assert offsets(both["gpipe"].windows[back]) == list(arrangements.staggered(num_micro_batches, backward_s))
        assert covered(both["gpipe"].windows[into]) == covered(both["gpipe"].windows[back]) == 0
        assert offsets(both["1f1b"].windows[into]) == list(
            arrangements.one_forward_one_backward(num_micro_batches, num_stages, stage, forward_s, backward_s)
        )
        turns = arrangements.staggered(num_micro_batches, forward_s + backward_s)
        assert offsets(both["1f1b"].windows[back]) == list(turns)
        # Only the last activation of the warm-up is there before it is needed.
        ahead = num_stages - stage
        waits_s = [ahead * backward_s if number == ahead else 0.0 for number in range(num_micro_batches)]
        assert slacks(both["1f1b"].windows[into]) == waits_s
        assert slacks(both["1f1b"].windows[back]) == [0.0] * num_micro_batches


@pytest.mark.parametrize(
    ("schedule", "num_micro_batches", "length_s"),
    [
        ("GPipe", 4, 21.0),
        ("LoopedBFS", 4, 33.0),
        ("Interleaved1F1B", 8, 57.0),
        ("InterleavedZeroBubble", 8, 51.0),
        ("ZBVZeroBubble", 8, 51.0),
    ],
)
def test_schedules_of_pytorch_take_as_long_as_their_tables_say(
    schedule: str, num_micro_batches: int, length_s: float
) -> None:
    kinds = {
        "FORWARD": (FORWARD, 1.0),
        "FULL_BACKWARD": (BACKWARD, 2.0),
        "BACKWARD_INPUT": (BACKWARD, 1.0),
        "BACKWARD_WEIGHT": (WEIGHTS, 1.0),
    }
    tables: dict[int, list[Action]] = {}
    for rank, actions in enumerate(get_schedule_ops(schedule, 4, num_micro_batches)):
        now_s, own = 0.0, tables.setdefault(rank, [])
        for action in actions:
            if action is not None and action.computation_type.name in kinds:
                kind, duration_s = kinds[action.computation_type.name]
                own.append(Action(kind, action.stage_index, action.microbatch_index, now_s, now_s + duration_s))
                now_s += duration_s
    found = simulated(tables)
    assert max(each.simulated_s[-1] for each in found.timelines.values()) == length_s


def test_what_a_rank_computes_between_passes_takes_its_time() -> None:
    tables = {
        0: (Action(FORWARD, 0, 0, 0.5, 1.5), Action(BACKWARD, 0, 0, 1.75, 2.75)),
        1: (Action(FORWARD, 1, 0, 0.25, 1.25), Action(BACKWARD, 1, 0, 1.5, 2.5)),
    }
    found = simulated(tables)
    assert found.windows == {(0, 1): ((1.5, 1.5),), (1, 0): ((3.75, 3.75),)}
    # Rank 1 has computed for 3 when its optimizer has ended, half a second after its backward pass.
    times_s = {0.0: 0.0, 0.25: 1.5, 0.75: 2.0, 1.5: 2.75, 2.5: 3.75, 3.0: 4.25}
    assert {computed_s: found.timelines[1].at(computed_s) for computed_s in times_s} == times_s


def test_accumulated_gradients_have_each_pass_several_times() -> None:
    twice = {
        stage: table([*one_forward_one_backward(2, 1, stage)] * 2, {FORWARD: 1.0, BACKWARD: 1.0}) for stage in range(2)
    }
    assert simulated(twice).windows == {(0, 1): ((1.0, 1.0), (5.0, 5.0)), (1, 0): ((3.0, 3.0), (7.0, 7.0))}


def test_stages_of_one_rank_send_nothing_to_each_other() -> None:
    passes = [(FORWARD, 0, 0), (FORWARD, 1, 0), (BACKWARD, 1, 0), (BACKWARD, 0, 0)]
    found = simulated({3: table(passes, {FORWARD: 1.0, BACKWARD: 1.0})})
    assert found.windows == {}
    assert found.timelines[3].simulated_s[-1] == 4.0


@pytest.mark.parametrize(
    "passes",
    [
        {0: [(FORWARD, 0, 0)], 1: [(FORWARD, 1, 1)]},
        {0: [(FORWARD, 0, 0), (BACKWARD, 0, 0)], 1: [(FORWARD, 1, 0)]},
        {0: [(BACKWARD, 0, 0), (FORWARD, 0, 0)], 1: [(FORWARD, 1, 0), (BACKWARD, 1, 0)]},
    ],
)
def test_passes_that_wait_forever_are_refused(passes: dict[int, list[PassOf]]) -> None:
    tables = {rank: table(own, {FORWARD: 1.0, BACKWARD: 1.0}) for rank, own in passes.items()}
    with pytest.raises(ValueError, match=r"^rank \d waits for the (forward|backward) pass of stage [01], micro-batch"):
        simulated(tables)


def test_two_ranks_with_the_same_stage_are_refused() -> None:
    with pytest.raises(ValueError, match="two ranks have the same pass"):
        simulated({rank: table([(FORWARD, 0, 0)], {FORWARD: 1.0}) for rank in range(2)})


def test_a_table_is_the_medians_of_those_that_are_like_the_last() -> None:
    def one(micro_batch: int, end_s: float) -> tuple[Action, ...]:
        return (Action(FORWARD, 0, micro_batch, end_s / 2, end_s),)

    assert median_table([one(1, 9.0), one(0, 4.0), one(0, 8.0), one(0, 5.0)]) == one(0, 5.0)
    assert median_table([one(0, 4.0), one(0, 8.0)]) == one(0, 4.0)


# ---- any schedule ----------------------------------------------------------------------------------------------------

_SECONDS = st.integers(0, 8).map(float)


@st.composite
def schedules(draw: st.DrawFn) -> dict[int, Table]:
    """Any order of passes that ranks can run, with any durations and pauses."""
    num_stages, num_micro_batches = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    rank_of = [draw(st.integers(0, 2)) for _ in range(num_stages)]
    chance = random.Random(draw(st.integers(0, 1 << 32)))
    left = {
        (kind, stage, number) for kind in Pass for stage in range(num_stages) for number in range(num_micro_batches)
    }
    done: set[PassOf] = set()
    tables: dict[int, list[Action]] = {rank: [] for rank in sorted(set(rank_of))}
    while left:
        kind, stage, number = chance.choice(sorted(each for each in left if done.issuperset(_before(each, num_stages))))
        left.remove((kind, stage, number))
        done.add((kind, stage, number))
        own = tables[rank_of[stage]]
        begin_s = (own[-1].end_s if own else 0.0) + draw(_SECONDS)
        own.append(Action(kind, stage, number, begin_s, begin_s + draw(_SECONDS)))
    return dict(tables)


def _before(step: PassOf, num_stages: int) -> list[PassOf]:
    """What must have run before a pass."""
    kind, stage, number = step
    if kind is FORWARD:
        return [(FORWARD, stage - 1, number)] if stage else []
    if kind is WEIGHTS:
        return [(BACKWARD, stage, number)]
    return [(FORWARD, stage, number), *([(BACKWARD, stage + 1, number)] if stage + 1 < num_stages else [])]


@given(schedules())
def test_every_pass_begins_as_soon_as_it_can(tables: dict[int, Table]) -> None:
    num_stages = 1 + max(action.stage for own in tables.values() for action in own)
    rank_of = {action.stage: rank for rank, own in tables.items() for action in own}
    # The plain reference: let passes begin later, one by one, until none has to wait for another any more.
    begins_s = {action[:3]: 0.0 for own in tables.values() for action in own}
    durations_s = {action[:3]: action.end_s - action.begin_s for own in tables.values() for action in own}
    changes = True
    while changes:
        changes = False
        for own in tables.values():
            for before, action in zip((None, *own), own, strict=False):
                pause_s = action.begin_s - (before.end_s if before else 0.0)
                free_s = begins_s[before[:3]] + durations_s[before[:3]] if before else 0.0
                needed_s = [begins_s[each] + durations_s[each] for each in _before(action[:3], num_stages)]
                begin_s = max(free_s + pause_s, *needed_s, 0.0)
                changes |= begin_s > begins_s[action[:3]]
                begins_s[action[:3]] = begin_s
    found = simulated(tables)
    for rank, own in tables.items():
        assert list(found.timelines[rank].simulated_s[::2]) == [begins_s[action[:3]] for action in own]
        simulated_s = found.timelines[rank].simulated_s
        assert all(one <= other for one, other in pairwise(simulated_s))
    expected: dict[tuple[int, int], list[Interval]] = {}
    for step, begin_s in begins_s.items():
        kind, stage, number = step
        producer = {FORWARD: stage - 1, BACKWARD: stage + 1, WEIGHTS: stage}[kind]
        if 0 <= producer < num_stages and rank_of[producer] != rank_of[stage]:
            before_step = kind, producer, number
            window = begins_s[before_step] + durations_s[before_step], begin_s
            expected.setdefault((rank_of[producer], rank_of[stage]), []).append(window)
    assert found.windows == {pair: tuple(sorted(windows)) for pair, windows in expected.items()}
