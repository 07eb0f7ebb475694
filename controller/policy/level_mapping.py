"""From the ranks of jobs that send to levels, where the links they share are not looked at."""


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
