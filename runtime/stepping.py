"""Call by call: how a function of ``rt.program`` runs that makes arrays of which no bound is known.

A program states all shapes before it runs. Where a call returns as many rows as it likes, that is not possible; so the
function is not traced, but called: each of its calls is a program of its own. A call that takes such an array waits
until its rows are known, as sequential dispatch does (Pathways, section 4.5).
"""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from runtime.client.array import Array
from runtime.structures import Structure, flatten, unflatten

_is_stepping: ContextVar[bool] = ContextVar("runtime_is_stepping", default=False)


def is_stepping() -> bool:
    """Return whether a function runs call by call."""
    return _is_stepping.get()


def called(name: str, call: Callable[..., Any], structure: Structure, leaves: Sequence[Any]) -> Any:
    """Call a function with arguments of a structure; return futures, nested as the function nests its arrays.

    Raises TypeError where it returns what is neither computed nor an argument, and what its calls raise: also the
    errors of arrays whose rows a call waits for.
    """
    given = [each if isinstance(each, Array) else np.asarray(each, order="C") for each in leaves]
    token = _is_stepping.set(True)
    try:
        returned, nesting = flatten(call(*unflatten(structure, given)))
    finally:
        _is_stepping.reset(token)
    for each in returned:
        if not isinstance(each, Array) and not any(each is one for one in given):
            raise TypeError(f"{name}: expected it to return arrays of the runtime, got {each!r:.200}")
    return unflatten(nesting, returned)
