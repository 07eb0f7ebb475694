"""Names of pipeline schedules, and how many chunks of layers each of them takes."""

from collections.abc import Mapping, Sequence
from enum import StrEnum


class PipelineSchedule(StrEnum):
    """Order of the micro-batches on a pipeline stage."""

    GPIPE = "gpipe"
    ONE_FORWARD_ONE_BACKWARD = "1f1b"
    INTERLEAVED = "interleaved"
    INTERLEAVED_ZERO_BUBBLE = "interleaved_zero_bubble"
    ZERO_BUBBLE_V = "zero_bubble_v"
    DUAL_PIPE_V = "dual_pipe_v"


CHUNKS: Mapping[PipelineSchedule, Sequence[int]] = {
    PipelineSchedule.GPIPE: (1,),
    PipelineSchedule.ONE_FORWARD_ONE_BACKWARD: (1,),
    PipelineSchedule.INTERLEAVED: range(2, 17),
    PipelineSchedule.INTERLEAVED_ZERO_BUBBLE: range(2, 17),
    PipelineSchedule.ZERO_BUBBLE_V: (2,),
    PipelineSchedule.DUAL_PIPE_V: (2,),
}
"""Numbers of chunks of layers that a host can hold."""


def checked_chunks(chunks: int | None, schedule: PipelineSchedule | None) -> int | None:
    """Return the chunks. Raises ValueError where the schedule does not take so many."""
    if chunks is not None and schedule is not None and chunks not in CHUNKS[schedule]:
        fitting = CHUNKS[schedule]
        expected = f"{fitting[0]}" if len(fitting) == 1 else f"{fitting[0]} to {fitting[-1]}"
        raise ValueError(f"expected {expected} for schedule {schedule.value}")
    return chunks
