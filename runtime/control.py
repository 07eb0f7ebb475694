"""Conditionals and bounded loops in programs (Pathways, appendix B): all that may run is enqueued beforehand.

A call under a condition is **guarded**: each of its shards waits for the predicate as for an input. Where that says no,
the shard costs no time and gives zeros. ``cond`` and ``while_loop`` then choose between what branches gave, so nobody
sees these zeros. In a function that runs call by call (``stepping``) they wait for the predicate, as Python would.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime.arrays import ArraySpec
from runtime.client.array import Array
from runtime.functions import function
from runtime.mapping import Mapped
from runtime.stepping import is_stepping
from runtime.structures import Structure, flatten, unflatten
from runtime.tracing import Trace, TracedArray, current_trace, spec_of

_PREDICATE = ArraySpec((), "bool")


def _like_one(_predicate: ArraySpec, one: ArraySpec, _other: ArraySpec) -> ArraySpec:
    return one


@function(library="numpy", outputs=_like_one, name="select")
def _select(predicate: Any, one: Any, other: Any) -> Any:
    return one if predicate else other


def cond(predicate: TracedArray, if_true: Callable[..., Any], if_false: Callable[..., Any], *arguments: Any) -> Any:
    """Return ``if_true(*arguments)`` where a boolean scalar is true, ``if_false(*arguments)`` where it is false.

    Both are traced; only the calls of one are computed. They must return arrays of the same shapes, nested alike.

    Raises:
        TypeError: The predicate is no boolean scalar.
        ValueError: There is no program being traced, or what the branches return differs.
    """
    if _is_called():
        return (if_true if _holds(predicate) else if_false)(*arguments)
    trace = _trace("cond")
    _check(predicate)
    with trace.guarded(predicate, when=True):
        of_true, structure = flatten(if_true(*arguments))
    with trace.guarded(predicate, when=False):
        of_false, other_structure = flatten(if_false(*arguments))
    if structure != other_structure:
        raise ValueError("cond: the branches return arrays that are nested differently")
    return unflatten(structure, _selected(trace, "cond", predicate, of_true, of_false))


def while_loop(condition: Callable[..., TracedArray], body: Callable[..., Any], state: Any, *, at_most: int) -> Any:
    """Return ``state`` after ``state = body(state)`` was done while ``condition(state)``, but ``at_most`` so often.

    Each of the iterations is traced; those after the last cost no time on devices. ``body`` must return arrays of the
    same shapes, nested as the state is.

    Raises:
        TypeError: The condition is no boolean scalar.
        ValueError: There is no program being traced, or the body changes the shape of the state.
    """
    leaves, structure = flatten(state)
    if _is_called():
        for _ in range(at_most):
            if not _holds(condition(state)):
                break
            state = body(state)
            _check_nesting(flatten(state)[1], structure)
        return state
    trace = _trace("while_loop")
    goes_on: TracedArray | None = None
    for _ in range(at_most):
        given = unflatten(structure, leaves)
        if goes_on is None:
            goes_on = condition(given)
        else:
            with trace.guarded(goes_on, when=True):  # a skipped condition is false, like all zeros
                goes_on = condition(given)
        _check(goes_on)
        with trace.guarded(goes_on, when=True):
            after, after_structure = flatten(body(given))
        _check_nesting(after_structure, structure)
        leaves = _selected(trace, "while_loop", goes_on, after, leaves)
    return unflatten(structure, leaves)


def _trace(what: str) -> Trace:
    trace = current_trace()
    if trace is None:
        raise ValueError(f"{what}: works inside of a program; outside, use the conditions and loops of Python")
    return trace


def _is_called() -> bool:
    """Return whether the function runs call by call; what it calls may be traced again."""
    return is_stepping() and current_trace() is None


def _holds(predicate: object) -> bool:
    """Wait for a predicate, and return what it says."""
    _check(predicate, Array)
    return bool(np.asarray(predicate))


def _check(predicate: object, kind: type[TracedArray | Array] = TracedArray) -> None:
    if not isinstance(predicate, kind) or predicate.spec != _PREDICATE:
        what = predicate.spec if isinstance(predicate, kind) else type(predicate).__name__
        raise TypeError(f"predicate: expected a traced {_PREDICATE}, got {what}")


def _check_nesting(after: Structure, before: Structure) -> None:
    if after != before:
        raise ValueError("while_loop: the body must return arrays that are nested as the state is")


def _selected(trace: Trace, what: str, predicate: TracedArray, ones: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """Return what lies where one of each pair was computed: the one or the other."""
    selected = []
    for number, (one, other) in enumerate(zip(ones, others, strict=True)):
        if one is other:
            selected.append(one)
            continue
        specs = [spec_of(each) for each in (one, other)]
        if specs[0] != specs[1]:
            raise ValueError(f"{what}: array {number} is {specs[0]} or {specs[1]}; expected the same")
        places = [place for each in (one, other) if (place := trace.place(each)) is not None]
        if not places:
            raise ValueError(f"{what}: array {number} is computed by no mapped function")
        devices, axis = places[0]
        selected.append(Mapped(_select, devices, (None, axis, axis), axis)(predicate, one, other))
    return selected
