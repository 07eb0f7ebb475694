"""Input pipelines: batches that the CPUs of hosts make ahead of the steps that take them (Pathways, appendix C).

An input function runs on the hosts of a slice, a shard for each device. Each step is a call of its own, some of which
are under way ahead of time. So batches are arrays like all others: programs take them by their handles, and they never
pass through the client.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import numpy as np

from runtime.arrays import ArraySpec
from runtime.client.slices import VirtualSlice
from runtime.errors import InputEndedError, RuntimeFailure
from runtime.functions import Function
from runtime.mapping import Mapped
from runtime.tracing import current_trace

_CLOSING = -1


class InputPipeline:
    """An iterator over batches; make one with ``input_pipeline``.

    Each batch is an array, or a tuple of them where the input function yields several. It ends with the input function,
    when all shards have ended or the first of them.

    Attributes:
        step: The step whose batch comes next. A pipeline that starts there goes on where this one is.
    """

    def __init__(self, mapped: Mapped, depth: int, start: int) -> None:
        self.step = start
        self._mapped = mapped
        self._depth = depth
        self._ahead: deque[Any] = deque()
        self._is_closed = False
        self._request()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        """Return the next batch once it is made, and let hosts make one more.

        After an error the pipeline stays at its step, and the next call tries that again.

        Raises:
            StopIteration: The input function has ended, or the pipeline was closed.
            ValueError: A program is being traced.
            RuntimeFailure: There is no such batch: the input function raised, or its host ended.
        """
        if current_trace() is not None:
            raise ValueError(f"{self._mapped.function.name}: take batches outside of programs, and pass them in")
        if self._is_closed:
            raise StopIteration
        self._request()
        batch = self._ahead[0]
        try:
            (batch[0] if isinstance(batch, tuple) else batch).wait()
        except InputEndedError:
            self.close()
            raise StopIteration from None
        except BaseException:
            self._ahead.clear()
            raise
        self._ahead.popleft()
        self.step += 1
        self._request()
        return batch

    def close(self) -> None:
        """Let hosts end the input function, and forget the batches that nobody took; the client's end does so, too."""
        if not self._is_closed:
            self._is_closed = True
            self._ahead.clear()
            with suppress(RuntimeFailure):
                self._call(_CLOSING)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _request(self) -> None:
        while len(self._ahead) < self._depth:
            self._ahead.append(self._call(self.step + len(self._ahead)))

    def _call(self, step: int) -> Any:
        shards = self._mapped.devices.size
        return self._mapped(np.array([(step, shard, shards) for shard in range(shards)], np.int64))


def input_pipeline(
    batches: Callable[[int, int, int], Any],
    *,
    devices: VirtualSlice,
    outputs: ArraySpec | Sequence[ArraySpec],
    depth: int = 2,
    start: int = 0,
    name: str | None = None,
) -> InputPipeline:
    """Run an input function on the hosts of a slice, ahead of the steps that take its batches.

    Args:
        batches: Takes a step, a shard and the number of shards. It yields that shard's batch of the step, and of all
            that follow: an array of NumPy, or a tuple of them. What it yields must depend on these three alone, and
            must not change afterwards. It travels like all functions.
        devices: For each of its devices there is a shard, made on its host. Shards are joined along their first axis.
        outputs: What a shard of a batch is: one array or several.
        depth: How many batches are made, or being made, that nobody has taken yet.
        start: The first step.
        name: What messages and traces call it.

    Raises:
        ValueError: The depth is not positive, or the start is negative.
        TypeError: The function cannot travel.
    """
    if depth < 1:
        raise ValueError(f"depth: expected at least one batch, got {depth}")
    if start < 0:
        raise ValueError(f"start: expected a step from 0, got {start}")
    called = name or str(getattr(batches, "__name__", type(batches).__name__))
    function = Function(called, "input", batches, outputs)
    return InputPipeline(Mapped(function, devices.host_cpus, 0, 0), depth, start)
