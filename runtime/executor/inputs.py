"""The batches of an input function on a host: an iterator for each shard, which goes on from step to step."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from runtime.errors import InputEndedError

Array = np.ndarray[Any, Any]


class InputBatches:
    """Returns a shard's batch of any step; steps that follow each other come from one iterator.

    For any other step the input function is called anew. So batches depend on the step alone, wherever the iterators
    were before, and on whatever host. A negative step closes the iterator of the shard.
    """

    def __init__(self, call: Callable[[int, int, int], Any]) -> None:
        self._call = call
        self._iterators: dict[int, tuple[int, Iterator[Any]]] = {}
        self._ends: dict[int, int] = {}

    def __call__(self, place: Array) -> list[Array]:
        """Return the arrays of a batch; ``place`` has one row: step, shard, number of shards.

        Raises InputEndedError where there is none, and what the input function raises.
        """
        step, shard, shards = map(int, place[0])
        next_step, iterator = self._iterators.pop(shard, (-1, None))
        if step < 0 or step >= self._ends.get(shard, step + 1):
            _close(iterator)
            raise InputEndedError(f"there is no step {step} in shard {shard}")
        if iterator is None or step != next_step:
            _close(iterator)
            iterator = iter(self._call(step, shard, shards))
        try:
            made = next(iterator)
        except StopIteration:
            self._ends[shard] = step
            raise InputEndedError(f"there is no step {step} in shard {shard}") from None
        self._iterators[shard] = (step + 1, iterator)
        return [np.asarray(each, order="C") for each in (made if isinstance(made, tuple | list) else (made,))]


def _close(iterator: Iterator[Any] | None) -> None:
    """Let a generator end what it has begun: its ``finally`` clauses run here, not in another thread."""
    close = getattr(iterator, "close", None)
    if close is not None:
        close()
