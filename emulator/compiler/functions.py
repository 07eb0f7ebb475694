"""A function of the generated module."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Function:
    """Name, parameter list and body lines."""

    name: str
    parameters: str
    lines: list[str]

    def source(self) -> str:
        """The definition as Python source."""
        body = "\n".join(f"    {line}" for line in self.lines) or "    pass"
        return f"@njit(**INNER_OPTIONS)\ndef {self.name}({self.parameters}):\n{body}\n"


def function_name(kind: str, number: int, name: str) -> str:
    """A name that no other function of its kind has, as the number is its own; the P4 name is there to be read.

    P4 names may hold any character, and two of them may differ only in what cannot stand in a function's name.
    """
    return re.sub(r"\W", "_", f"{kind}_{number}_{name}", flags=re.ASCII)
