"""Measures NetSense against its budgets: ``python benchmarks/netsense.py [--folds 5] [--bucket-mib 25] [--json]``.

It runs ``trainyard evaluate netsense`` (``experiments/papers/netsense.py``): virtual time, with small models on real
data. Keys are of ResNet18 with steps of 0.25 s and 0.6 s, the worse of both, and of the GPU's table of codec times.

- ``throughput_share_200``, ``_500``, ``_800``: throughput of ``budget`` over that without communication, by Mbit/s.
- ``accuracy_difference_points_worst``: final test accuracy of ``budget`` minus dense's, the mean of paired differences
  over the folds, of the worst task and rate.
- ``time_to_accuracy_ratio_worst``: time to dense's final accuracy less 0.5 point over that of the best baseline at the
  same rate; ``time_to_accuracy_ratio_200``: at 200 Mbit/s over the better of the paper's two baselines.
- ``scenario2_share``, ``scenario3_share``: throughput over the best fixed configuration in hindsight that is as
  accurate, of the worst condition.
- ``budget_used``: share of the time free for communication that steps use which compress.
- ``overhead_10_gbps``: by how much of a step ``budget`` is longer than plain DDP at 10 Gbit/s.
- ``joint_mean``, ``joint_worst``: of mixes of two jobs on one link of which one can compress, the sum of step time over
  alone with the controller over that where each decides alone.
- ``codec_momentum_s``, ``codec_s``, ``wire_bytes_over_entropy``: as ``benchmarks/compression_codecs.py`` has them.

Times that are never reached are null; ``reasons`` says which.
"""

import argparse
import json
import math
import sys
from pathlib import Path

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.budgets import Budget, budget_rows, print_budget_rows
from benchmarks.compression_codecs import codec_figures, made_gradients
from benchmarks.provenance import provenance
from experiments.compression.numbers import finite
from experiments.papers.collector import Collector
from experiments.papers.netsense import FOLDS, Measured, NetSenseEvaluation, numbers_of
from experiments.sweeps.processes import Failure, num_cores, on_processes

BUDGETS = (
    Budget("throughput_share_200", 0.90, is_least=True),
    Budget("throughput_share_500", 0.95, is_least=True),
    Budget("throughput_share_800", 0.97, is_least=True),
    Budget("accuracy_difference_points_worst", -0.5, is_least=True),
    Budget("time_to_accuracy_ratio_worst", 1.05, is_least=False),
    Budget("time_to_accuracy_ratio_200", 0.2, is_least=False),
    Budget("scenario2_share", 0.95, is_least=True),
    Budget("scenario3_share", 0.90, is_least=True),
    Budget("budget_used", 0.80, is_least=True),
    Budget("overhead_10_gbps", 0.02, is_least=False),
    Budget("joint_mean", 0.9, is_least=False),
    Budget("joint_worst", 1.01, is_least=False),
    Budget("codec_momentum_s", 0.080, is_least=False),
    Budget("codec_s", 0.060, is_least=False),
    Budget("wire_bytes_over_entropy", 1.05, is_least=False),
)
CODEC_KEYS = ("codec_momentum_s", "codec_s", "wire_bytes_over_entropy")
CODEC_ROUNDS = 15


def measure(evaluation: NetSenseEvaluation, workers: int) -> list[Measured]:
    """Measure all cases. Raises RuntimeError where one fails."""
    evaluation.notices()
    cases = evaluation.cases()
    collector = Collector(evaluation, cases)
    measured: list[Measured] = []
    for case, answer in on_processes(evaluation.measure, cases, workers):
        if isinstance(answer, Failure):
            raise RuntimeError(f"{case}: {answer.reason}")
        measured += collector.add(case, answer)
        print(f"{len(measured)} measured, {case}", file=sys.stderr)
    return measured


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--folds", type=int, default=FOLDS)
    parser.add_argument("--bucket-mib", type=int, default=25)
    parser.add_argument("--workers", type=int, default=num_cores())
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    evaluation = NetSenseEvaluation(steps=arguments.steps, folds=arguments.folds, bucket_mib=arguments.bucket_mib)
    codecs = codec_figures(made_gradients(), CODEC_ROUNDS)
    keys = {
        **numbers_of(measure(evaluation, arguments.workers)).keys(),
        **{key: float(str(codecs[key])) for key in CODEC_KEYS},
    }
    rows = budget_rows(BUDGETS, keys)
    if arguments.json:
        verdicts = {str(row["figure"]): row["verdict"] for row in rows}
        never = {key: "never reached" for key, value in keys.items() if value == math.inf}
        figures = {**finite(keys), "verdicts": verdicts, "reasons": never}
        print(json.dumps(figures | provenance(("numpy", "numba", "torch"))))
    else:
        print_budget_rows(rows)


if __name__ == "__main__":
    main()
