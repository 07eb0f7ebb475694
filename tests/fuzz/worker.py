"""A process that gives files to readers: a line of JSON in for each file, a line of JSON out."""

import json
import os
import resource
import sys
from pathlib import Path

from tests.fuzz.readers import problem_of


def main() -> None:
    """Answer until the input ends. Readers print what they like, but not into the answers."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    sys.stdout = sys.stderr
    for line in sys.stdin:
        case = json.loads(line)
        problem = problem_of(case["reader"], Path(case["file"]), Path(case["trace"]))
        peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        answers.write(json.dumps({"problem": problem, "peak_bytes": peak_bytes}) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
