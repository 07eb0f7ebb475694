"""Objects of Ray at the edges of programs, with a module that stands in for Ray."""

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import runtime as rt
from runtime.ray_objects import cluster_address, reference_to, with_objects
from runtime.tracing import TracedProgram


class Reference:
    def __init__(self, referred: Any) -> None:
        self.referred = referred


class Kept:
    """Stands in for a runtime, and keeps the arguments of what it runs."""

    arguments: list[Any]

    def run(self, traced: TracedProgram, arguments: list[Any]) -> list[Any]:
        self.arguments = [np.asarray(each).tolist() for each in arguments]
        return list(traced.program.results)


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    made = SimpleNamespace(
        ObjectRef=Reference,
        get=lambda references: [each.referred for each in references],
        put=Reference,
        is_initialized=lambda: True,
        get_runtime_context=lambda: SimpleNamespace(gcs_address="127.0.0.1:6379"),
    )
    monkeypatch.setitem(sys.modules, "ray", made)
    return made


def test_references_are_taken_as_what_they_refer_to_wherever_they_stand(ray: SimpleNamespace) -> None:
    kept = Kept()
    devices = SimpleNamespace(number=0, size=1, runtime=kept)
    add = rt.pmap(rt.function(library="numpy", outputs=lambda x, _: x)(lambda x, y: x + y), devices=devices)
    add(ray.ObjectRef([1.0]), np.array([2.0]))
    assert kept.arguments == [[1], [2]]
    captured = ray.ObjectRef(np.array([5.0]))

    @rt.program
    def f(given: Any) -> Any:
        return add(given["x"], given["y"][0]), add(given["x"], captured)

    f({"x": ray.ObjectRef(np.array([3.0])), "y": [ray.ObjectRef([4.0])]})
    assert kept.arguments == [[3], [4], [5]]
    assert len(f.trace({"x": ray.ObjectRef([3.0]), "y": [np.array([4.0])]}).calls) == 2


def test_without_references_nothing_is_asked_of_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    given = [np.zeros(1), 3.0]
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(ObjectRef=Reference))
    assert with_objects(given) is given
    monkeypatch.delitem(sys.modules, "ray")
    assert with_objects(given) is given


def test_the_cluster_is_the_one_that_the_program_is_connected_to(ray: SimpleNamespace) -> None:
    assert cluster_address() == "127.0.0.1:6379"
    assert reference_to([1]).referred == [1]
    ray.is_initialized = lambda: False
    assert cluster_address() == "auto"
    with pytest.raises(ValueError, match=r"connected to no Ray cluster: call ray.init first"):
        reference_to([1])
