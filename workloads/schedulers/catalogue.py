"""The job schedulers by name."""

from enum import StrEnum

from workloads.schedulers.admission import Admit, admit_in_groups, admit_in_order
from workloads.schedulers.baselines import RandomPlacement, place_by_affinity
from workloads.schedulers.hived import place_in_cells


class Scheduler(StrEnum):
    """Name of a job scheduler, as commands spell it. All but Muri serve first come, first served."""

    AFFINITY = "affinity"
    RANDOM = "random"
    HIVED = "hived"
    MURI = "muri"


def admission_function(scheduler: Scheduler, seed: int) -> Admit:
    """Return the admission function of a scheduler.

    ``seed`` seeds random placements. Muri does not choose GPUs, so its groups are placed by affinity.
    """
    match scheduler:
        case Scheduler.AFFINITY:
            return admit_in_order(place_by_affinity)
        case Scheduler.RANDOM:
            return admit_in_order(RandomPlacement(seed))
        case Scheduler.HIVED:
            return admit_in_order(place_in_cells)
        case Scheduler.MURI:
            return admit_in_groups(place_by_affinity)
