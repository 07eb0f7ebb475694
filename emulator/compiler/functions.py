"""Functions of the generated module."""

import re
from dataclasses import dataclass

TELL = "#: "
"""Start of a line that is a comment until its packets are traced."""


@dataclass(frozen=True)
class Function:
    """A function: name, parameter list and body lines."""

    name: str
    parameters: str
    lines: list[str]

    def source(self) -> str:
        """Return the definition as Python source."""
        body = "\n".join(f"    {line}" for line in self.lines) or "    pass"
        return f"def {self.name}({self.parameters}):\n{body}\n"


def tell(what: str, *arguments: str) -> str:
    """Return the line that tells what happens, where a packet is traced (``emulator.tracing``), and else a comment."""
    return f"{TELL}tell.{what}({', '.join(arguments)})"


def function_name(kind: str, number: int, name: str) -> str:
    """Return a unique name: the number makes it unique within its kind, and the P4 name makes it readable.

    P4 names may contain any character. Two of them may differ only in characters that Python names cannot contain.
    """
    return re.sub(r"\W", "_", f"{kind}_{number}_{name}", flags=re.ASCII)
