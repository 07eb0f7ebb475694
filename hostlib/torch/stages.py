"""Sees when stages of a pipeline of ``torch.distributed.pipelining`` compute, whatever the schedule.

All schedules call the same three methods of a stage. Stages on accelerators are not seen: their methods return before
the computation has ended.
"""

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch.distributed as dist

from hostlib.torch.events import StagePass
from hostlib.torch.pipelines import Pass

_MODULE, _CLASS = "torch.distributed.pipelining.stage", "_PipelineStageBase"
_METHODS = {
    "forward_one_chunk": (Pass.FORWARD, "fwd_chunk_id"),
    "backward_one_chunk": (Pass.BACKWARD, "bwd_chunk_id"),
    "backward_weight_one_chunk": (Pass.WEIGHTS, "bwd_chunk_id"),
}
"""What each method does, and its argument that numbers the micro-batch."""

_now_ns = time.perf_counter_ns


class StageTee:
    """Tells of every pass of a stage, from now on until ``remove``."""

    def __init__(self, ran: Callable[[StagePass], None]) -> None:
        self._ran = ran
        self._plain: dict[str, Callable[..., Any]] = {}
        self.look()

    def look(self) -> None:
        """Look whether the job has imported pipelines by now; it may import them later than us."""
        base = getattr(sys.modules.get(_MODULE), _CLASS, None)
        if self._plain or base is None:
            return
        plain = {name: vars(base).get(name) for name in _METHODS}
        if all(map(callable, plain.values())):  # else it is a PyTorch that we do not know
            self._plain = plain
            for name, method in plain.items():
                setattr(base, name, self._seen(method, *_METHODS[name]))

    def remove(self) -> None:
        """Tell no more."""
        plain, self._plain = self._plain, {}
        for name, method in plain.items():
            setattr(getattr(sys.modules[_MODULE], _CLASS), name, method)

    def _seen(self, plain: Callable[..., Any], kind: Pass, argument: str) -> Callable[..., Any]:
        def method(stage: Any, *args: Any, **kwargs: Any) -> Any:
            begin_ns = _now_ns()
            result = plain(stage, *args, **kwargs)
            end_ns = _now_ns()
            with suppress(AttributeError, KeyError, TypeError, ValueError):  # it is a stage that we do not know
                micro_batch = int(args[0] if args else kwargs[argument])
                if stage.device.type == "cpu":
                    group = stage.group or dist.group.WORLD
                    found = StagePass(
                        kind, str(group.group_name), int(stage.stage_index), micro_batch, begin_ns, end_ns
                    )
                    self._ran(found)
            return result

        return method
