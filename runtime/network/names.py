"""Names of jobs and flow groups, as controllers take them: short, printable and without a slash."""

from collections.abc import Iterable

_MOST = 100


def group_names(islands: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return a name for each pair of a source and a destination island, all different."""
    found: dict[str, None] = {}
    for source, destination in islands:
        name = plain = f"{plain_name(source[:_MOST])} to {plain_name(destination[:_MOST])}"
        number = 1
        while name in found:
            number += 1
            name = f"{plain} #{number}"
        found[name] = None
    return tuple(found)


def plain_name(text: str) -> str:
    """Return a text in which ``_`` stands for each letter that no name may have."""
    return "".join(letter if letter.isprintable() and letter != "/" else "_" for letter in text)
