"""Numbers of ports that their names tell, as ``Ethernet1/7`` is port 7 where ``Ethernet1/{number}`` is the rule."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

_NUMBER = "{number}"


@dataclass(frozen=True, slots=True)
class PortNames:
    """Rules for names with the number in them; a name that is a number needs none."""

    patterns: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def of(cls, rules: Iterable[str]) -> Self:
        """Return the rules. Raises ValueError where one does not have ``{number}`` once."""
        patterns = []
        for rule in rules:
            before, _, after = rule.partition(_NUMBER)
            if rule.count(_NUMBER) != 1:
                raise ValueError(f"expected names of ports with {_NUMBER} once, as Ethernet1/{_NUMBER}: {rule!r}")
            patterns.append(re.compile(rf"{re.escape(before)}(\d{{1,9}}){re.escape(after)}", re.ASCII))
        return cls(tuple(patterns))

    def number(self, name: str) -> int | None:
        """Return the number of a port, by the first rule that its name follows; None where none says it."""
        if name.isascii() and name.isdecimal() and len(name) < 10:
            return int(name)
        return next((int(match[1]) for pattern in self.patterns if (match := pattern.fullmatch(name))), None)
