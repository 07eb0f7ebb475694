"""Every scheduler by its name."""

from workloads.schedulers.affinity import place_by_affinity
from workloads.schedulers.at_random import RandomPlacement
from workloads.schedulers.hived import place_in_cells
from workloads.schedulers.queue import Admit, admit_in_order
from workloads.schedulers.scheduler_name import Scheduler


def admit_by(scheduler: Scheduler, seed: int) -> Admit:
    """First come, first served, on the GPUs that a scheduler chooses; ``seed`` is that of what it draws."""
    match scheduler:
        case Scheduler.AFFINITY:
            return admit_in_order(place_by_affinity)
        case Scheduler.RANDOM:
            return admit_in_order(RandomPlacement(seed))
        case Scheduler.HIVED:
            return admit_in_order(place_in_cells)
