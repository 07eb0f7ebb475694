"""Jobs as they are: models by their layers against the reports of their authors.

    python benchmarks/jobs.py --json

Needs no accelerator and no network, and takes a second.
"""

import argparse
import sys
from pathlib import Path

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.provenance import print_figures, provenance
from benchmarks.published_models import errors, llama_error, worst_error

BUDGET = 0.01
"""The largest relative error of parameters and FLOPs."""


def main() -> int:
    """Print the figures; return 1 where one is over its budget."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    figures: dict[str, object] = {
        "llama_flops_error": llama_error(),
        "published_counts_error": worst_error(),
        "published_counts": list(errors()),
        **provenance(("trainyard", "pydantic")),
    }
    print_figures(figures, as_json=arguments.json)
    return int(worst_error() > BUDGET)


if __name__ == "__main__":
    sys.exit(main())
