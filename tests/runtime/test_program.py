import pytest

from runtime.arrays import ArraySpec, Sharding
from runtime.program import Program, Value
from tests.runtime.programs import call, chain

SPEC = ArraySpec((4,), "float64")


def test_text_of_a_chain_has_four_lines_whatever_the_number_of_shards() -> None:
    assert str(chain(4, 2, 4)) == (
        "program chain(%0: float64[4]) {\n"
        "  %1 = a(%0 as 2 on axis 0) on slice 0 -> float64[4] as 2 on axis 0\n"
        "  %2 = b(%1 as 4 on axis 0) on slice 1 -> float64[4] as 4 on axis 0\n"
        "  return %2\n"
        "}"
    )
    assert len(str(chain(4096, 1024, 2048)).splitlines()) == len(str(chain(4, 2, 4)).splitlines())


def test_values_that_are_used_before_they_are_made_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"ring: a takes %1 before it is made"):
        Program("ring", (SPEC,), (call("a", 0, Value(1), SPEC, Sharding(0, 2)),), (Value(1),))


def test_blocks_that_do_not_divide_an_axis_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"odd: a: axis 0 of float64\[4\] cannot be cut into 3 equal blocks"):
        Program("odd", (SPEC,), (call("a", 0, Value(0), SPEC, Sharding(0, 3)),), (Value(1),))


def test_inputs_and_outputs_of_different_numbers_of_shards_are_refused() -> None:
    with pytest.raises(ValueError, match="different numbers of shards"):
        Program("two", (SPEC,), (call("a", 0, Value(0), SPEC, Sharding(0, 2), Sharding(0, 4)),), (Value(1),))


@pytest.mark.parametrize("value", [Value(7), Value(1, 1), Value(-1)])
def test_results_that_nobody_makes_are_refused(value: Value) -> None:
    with pytest.raises(ValueError, match="there is no"):
        Program("none", (SPEC,), (call("a", 0, Value(0), SPEC, Sharding(0, 2)),), (value,))


def test_an_unknown_dtype_is_refused() -> None:
    with pytest.raises(TypeError, match="'bfloat16'"):
        ArraySpec((1,), "bfloat16")


@pytest.mark.parametrize("shape", [(2**62, 2**62), (0, 2**70), (None, 2**62, 2), (1,) * 65, (2, 2**63 - 1)])
def test_a_shape_that_no_array_has_is_refused(shape: tuple[int | None, ...]) -> None:
    with pytest.raises(ValueError, match="no array has"):
        ArraySpec(shape, "float64")
