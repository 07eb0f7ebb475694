"""Program of one of two ranks: runs schedules of PyTorch, and tells which passes of its stages were seen."""

from typing import Any

import torch
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleZBVZeroBubble,
)

from hostlib.torch.events import StagePass, Wait
from hostlib.torch.recorder import Recorder

MICRO_BATCHES = 4
SCHEDULES: dict[str, tuple[Any, tuple[tuple[int, ...], tuple[int, ...]]]] = {
    "GPipe": (ScheduleGPipe, ((0,), (1,))),
    "1F1B": (Schedule1F1B, ((0,), (1,))),
    "Interleaved1F1B": (ScheduleInterleaved1F1B, ((0, 2), (1, 3))),
    "InterleavedZeroBubble": (ScheduleInterleavedZeroBubble, ((0, 2), (1, 3))),
    "ZBVZeroBubble": (ScheduleZBVZeroBubble, ((0, 3), (1, 2))),
}
"""Each schedule, and the stages of the two ranks."""
_WIDTH = 8


def main(rank: int) -> dict[str, Any]:
    """Return by schedule the passes of this rank, in order, with their times and those of waits."""
    torch.manual_seed(1)
    recorder = Recorder()
    results = {}
    for name, (schedule_class, stages_of) in SCHEDULES.items():
        stages = [
            PipelineStage(torch.nn.Linear(_WIDTH, _WIDTH), stage, sum(map(len, stages_of)), torch.device("cpu"))
            for stage in stages_of[rank]
        ]
        schedule = schedule_class(
            stages[0] if len(stages) == 1 else stages,
            MICRO_BATCHES,
            loss_fn=lambda output, target: (output - target).square().sum(),
        )
        rows = torch.randn(MICRO_BATCHES * 2, _WIDTH)

        def step(schedule: Any = schedule, rows: torch.Tensor = rows, stages: Any = stages) -> None:
            schedule.step(*[rows] if stages[0].is_first else [], target=rows if stages[-1].is_last else None)

        recorder.start_profiling()
        recorder.take()
        step()
        events = recorder.take()
        recorder.stop_profiling()
        step()
        results[name] = {
            "passes": [event for event in events if isinstance(event, StagePass)],
            "waits": [[event.begin_ns, event.end_ns] for event in events if isinstance(event, Wait)],
            "later": sum(isinstance(event, StagePass) for event in recorder.take()),
        }
    recorder.close()
    return results
