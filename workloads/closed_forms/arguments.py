"""What counts and durations may be."""

import math


def check_count(name: str, count: int, least: int = 1) -> None:
    """Raise ValueError, naming it, for a count that is too small."""
    if count < least:
        raise ValueError(f"{name} must be at least {least}, not {count}")


def check_seconds(name: str, *seconds: float) -> None:
    """Raise ValueError, naming it, for a duration that is negative or not finite."""
    for value in seconds:
        if not 0 <= value < math.inf:
            raise ValueError(f"{name} must be finite and not negative, not {value}")
