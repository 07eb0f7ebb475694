"""A function of the generated module."""

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
