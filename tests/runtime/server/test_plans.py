import pytest

from runtime import messages
from runtime.arrays import ArraySpec, Sharding
from runtime.lowering.assign import AT_CLIENT, Placement
from runtime.lowering.subprograms import lower
from runtime.program import Call, Input, Output, Program, Value
from runtime.server.plans import NumberedFunction, PlannedProgram, RegisteredProgram

SPEC, ONE = ArraySpec((8,), "float32"), Sharding(None, 1)
SLICES = {
    0: Placement("west", (0,), (0,)),
    1: Placement("west", (1,), (0,)),
    2: Placement("east", (2,), (0,)),
    3: Placement("west", (0, 1), (0, 0)),
}
GANGS = {0: frozenset({10}), 1: frozenset({11}), 2: frozenset({12}), 3: frozenset({10, 11})}


def planned(slices: list[int], seconds: list[float | None], results: list[int]) -> PlannedProgram:
    """A chain of calls on these slices: node 1 takes the argument, node 0, and so on. None is not known yet."""
    functions = [
        NumberedFunction(
            messages.RegisterFunction(number, "f", "numpy", each, None),
            1e-4 if each is None else each,
            each is not None,
        )
        for number, each in enumerate(seconds)
    ]
    calls = tuple(
        Call(number, "f", each, (Input(Value(number), ONE),), (Output(SPEC, ONE),))
        for number, each in enumerate(slices)
    )
    program = Program("chain", (SPEC,), calls, tuple(map(Value, results)))
    return PlannedProgram(lower(program, SLICES, [AT_CLIENT]), RegisteredProgram(program, tuple(functions)), GANGS)


def nodes(plan: PlannedProgram) -> list[tuple[int, int]]:
    return [(each.first, each.last) for each in plan.stretches()]


@pytest.mark.parametrize(
    ("slices", "seconds", "results", "found"),
    [
        ([0, 1, 0, 1], [1e-5] * 4, [4], [(1, 4)]),
        ([0, 1, 0, 1], [4e-4] * 4, [4], [(1, 2), (3, 4)]),  # three would be more than a millisecond
        ([0, 1, 0, 1], [1e-5] * 4, [2, 4], [(1, 2), (3, 4)]),  # whoever waits for node 2 waits for nothing else
        ([0, 0, 2, 2, 0], [1e-5] * 5, [5], [(1, 2), (3, 4), (5, 5)]),
        ([0, 0, 0], [1e-5, 1.0, 1e-5], [3], [(1, 1), (2, 2), (3, 3)]),
        ([0, 0, 0, 0], [1e-5, 1e-5, None, 1e-5], [4], [(1, 2), (3, 3), (4, 4)]),
        ([0, 0], [0.0, 0.0], [2], [(1, 2)]),
        ([0, 0, 0, 0], [4e-3] * 4, [4], [(1, 2), (3, 4)]),  # nobody else waits on these devices
        ([0, 0, 0, 1], [4e-4] * 4, [4], [(1, 3), (4, 4)]),
        ([1, 0, 0, 0], [4e-4] * 4, [4], [(1, 2), (3, 4)]),
    ],
)
def test_calls_that_follow_each_other_are_a_stretch_while_they_are_short(
    slices: list[int], seconds: list[float | None], results: list[int], found: list[tuple[int, int]]
) -> None:
    assert nodes(planned(slices, seconds, results)) == found


def test_a_stretch_is_a_gang_of_all_its_devices() -> None:
    first, second = planned([0, 1, 0, 1], [1e-5] * 4, [2, 4]).stretches()
    assert (first.hosts, first.devices, first.makers, first.island) == ((0, 1), frozenset({10, 11}), (0,), "west")
    assert second.makers == (2,)
    assert second.cost_s == pytest.approx(1e-5)  # each of two devices computes for 10 µs


def test_calls_come_after_those_before_them_on_their_devices() -> None:
    plan = planned([0, 1, 0, 2, 0], [1.0] * 5, [5])
    assert [each.before for each in plan.stretches()] == [(), (), (1,), (), (3,)]
    together = planned([0, 0, 1, 1, 0, 0], [4e-4] * 6, [6])
    assert [(each.first, each.before) for each in together.stretches()] == [(1, ()), (3, ()), (5, (2,))]


def test_stretches_follow_what_functions_turn_out_to_take() -> None:
    plan = planned([0, 0], [None, 1e-5], [2])
    assert nodes(plan) == [(1, 1), (2, 2)]
    plan.functions[0].is_known = True
    assert nodes(plan) == [(1, 2)]
    plan.functions[1].seconds = 2e-2
    assert nodes(plan) == [(1, 1), (2, 2)]


def test_sequential_dispatch_has_no_stretch_of_two() -> None:
    assert len(planned([0, 0, 0], [0.0] * 3, [3]).stretches(-1.0)) == 3


def test_a_call_must_start_so_that_what_takes_its_value_can() -> None:
    plan = planned([0, 1, 0], [0.1, 0.2, 0.3], [3])
    assert plan.starts_s(10.0) == {3: pytest.approx(9.7), 2: pytest.approx(9.5), 1: pytest.approx(9.4)}
