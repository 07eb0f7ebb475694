"""``python -m tests.fuzz --seconds N --seed S``: fuzz every call and every file format, shut in a sandbox."""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.fuzz.findings import Findings
from tests.fuzz.sandbox import SandboxError, shut_in

_FOUND = Path("out") / "fuzz"


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz; returns 0 where nothing is found, 1 where something is, 2 where the sandbox cannot be had."""
    parser = argparse.ArgumentParser("python -m tests.fuzz", description="Fuzz every call and every file format.")
    parser.add_argument("--seconds", type=float, default=300.0, help="time for calls and files together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=("calls", "files"), help="half of it")
    parser.add_argument("--case", type=int, help="of files: one case; of calls: all cases up to it")
    options = parser.parse_args(arguments)
    try:
        shut_in()
    except SandboxError as error:
        print(f"the fuzzer does not run outside its sandbox: {error}", file=sys.stderr)
        return 2
    findings = Findings(_FOUND.absolute())
    parts = (options.only,) if options.only else ("calls", "files")
    with TemporaryDirectory(prefix="fuzz-") as folder:
        os.environ["TMPDIR"] = folder
        for part in parts:
            run = _calls if part == "calls" else _files
            run(Path(folder), options.seed, options.seconds / len(parts), options.case, findings)
    print(f"{len(findings.found)} findings")
    return 1 if findings.found else 0


def _files(folder: Path, seed: int, seconds: float, number: int | None, findings: Findings) -> None:
    from tests.fuzz.files import fuzz_files, reading, run_case
    from tests.fuzz.samples import samples

    known = samples(folder)
    with reading(folder) as process:
        if number is not None:
            run_case(number, known, seed, process, findings)
            return
        last = fuzz_files(known, seed, process, findings, time.monotonic() + seconds)
    print(f"{last + 1:,} files")


def _calls(folder: Path, seed: int, seconds: float, number: int | None, findings: Findings) -> None:
    from tests.fuzz.calls import fuzz_calls

    fuzz_calls(folder, seed, seconds, number, findings)


if __name__ == "__main__":
    sys.exit(main())
