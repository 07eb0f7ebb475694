"""What the fuzzer found: each finding once, with what repeats it."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Finding:
    """A defect.

    Attributes:
        kind: Identifies the defect: two findings of one kind are one defect.
        detail: What was seen, in some lines.
        again: Options of ``python -m tests.fuzz`` that repeat it.
        content: The input, where it is a file.
    """

    kind: str
    detail: str
    again: str
    content: bytes | None = None


@dataclass(slots=True)
class Findings:
    """The findings of a run, each kind once; inputs are kept in a folder."""

    folder: Path
    found: dict[str, Finding] = field(default_factory=dict)

    def add(self, finding: Finding) -> None:
        """Add a finding and print it, unless one of its kind is known."""
        if finding.kind in self.found:
            return
        self.found[finding.kind] = finding
        lines = [f"FOUND {finding.kind}", *(f"    {line}" for line in finding.detail.splitlines()[-40:])]
        if finding.content is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder / f"finding-{len(self.found)}"
            path.write_bytes(finding.content)
            lines.append(f"    input: {path}")
        print(*lines, f"    again: python -m tests.fuzz {finding.again}", sep="\n", flush=True)
