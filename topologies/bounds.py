"""Lower bounds of numbers in files, below which later arithmetic would overflow."""

from pydantic import AfterValidator


def at_least(least: float) -> AfterValidator:
    """Return the validator of a number that is at least this, or 0 where its type allows that."""

    def check(number: float) -> float:
        if 0 < number < least:
            raise ValueError(f"expected at least {least:g}")
        return number

    return AfterValidator(check)
