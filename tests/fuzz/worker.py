"""A process that gives files to readers: a line of JSON in for each file, a line of JSON out."""

import json
import os
import sys
from pathlib import Path

from tests.fuzz.readers import problem_of


def _peak_bytes() -> int:
    """Return the most memory that this process has had; the usage that resource tells begins with its parent's."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


def main() -> None:
    """Answer until the input ends. Readers print what they like, but not into the answers."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    sys.stdout = sys.stderr
    for line in sys.stdin:
        case = json.loads(line)
        problem = problem_of(case["reader"], Path(case["file"]), Path(case["trace"]))
        peak_bytes = _peak_bytes()
        answers.write(json.dumps({"problem": problem, "peak_bytes": peak_bytes}) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
