from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from runtime.arrays import ArraySpec
from runtime.functions import function, timer
from runtime.mapping import pmap
from runtime.tracing import TracedProgram, program


@dataclass
class Recorder:
    """A runtime that runs nothing."""

    ran: list[TracedProgram] = field(default_factory=list)

    def run(self, traced: TracedProgram, arguments: Sequence[Any]) -> list[Any]:  # noqa: ARG002 - runs nothing
        self.ran.append(traced)
        return list(traced.program.results)


@dataclass(frozen=True)
class Slice:
    number: int
    size: int
    runtime: Recorder


double = function(library="numpy", outputs=lambda x: x, name="double")(lambda x: x * 2)
RUNTIME = Recorder()
TWO, FOUR = Slice(0, 2, RUNTIME), Slice(1, 4, RUNTIME)


def test_a_program_has_one_node_for_each_computation() -> None:
    a, b = pmap(double, devices=TWO), pmap(timer(0.1), devices=FOUR)

    @program
    def f(v: Any) -> Any:
        x = a(v)
        return {"y": b(x), "z": (a(x), x)}

    assert str(f.trace(np.zeros(8))) == (
        "program f(%0: float64[8]) {\n"
        "  %1 = double(%0 as 2 on axis 0) on slice 0 -> float64[8] as 2 on axis 0\n"
        "  %2 = timer(%1 as 4 on axis 0) on slice 1 -> float64[8] as 4 on axis 0\n"
        "  %3 = double(%1 as 2 on axis 0) on slice 0 -> float64[8] as 2 on axis 0\n"
        "  return %2, %3, %1\n"
        "}"
    )


def test_arrays_that_the_code_uses_become_arguments() -> None:
    weights = np.ones(2)
    add = pmap(function(library="numpy", outputs=lambda x, _: x)(np.add), devices=TWO, in_axes=(0, None))

    @program
    def f(v: Any) -> Any:
        return add(add(v, weights), weights)

    traced = f.trace(np.zeros(4))
    assert traced.arguments == (ArraySpec((4,), "float64"), ArraySpec((2,), "float64"))
    assert [str(each) for call in traced.calls for each in call.inputs] == [
        "%0 as 2 on axis 0",
        "%1 as 2 copies",
        "%2 as 2 on axis 0",
        "%1 as 2 copies",
    ]


def test_it_is_traced_once_for_each_combination_of_shapes() -> None:
    traces = []

    @program
    def f(v: Any) -> Any:
        traces.append(v.shape)
        return pmap(double, devices=TWO)(v)

    runtime = RUNTIME
    runtime.ran.clear()
    f(np.zeros(4))
    f(np.ones(4))
    f(np.zeros(6))
    assert traces == [(4,), (6,)]
    assert runtime.ran[0] is runtime.ran[1]


def test_a_call_outside_of_programs_is_a_program_of_its_own() -> None:
    RUNTIME.ran.clear()
    a = pmap(double, devices=TWO)
    a(np.zeros(4))
    a(np.zeros(4))
    assert RUNTIME.ran[0] is RUNTIME.ran[1]
    assert str(RUNTIME.ran[0].program).count("\n") == 3


def test_the_user_s_line_is_kept() -> None:
    traced = program(lambda v: pmap(double, devices=TWO)(v)).trace(np.zeros(2))
    assert "test_tracing.py" in traced.calls[0].location


@pytest.mark.parametrize("use", [bool, np.asarray])
def test_traced_arrays_have_no_data(use: Any) -> None:
    with pytest.raises(TypeError, match="is traced and has no data"):
        program(lambda v: use(v)).trace(np.zeros(2))


def test_shapes_that_do_not_fit_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"double: axis 0 of float64\[3\] cannot be cut into 2 equal blocks"):
        pmap(double, devices=TWO)(np.zeros(3))
    with pytest.raises(ValueError, match="double: in_axes: 2 axes for 1 arrays"):
        pmap(double, devices=TWO, in_axes=(0, 0))(np.zeros(2))


def test_slices_of_two_runtimes_are_not_mixed() -> None:
    other = Slice(0, 2, Recorder())
    with pytest.raises(ValueError, match="belongs to another runtime"):
        program(lambda v: pmap(double, devices=other)(pmap(double, devices=TWO)(v))).trace(np.zeros(2))


def test_what_returns_no_traced_array_is_refused() -> None:
    with pytest.raises(TypeError, match="expected it to return traced arrays, got 1"):
        program(lambda _: 1).trace(np.zeros(2))


def test_functions_of_pytorch_are_inferred() -> None:
    torch = pytest.importorskip("torch")
    inferred = function(lambda x: (x.sum(0), x > 0))
    assert inferred.output_specs((ArraySpec((3, 2), "float32"),)) == (
        ArraySpec((2,), "float32"),
        ArraySpec((3, 2), "bool"),
    )
    with pytest.raises(TypeError, match="the shapes of its outputs depend on data"):
        function(torch.nonzero).output_specs((ArraySpec((3,), "float32"),))
    with pytest.raises(TypeError, match=r"lambda: cannot take \(float32\[3\], float32\[2\]\)"):
        function(lambda x, y: x + y).output_specs((ArraySpec((3,), "float32"), ArraySpec((2,), "float32")))
