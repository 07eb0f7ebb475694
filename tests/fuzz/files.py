"""The campaign over file formats: mutated samples go through their readers in a process that may hang or die."""

import json
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.fuzz.findings import Finding, Findings
from tests.fuzz.readers import READERS
from tests.fuzz.samples import Sample
from tests.patience import PATIENCE_S

MOST_MEMORY_BYTES = 3 << 30
"""Of a process that has read any number of files."""
_MINIMISING_S = 20.0
_RARE = {"program": 0.05, "p4info": 0.2, "results": 0.3, "record": 0.5}
"""How often formats are drawn, compared with the others."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a reader has made of a file: the kind and the description of a problem, or None."""

    problem: tuple[str, str] | None
    peak_bytes: int


class Reading:
    """A process with the readers, which is started again whenever it hangs or ends."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None

    def give(self, reader: str, content: bytes, patience_s: float = PATIENCE_S) -> Answer:
        """Give content to a reader."""
        file = self._folder / f"case-{reader}"
        file.write_bytes(content)
        if self._process is None or self._process.poll() is not None:
            self._start()
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        case = {"reader": reader, "file": str(file), "trace": str(self._folder / "trace")}
        process.stdin.write(json.dumps(case) + "\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], patience_s)
        line = process.stdout.readline() if ready else ""
        if not line:
            self.end()
            what = "ended the process" if ready else f"no answer within {patience_s:g} s"
            said = (self._folder / "worker.log").read_text(errors="replace")[-2000:]
            return Answer((f"{reader}: {what}", f"{what}\n{said}"), 0)
        answer = json.loads(line)
        problem = answer["problem"]
        if answer["peak_bytes"] > MOST_MEMORY_BYTES:
            self.end()  # a process that has been so large says nothing of the next file
            problem = problem or (f"{reader}: much memory", f"{answer['peak_bytes']:,} bytes at most")
        return Answer(None if problem is None else (problem[0], problem[1]), answer["peak_bytes"])

    def end(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _start(self) -> None:
        with (self._folder / "worker.log").open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.fuzz.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )


@contextmanager
def reading(folder: Path) -> Iterator[Reading]:
    """A process with the readers while the context lasts."""
    process = Reading(folder)
    try:
        yield process
    finally:
        process.end()


def case(number: int, seed: int, samples: Mapping[str, tuple[Sample, ...]]) -> tuple[str, bytes]:
    """Return the reader and the content of a case; the same for the same seed and number."""
    draws = Random(f"{seed}/files/{number}")
    reader = draws.choices(READERS, [_RARE.get(name, 1.0) for name in READERS])[0]
    return reader, draws.choice(samples[reader]).mutated(draws)


def fuzz_files(
    samples: Mapping[str, tuple[Sample, ...]],
    seed: int,
    process: Reading,
    findings: Findings,
    end_s: float,
    first: int = 0,
) -> int:
    """Go through cases until the time of ``time.monotonic``; return the number of the last."""
    number = first - 1
    while time.monotonic() < end_s:
        number += 1
        run_case(number, samples, seed, process, findings)
    return number


def run_case(
    number: int, samples: Mapping[str, tuple[Sample, ...]], seed: int, process: Reading, findings: Findings
) -> None:
    """Run one case, and keep the smallest content found that has the same problem."""
    reader, content = case(number, seed, samples)
    problem = process.give(reader, content).problem
    if problem is None or problem[0] in findings.found:
        return
    kind, detail = problem
    if "no answer" not in kind:
        content = _minimised(reader, content, kind, process)
    findings.add(Finding(kind, detail, f"--seed {seed} --only files --case {number}", content))


def _minimised(reader: str, content: bytes, kind: str, process: Reading) -> bytes:
    """Remove lines, then bytes, as long as the problem stays the same; no longer than some seconds."""
    end_s = time.monotonic() + _MINIMISING_S
    for separator in (b"\n", b""):
        parts = content.split(separator) if separator else [bytes([octet]) for octet in content]
        size = max(1, len(parts) // 2)
        while size and time.monotonic() < end_s:
            start = 0
            while start < len(parts) and time.monotonic() < end_s:
                fewer = parts[:start] + parts[start + size :]
                found = process.give(reader, separator.join(fewer)).problem
                if found is not None and found[0] == kind:
                    parts = fewer
                else:
                    start += size
            size //= 2
        content = separator.join(parts)
    return content
