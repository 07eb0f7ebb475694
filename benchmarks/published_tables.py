"""Tables of published training runs, with what they do not say as assumptions."""

from collections.abc import Mapping
from typing import Any

from benchmarks.published_runs import PublishedRun, PublishedTable
from workloads.described.catalogue import PublicModel, public_model

A100 = {"name": "a100", "memory_bytes_per_s": 2.039e12}
H100 = {"name": "h100", "memory_bytes_per_s": 3.35e12}
"""Memory of A100 GPUs with 80 GB, and of H100 SXM, from data sheets."""
A100_NVLINK_GBPS, H100_NVLINK_GBPS = 1920.0, 2966.4
"""What NCCL reckons with: 12 NVLinks of 20.0 GB/s, 18 of 20.6 GB/s (``src/graph/topo.h``)."""


def gpt(
    name: str, *, heads: int, width: int, layers: int, tokens: int = 2048, vocabulary: int = 51200, **attention: Any
) -> dict[str, Any]:
    """Return a GPT model as Megatron-LM has it."""
    block = [
        {"type": "norm", "bias": True},
        {"type": "attention", "heads": heads, "bias": True, **attention},
        {"type": "norm", "bias": True},
        {"type": "mlp", "hidden": 4 * width, "bias": True},
    ]
    return {
        "name": name,
        "tokens": tokens,
        "layers": [
            {"type": "embedding", "vocabulary": vocabulary, "width": width, "positions": tokens},
            {"type": "block", "repeat": layers, "layers": block},
            {"type": "norm", "bias": True},
            {"type": "linear", "name": "head", "outputs": vocabulary, "tied": True},
        ],
    }


def interleaved(layers: int, pipeline: int, chunks: int) -> dict[str, Any]:
    """Return the keys of an interleaved pipeline; of a plain one where chunks would not divide its layers."""
    divides = pipeline > 1 and chunks > 1 and layers % (pipeline * chunks) == 0
    return {"pipeline": pipeline, **({"schedule": "interleaved", "chunks": chunks} if divides else {})}


_STORED = {"causal": False, "stored_scores": True}


def _megatron(
    name: str, heads: int, width: int, layers: int, tensor: int, pipeline: int, num_gpus: int, batch: int, flops: float
) -> PublishedRun:
    """Return a row; the iteration time is that of the paper's formula of FLOPs (equation 3)."""
    of_iteration = 96 * batch * 2048 * layers * width**2
    of_iteration *= 1 + 2048 / (6 * width) + 51200 / (16 * layers * width)
    layers_of_stage = layers // pipeline
    chunks = next((number for number in (2, 3) if layers_of_stage % number == 0), 1)
    workload: Mapping[str, Any] = {
        "model": gpt(name, heads=heads, width=width, layers=layers, **_STORED),
        "tensor": tensor,
        "batch": batch,
        "recompute": "full",
        "all_reduce": "ring",
        "nvlink_gbps": A100_NVLINK_GBPS,
        **interleaved(layers, pipeline, chunks),
    }
    return PublishedRun(name, num_gpus, of_iteration / (num_gpus * flops), workload)


MEGATRON = PublishedTable(
    "megatron",
    "Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters, SC 2021, table 1",
    A100,
    8 * 200e9,
    "39.1 B",
    (
        "micro-batches of one sample, everything recomputed, pipelines interleaved in the fewest chunks that divide",
        "scores of attention are stored; 80 GB GPUs with 2.039 TB/s",
        "eight NICs of 200 Gbit/s a host (section 5), which a transfer has for itself",
        "16-bit gradients in a ring of all replicas after the backward passes; nothing else overlaps either",
    ),
    (
        _megatron("1.7 B", 24, 2304, 24, 1, 1, 32, 512, 137e12),
        _megatron("3.6 B", 32, 3072, 30, 2, 1, 64, 512, 138e12),
        _megatron("7.5 B", 32, 4096, 36, 4, 1, 128, 512, 142e12),
        _megatron("18.4 B", 48, 6144, 40, 8, 1, 256, 1024, 135e12),
        _megatron("39.1 B", 64, 8192, 48, 8, 2, 512, 1536, 138e12),
        _megatron("76.1 B", 80, 10240, 60, 8, 4, 1024, 1792, 140e12),
        _megatron("145.6 B", 96, 12288, 80, 8, 8, 1536, 2304, 148e12),
        _megatron("310.1 B", 128, 16384, 96, 8, 16, 1920, 2160, 155e12),
        _megatron("529.6 B", 128, 20480, 105, 8, 35, 2520, 2520, 163e12),
        _megatron("1008 B", 160, 25600, 128, 8, 64, 3072, 3072, 163e12),
    ),
)


def _korthikanti(
    name: str,
    shape: tuple[int, int, int],
    pipeline: int,
    batch: int,
    micro_batch: int,
    full_s: float,
    selective_s: float,
) -> tuple[PublishedRun, PublishedRun]:
    heads, width, layers = shape
    common: Mapping[str, Any] = {
        "model": gpt(name, heads=heads, width=width, layers=layers, **_STORED),
        "tensor": 8,
        "batch": batch,
        "micro_batch": micro_batch,
        "nvlink_gbps": A100_NVLINK_GBPS,
        **interleaved(layers, pipeline, 3),
    }
    num_gpus = 8 * pipeline
    return (
        PublishedRun(f"{name} full", num_gpus, full_s, {**common, "recompute": "full"}),
        PublishedRun(
            f"{name} selective", num_gpus, selective_s, {**common, "recompute": "selective", "sequence": True}
        ),
    )


RECOMPUTATION = PublishedTable(
    "recomputation",
    "Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models, MLSys 2023, tables 3 and 5",
    A100,
    8 * 200e9,
    "175 B full",
    (
        "everything recomputed without sequence parallelism, or scores alone with it",
        "scores of attention are stored; 80 GB GPUs with 2.039 TB/s",
        "eight NICs of 200 Gbit/s a host, which a transfer has for itself",
        "no data parallelism; three chunks for 175 B and 530 B, one for 1 T",
    ),
    (
        *_korthikanti("22 B", (64, 6144, 48), 1, 4, 4, 1.42, 1.10),
        *_korthikanti("175 B", (96, 12288, 96), 8, 64, 1, 18.13, 13.75),
        *_korthikanti("530 B", (128, 20480, 105), 35, 280, 1, 49.05, 37.83),
        *_korthikanti("1 T", (160, 25600, 128), 64, 512, 1, 94.42, 71.49),
    ),
)


def _llama(name: str, num_gpus: int, context: int, tokens: int, batch_of_replica: int, tflops: float) -> PublishedRun:
    """Return a row; the iteration time is that of the model's FLOPs at the printed rate."""
    model = public_model(PublicModel.LLAMA_3_405B).model_copy(update={"tokens": tokens})
    model = type(model).model_validate(model.model_dump(exclude_unset=True))
    batch = batch_of_replica * num_gpus // (8 * 16 * context)
    workload: Mapping[str, Any] = {
        "model": model,
        "tensor": 8,
        "context": context,
        "pipeline": 16,
        "schedule": "interleaved",
        "chunks": 8,
        "order": "tp-cp-pp-dp",
        "batch": batch,
        "sequence": True,
        "nvlink_gbps": H100_NVLINK_GBPS,
    }
    return PublishedRun(name, num_gpus, 3 * model.forward_flops * batch / (num_gpus * tflops * 1e12), workload)


LLAMA = PublishedTable(
    "llama_3",
    "The Llama 3 Herd of Models, arXiv:2407.21783, table 4",
    H100,
    8 * 400e9,
    "8,192 GPUs",
    (
        "micro-batches of one sample, nothing recomputed, sequence parallelism",
        "chunks of one layer (section 3.3.2: the first has only the embedding, the last only the head)",
        "FLOPs count causal attention as half, both published and predicted; scores are not stored",
        "eight NICs of 400 Gbit/s a host, which a transfer has for itself; FSDP hides behind computation",
        "eight replicas in the third row, as its degrees give",
    ),
    (
        _llama("8,192 GPUs", 8192, 1, 8192, 32, 430),
        _llama("16,384 GPUs", 16384, 1, 8192, 16, 400),
        _llama("16,384 GPUs, 131,072 tokens", 16384, 16, 131072, 16, 380),
    ),
    overlap=True,
)


def _megascale(num_gpus: int, batch: int, published_s: float, workload: Mapping[str, Any]) -> PublishedRun:
    model = gpt("175 B", heads=128, width=12288, layers=96, vocabulary=64000)
    common: Mapping[str, Any] = {
        "model": {**model, "gradient_bytes": 4},
        "tensor": 8,
        "batch": batch,
        "sequence": True,
        "all_reduce": "ring",
        "nvlink_gbps": A100_NVLINK_GBPS,
        **interleaved(96, 8, 6),
    }
    return PublishedRun(f"{num_gpus:,} GPUs", num_gpus, published_s, {**common, **workload})


_MEGASCALE_SOURCE = "Jiang et al., MegaScale, NSDI 2024, tables 1 and 2"
MEGASCALE_BASELINE = PublishedTable(
    "megascale_baseline",
    f"{_MEGASCALE_SOURCE}, Megatron-LM",
    A100,
    8 * 200e9,
    "512 GPUs",
    (
        "micro-batches of one sample, nothing recomputed, sequence parallelism, scores not stored",
        "80 GB GPUs with 2.039 TB/s, eight NICs of 200 Gbit/s a host (section 3.6), which a transfer has for itself",
        "32-bit gradients in a ring of all replicas after the backward passes; nothing else overlaps either",
    ),
    tuple(
        _megascale(num_gpus, batch, published_s, {})
        for num_gpus, batch, published_s in (
            (256, 768, 40.0),
            (512, 768, 21.2),
            (768, 768, 15.2),
            (1024, 768, 11.9),
            (3072, 6144, 29.02),
            (6144, 6144, 14.78),
            (8192, 6144, 12.24),
            (12288, 6144, 8.57),
        )
    ),
)

MEGASCALE = PublishedTable(
    "megascale",
    f"{_MEGASCALE_SOURCE}, MegaScale",
    A100,
    8 * 200e9,
    "512 GPUs",
    (
        "micro-batches of one sample, nothing recomputed, sequence parallelism, scores not stored",
        "80 GB GPUs with 2.039 TB/s, eight NICs of 200 Gbit/s a host (section 3.6), which a transfer has for itself",
        "gradients and what is sent inside hosts hide behind computation (section 3.2)",
    ),
    tuple(
        _megascale(num_gpus, batch, published_s, {"nvlink_gbps": 1e9})
        for num_gpus, batch, published_s in (
            (256, 768, 32.0),
            (512, 768, 16.5),
            (768, 768, 11.5),
            (1024, 768, 8.9),
            (3072, 6144, 23.66),
            (6144, 6144, 12.21),
            (8192, 6144, 9.56),
            (12288, 6144, 6.34),
        )
    ),
    overlap=True,
)

TABLES = (MEGATRON, LLAMA, RECOMPUTATION, MEGASCALE_BASELINE, MEGASCALE)
