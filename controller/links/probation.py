"""When a cable that probes have ceased to come by is tried again: nothing that avoids it would ever find it mended."""

TRIAL_S = 10.0
"""In which hosts find a path that is there again, and that one is not."""
_FEWEST_TRIALS = 32
"""One in so many of these times is a cable's at least."""


def trial(since_s: float, now_s: float) -> tuple[bool, float]:
    """Whether a cable that has been silent since then is on trial, and until when that stays so.

    It is left alone for ten seconds at least, and tried for ten, ever less often. These times are parts of a calendar
    that all cables have: those that are only of use together are tried together, whenever each fell silent.
    """
    first, now = int(since_s // TRIAL_S), int(now_s // TRIAL_S)
    is_on_trial, following = _is_on_trial(first, now), now + 1
    while _is_on_trial(first, following) == is_on_trial:
        following += 1
    return is_on_trial, following * TRIAL_S


def _is_on_trial(first: int, now: int) -> bool:
    """Whether one that fell silent in the ten seconds ``first`` is tried in those ``now``."""
    age = now - first
    return age > 1 and now % min(1 << (age.bit_length() - 1), _FEWEST_TRIALS) == 0
