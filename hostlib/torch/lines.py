"""Lines that the first rank prints, for whoever has started the job."""

from collections.abc import Mapping, Sequence

from hostlib.torch.iterations import Iteration


def iteration_line(number: int, iteration: Iteration, now_ns: int) -> str:
    """Return how long an iteration took, and how long ago it has ended."""
    took_s, ago_s = (iteration.end_ns - iteration.begin_ns) / 1e9, (now_ns - iteration.end_ns) / 1e9
    return f"trainyard: iteration {number} took {took_s:.4f} s, {ago_s:.4f} s ago"


def registered_line(job: str, controllers: Sequence[str], levels: Mapping[str, int]) -> str:
    """Return at which levels the first rank sends, and where to ask why."""
    sent = ", ".join(f"{group} at level {level}" for group, level in levels.items())
    return (
        f"job {job} is registered with {', '.join(controllers)}: "
        f"{f'{sent} (7 is the most urgent)' if sent else 'the first rank sends nothing'}; "
        f"why: trainyard explain {job} --controller {controllers[0]}"
    )
