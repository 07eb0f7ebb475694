"""Names of flow groups, as controllers take them: short, printable and without a slash."""

from collections.abc import Iterable

_MOST = 100


def group_names(islands: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return a name for each pair of a source and a destination island, all different."""
    found: dict[str, None] = {}
    for source, destination in islands:
        name = plain = f"{_plain(source)} to {_plain(destination)}"
        number = 1
        while name in found:
            number += 1
            name = f"{plain} #{number}"
        found[name] = None
    return tuple(found)


def _plain(island: str) -> str:
    return "".join(letter if letter.isprintable() and letter != "/" else "_" for letter in island[:_MOST])
