"""The names of the schedulers that a run can take, as commands spell them."""

from enum import StrEnum


class Scheduler(StrEnum):
    """What chooses GPUs for jobs; all but Muri serve first come, first served."""

    AFFINITY = "affinity"
    RANDOM = "random"
    HIVED = "hived"
    MURI = "muri"
