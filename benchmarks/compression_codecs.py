"""Measures gradient codecs on one core: ``python benchmarks/compression_codecs.py [--json] [--rounds N]``.

The gradients are 11,689,512 numbers in fp32, as many as ResNet18 has, with heavy tails, and of layers that differ in
scale; eight ranks have one each, which they draw with ``SEED``. 1 % of them are sent. Needs `make torch`. Times are
processor time of the one thread, the best of the rounds: what others do on the machine's cores delays a step, but is
none of its work. Real time is beside the figures that have a budget.

- ``codec_s``, ``codec_momentum_s``: encode one payload and decode eight into one vector, without momentum and with, in
  the slowest precision; ``codec_s_by_precision`` and ``codec_momentum_s_by_precision`` have each, and
  ``codec_real_s_by_precision`` and ``codec_momentum_real_s_by_precision`` the best real time.
- ``copy_s``: copying the gradients once; ``copy_bytes_per_s``: what that reads and writes in a second.
- ``wire_bytes_over_entropy``: bytes of a payload over log2 C(n, k) / 8 + the bytes of its values, in the worst
  precision; ``wire_bytes`` in each.
- ``dense_encode_s``, ``dense_decode_s``: a dense payload, in each precision.
- ``elias_fano``, ``golomb_rice``: encoding and decoding the indices alone, and their bits over the entropy;
  ``at_worst`` is what a payload must reserve where its size is to be known before.
- ``import_compiling_s``, ``import_s``: importing numba and the codecs after PyTorch, for the first time on a machine,
  and again.
"""

import argparse
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

# Run as a file, it finds the packages beside it.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import golomb_rice
from benchmarks.budgets import Budget, budget_rows, print_budget_rows
from benchmarks.provenance import print_figures, provenance
from hostlib.compression.choice import Precision
from hostlib.compression.codecs import dense, indices, sparse, values

ROOT = Path(__file__).resolve().parent.parent
SEED = 1
ELEMENTS = 11_689_512
COUNT = ELEMENTS // 100
RANKS = 8
LAYERS = 62
MOMENTUM = 0.9
WARM_STEPS = 3

Figures = dict[str, object]

BUDGETS = (
    Budget("codec_momentum_s", 0.080, is_least=False),
    Budget("codec_s", 0.060, is_least=False),
    Budget("wire_bytes_over_entropy", 1.05, is_least=False),
)


def codec_figures(gradients: list[torch.Tensor], rounds: int) -> Figures:
    """Measure what a step takes, and the size of its payload; the best of so many rounds."""
    return {**_sparse(gradients, rounds), **_sizes()}


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--rounds", type=int, default=15, help="of which the best counts (default: 15)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    gradients = made_gradients()
    figures: Figures = {
        **_copying(gradients[0], options.rounds),
        **codec_figures(gradients, options.rounds),
        **_dense(gradients[0], options.rounds),
        **_index_codes(options.rounds),
        **_imports(),
    }
    rows = budget_rows(BUDGETS, figures)
    figures |= {"budgets": rows, "seed": SEED, "rounds": options.rounds, **provenance(("numba", "numpy", "torch"))}
    print_figures(figures, as_json=options.json)
    if not options.json:
        print_budget_rows(rows)


def made_gradients() -> list[torch.Tensor]:
    """Return one for each rank, drawn by their seed."""
    return [_gradient(rank) for rank in range(RANKS)]


def _gradient(rank: int) -> torch.Tensor:
    random = np.random.default_rng((SEED, rank))
    scales = np.exp(random.normal(-7, 1.5, LAYERS)).astype(np.float32)
    gradient = random.standard_normal(ELEMENTS, np.float32) * np.repeat(scales, -(-ELEMENTS // LAYERS))[:ELEMENTS]
    gradient /= np.maximum(random.random(ELEMENTS, np.float32), np.float32(1e-3))  # the tails
    return torch.from_numpy(gradient)


def _best_s(measured: Callable[[], object], rounds: int, clock: Callable[[], float] = time.thread_time) -> float:
    times_s = []
    for _ in range(rounds):
        begin_s = clock()
        measured()
        times_s.append(clock() - begin_s)
    return min(times_s)


def _copying(gradient: torch.Tensor, rounds: int) -> Figures:
    copy = torch.empty_like(gradient)
    copy_s = _best_s(lambda: copy.copy_(gradient), rounds)
    return {"copy_s": copy_s, "copy_bytes_per_s": 2 * gradient.nbytes / copy_s}


def _sparse(gradients: list[torch.Tensor], rounds: int) -> Figures:
    figures: Figures = {}
    for name, momentum in (("codec", 0.0), ("codec_momentum", MOMENTUM)):
        processor_s, real_s = {}, {}
        for precision in Precision:
            step = _step(gradients, precision, momentum)
            processor_s[precision.value] = _best_s(step, rounds)
            real_s[precision.value] = _best_s(step, rounds, time.perf_counter)
        figures[f"{name}_s"] = max(processor_s.values())
        figures[f"{name}_s_by_precision"] = processor_s
        figures[f"{name}_real_s_by_precision"] = real_s
    return figures


def _step(gradients: list[torch.Tensor], precision: Precision, momentum: float) -> Callable[[], None]:
    """Return what a rank does in a step, once the residual is as large as it gets."""
    payloads = [sparse.encode(gradient.clone(), COUNT, precision, seed=rank) for rank, gradient in enumerate(gradients)]
    residual, total = torch.zeros(ELEMENTS), torch.zeros(ELEMENTS)
    velocity = torch.zeros(ELEMENTS) if momentum else None

    def step() -> None:
        payloads[0] = sparse.encode(
            residual, COUNT, precision, gradient=gradients[0], velocity=velocity, momentum=momentum, into=payloads[0]
        )
        for received in payloads:
            sparse.decode_add(received, total)

    for _ in range(WARM_STEPS):
        step()
    return step


def _entropy_bits(elements: int, count: int) -> float:
    nats = math.lgamma(elements + 1) - math.lgamma(count + 1) - math.lgamma(elements - count + 1)
    return nats / math.log(2)


def _sizes() -> Figures:
    wire_bytes = {precision: sparse.wire_bytes(ELEMENTS, COUNT, precision) for precision in Precision}
    indices_bytes = _entropy_bits(ELEMENTS, COUNT) / 8
    over = {
        precision: size_bytes / (indices_bytes + values.size_bytes(COUNT, precision))
        for precision, size_bytes in wire_bytes.items()
    }
    return {
        "wire_bytes": {precision.value: size_bytes for precision, size_bytes in wire_bytes.items()},
        "wire_bytes_over_entropy": max(over.values()),
    }


def _dense(gradient: torch.Tensor, rounds: int) -> Figures:
    encode_s, decode_s = {}, {}
    for precision in Precision:
        payload, unsent, total = dense.encode(gradient, precision), torch.empty(ELEMENTS), torch.zeros(ELEMENTS)
        encode_s[precision.value] = _best_s(
            _call(dense.encode, gradient, precision, unsent=unsent, into=payload), rounds
        )
        decode_s[precision.value] = _best_s(_call(dense.decode_add, payload, total), rounds)
    return {"dense_encode_s": encode_s, "dense_decode_s": decode_s}


def _call(function: Callable[..., object], *arguments: object, **options: object) -> Callable[[], object]:
    return lambda: function(*arguments, **options)


def _index_codes(rounds: int) -> Figures:
    random = np.random.default_rng(SEED)
    found = np.sort(random.choice(ELEMENTS, COUNT, replace=False)).astype(np.int32)
    entropy_bits = _entropy_bits(ELEMENTS, COUNT)
    words = np.zeros(indices.size_words(ELEMENTS, COUNT), np.uint64)
    bits = golomb_rice.best_bits(ELEMENTS, COUNT)
    rice = np.zeros(golomb_rice.words_at_worst(ELEMENTS, COUNT, bits), np.uint64)
    rice_bits = golomb_rice.encode(found, bits, rice)
    decoded = np.empty(COUNT, np.int32)
    return {
        "elias_fano": {
            "encode_s": _best_s(lambda: indices.encode(found, ELEMENTS, words), rounds),
            "decode_s": _best_s(lambda: indices.decode(words, COUNT, ELEMENTS), rounds),
            "bits_over_entropy": 64 * len(words) / entropy_bits,
            "at_worst": 64 * len(words) / entropy_bits,
        },
        "golomb_rice": {
            "encode_s": _best_s(lambda: golomb_rice.encode(found, bits, rice), rounds),
            "decode_s": _best_s(lambda: golomb_rice.decode(rice, bits, ELEMENTS, decoded), rounds),
            "bits_over_entropy": rice_bits / entropy_bits,
            "at_worst": 64 * len(rice) / entropy_bits,
        },
    }


def _imports() -> Figures:
    with _empty_cache() as environment:
        return {name: _import_s(environment) for name in ("import_compiling_s", "import_s")}


@contextmanager
def _empty_cache() -> Iterator[dict[str, str]]:
    with tempfile.TemporaryDirectory() as folder:
        yield os.environ | {"NUMBA_CACHE_DIR": folder}


def _import_s(environment: dict[str, str]) -> float:
    code = (
        "import time, torch; begin_s = time.process_time(); import hostlib.compression.codecs.sparse; "
        "print(time.process_time() - begin_s)"
    )
    command = [sys.executable, "-c", code]
    return float(subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=True).stdout)


if __name__ == "__main__":
    main()
