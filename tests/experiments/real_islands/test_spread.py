"""What programs over several islands send, and how long that takes on the fabric."""

from collections.abc import Sequence
from typing import Any, cast

import pytest

import runtime as rt
from experiments.real_islands.spread import LINK_GBPS, OnSlices, pipeline_on, replicas_on
from runtime.arrays import ArraySpec
from tests.runtime.network.islands import Shape, Slice, slices, template_of


@pytest.mark.parametrize(
    ("program", "islands", "directions"), [(pipeline_on, 2, 2), (pipeline_on, 4, 2), (replicas_on, 2, 1)]
)
def test_what_crosses_takes_two_fifths_of_a_step_on_each_link(program: OnSlices, islands: int, directions: int) -> None:
    def step(of: Sequence[Slice], *state: Any) -> Any:
        return program(cast("Sequence[rt.VirtualSlice]", of))(*state)

    found = template_of(step, [Shape(ArraySpec((8,), "uint8"))] * islands, slices(*([each] for each in range(islands))))
    assert found is not None
    for group in found.groups:
        link_s = sum(flow.size_bytes for flow in group.flows) * 8 / (LINK_GBPS * 1e9)
        assert directions * link_s == pytest.approx(0.4 * found.profile.compute_s, rel=0.001)
