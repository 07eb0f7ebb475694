"""Every scheduler by its name."""

from workloads.schedulers.affinity import place_by_affinity
from workloads.schedulers.at_random import RandomPlacement
from workloads.schedulers.hived import place_in_cells
from workloads.schedulers.queue import Admit, admit_in_groups, admit_in_order
from workloads.schedulers.scheduler_name import Scheduler


def admit_by(scheduler: Scheduler, seed: int) -> Admit:
    """Who begins where, as a scheduler has it; ``seed`` is that of what it draws.

    Muri, which says nothing of places, has its groups placed by affinity.
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
