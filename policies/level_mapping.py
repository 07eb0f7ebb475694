"""From the ranks of jobs that send to levels, where the links they share are not looked at."""

from collections.abc import Sequence


def own_levels(num_jobs: int, num_levels: int) -> list[int]:
    """Levels by rank: one each from the top, and the lowest for all that are left.

    With eight levels ``max(7 - rank, 0)``, as in Sincronia's implementation.
    """
    return [max(num_levels - 1 - rank, 0) for rank in range(num_jobs)]


def equal_classes(num_jobs: int, num_levels: int) -> list[int]:
    """Levels by rank: classes of neighbouring ranks that differ by at most one job, from the top, without a gap.

    So Crux, figure 13, has Varys compress its ranks.
    """
    num_classes = min(num_jobs, num_levels)
    return [num_levels - 1 - rank * num_classes // num_jobs for rank in range(num_jobs)]


def bands(num_stages: Sequence[int], num_levels: int) -> list[int]:
    """How many levels each job gets, fewer jobs than levels: one, and of the rest whoever has most stages a level.

    No job gets more levels than it has stages; of jobs that tie the first comes first.
    """
    sizes = [1] * len(num_stages)
    for _ in range(num_levels - len(num_stages)):
        wanting = [job for job, (stages, size) in enumerate(zip(num_stages, sizes, strict=True)) if stages > size]
        if not wanting:
            break
        sizes[max(wanting, key=lambda job: num_stages[job] / sizes[job])] += 1
    return sizes
