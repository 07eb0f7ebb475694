"""What a job computes, as far as decisions ask."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Profile:
    """What a job computes in one iteration.

    ``compute_s`` is the compute phase; communication starts when the fraction ``comm_start`` of it is done.
    ``work`` is W: GPU-seconds of computation per iteration over all GPUs (or FLOPs, if every job gives FLOPs).
    """

    compute_s: float
    comm_start: float
    work: float
