"""When a cable that probes have ceased to come by is tried again: nothing that avoids it would ever find it mended."""

_FIRST_HOLD_S = 10.0
_LONGEST_HOLD_S = 300.0
_TRIAL_S = 10.0
"""In which hosts find a path that is there again, and that one is not."""


def trial(since_s: float, now_s: float) -> tuple[bool, float]:
    """Whether a cable that has been silent since then is on trial, and until when that stays so.

    It is left alone for ten seconds, and then for twice as long each time, up to five minutes.
    """
    until_s, hold_s, is_on_trial = since_s + _FIRST_HOLD_S, _FIRST_HOLD_S, False
    while until_s <= now_s:
        is_on_trial = not is_on_trial
        if not is_on_trial:
            hold_s = min(2 * hold_s, _LONGEST_HOLD_S)
        until_s += _TRIAL_S if is_on_trial else hold_s
    return is_on_trial, until_s
