"""Chakra traces of training iterations, for comparisons with simulators that read them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workloads.chakra.wire import VERSION, CollectiveType, Metadata, Node, NodeType, framed

FORWARD_MICROS, BACKWARD_MICROS, STEP_MICROS = 500, 1000, 200
BUCKET_BYTES, ACTIVATION_BYTES = 32 << 20, 8 << 20
PEAK_TFLOPS, MEMORY_GB_PER_S = 900, 1600
"""Of the GPUs that the trace without durations is for."""


def write_data_parallel(folder: Path, ranks: int, layers: int = 8) -> None:
    """Write an iteration of data parallelism: a gradient is reduced while layers before it are computed."""
    rank = _Rank()
    for _ in range(layers):
        rank.compute(FORWARD_MICROS)
    reduced = []
    for _ in range(layers):
        reduced.append(rank.collective(CollectiveType.ALL_REDUCE, BUCKET_BYTES, rank.compute(BACKWARD_MICROS)))
    rank.compute(STEP_MICROS, *reduced)
    _write(folder, [rank] * ranks)


def write_tensor_parallel(folder: Path, ranks: int, layers: int = 8) -> None:
    """Write an iteration of tensor parallelism: each layer waits for the activations of the layer before it."""
    rank = _Rank()
    reduced: tuple[int, ...] = ()
    for micros in [FORWARD_MICROS] * layers + [BACKWARD_MICROS] * layers:
        reduced = (rank.collective(CollectiveType.ALL_REDUCE, ACTIVATION_BYTES, rank.compute(micros, *reduced)),)
    rank.compute(STEP_MICROS, *reduced)
    _write(folder, [rank] * ranks)


def write_sharded(folder: Path, ranks: int, layers: int = 8) -> None:
    """Write an iteration of sharded parallelism: parameters are gathered before use, gradients are scattered."""
    rank = _Rank()
    shard = BUCKET_BYTES // ranks
    computed: tuple[int, ...] = ()
    for micros in (FORWARD_MICROS, BACKWARD_MICROS):
        for _ in range(layers):
            gathered = rank.collective(CollectiveType.ALL_GATHER, shard, *computed)
            computed = (rank.compute(micros, gathered),)
            if micros == BACKWARD_MICROS:
                rank.collective(CollectiveType.REDUCE_SCATTER, BUCKET_BYTES, *computed)
    rank.compute(STEP_MICROS, *range(1, rank.last + 1))
    _write(folder, [rank] * ranks)


def write_pipeline(folder: Path, ranks: int, micro_batches: int = 8) -> None:
    """Write an iteration of a pipeline (GPipe): all micro-batches forward, then all backward."""
    stages = []
    for stage in range(ranks):
        rank = _Rank()
        forward = []
        for batch in range(micro_batches):
            got = [rank.receive(stage - 1, batch)] if stage > 0 else []
            forward.append(rank.compute(FORWARD_MICROS, *got))
            if stage < ranks - 1:
                rank.send(stage + 1, batch, forward[-1])
        for batch in range(micro_batches):
            got = [rank.receive(stage + 1, micro_batches + batch)] if stage < ranks - 1 else []
            done = rank.compute(BACKWARD_MICROS, forward[batch], *got)
            if stage > 0:
                rank.send(stage - 1, micro_batches + batch, done)
        rank.compute(STEP_MICROS, done)
        stages.append(rank)
    _write(folder, stages)


def write_by_operations(folder: Path, ranks: int, layers: int = 8) -> None:
    """Write an iteration of data parallelism by operations and bytes: every second layer is bound by its memory."""
    rank = _Rank()
    reduced = []
    for layer in range(2 * layers):
        computed = rank.operate(450 * 10**9, (100 if layer % 2 else 1600) * 10**6)
        if layer >= layers:
            reduced.append(rank.collective(CollectiveType.ALL_REDUCE, BUCKET_BYTES, computed))
    rank.operate(9 * 10**9, 160 * 10**6, *reduced)
    _write(folder, [rank] * ranks)


class _Rank:
    """The nodes of a rank, numbered from 1; computations follow each other."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self._computed: int | None = None

    @property
    def last(self) -> int:
        """The number of the last node."""
        return len(self.nodes)

    def compute(self, micros: int, *after: int) -> int:
        before = () if self._computed is None else (self._computed,)
        after = tuple(dict.fromkeys((*before, *after)))
        self._computed = self._add(NodeType.COMPUTATION, after, {}, duration_micros=micros)
        return self._computed

    def operate(self, operations: int, size_bytes: int, *after: int) -> int:
        before = () if self._computed is None else (self._computed,)
        values = {"num_ops": operations, "tensor_size": size_bytes}
        self._computed = self._add(NodeType.COMPUTATION, (*before, *after), values)
        return self._computed

    def collective(self, kind: CollectiveType, size_bytes: int, *after: int) -> int:
        return self._add(NodeType.COLLECTIVE, after, {"comm_type": int(kind), "comm_size": size_bytes})

    def send(self, rank: int, tag: int, *after: int) -> int:
        return self._add(
            NodeType.SEND, after, {"comm_dst": rank, "comm_size": ACTIVATION_BYTES, "comm_tag": tag}, bits=32
        )

    def receive(self, rank: int, tag: int) -> int:
        return self._add(NodeType.RECEIVE, (), {"comm_src": rank, "comm_size": ACTIVATION_BYTES, "comm_tag": tag}, 32)

    def _add(
        self, kind: NodeType, after: tuple[int, ...], values: dict[str, int], bits: int = 64, duration_micros: int = 0
    ) -> int:
        number = len(self.nodes) + 1
        node = Node(id=number, type=kind, name=kind.name.lower(), data_deps=after, duration_micros=duration_micros)
        for name, value in values.items():
            # astra-sim's reader asks for the sizes in 64 bits, and for ranks and tags in 32.
            if bits == 32 and name != "comm_size":
                node.attr.add(name=name, int32_val=value)
            else:
                node.attr.add(name=name, int64_val=value)
        node.attr.add(name="is_cpu_op", bool_val=False)
        self.nodes.append(node)
        return number


def _write(folder: Path, ranks: list[_Rank]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number, rank in enumerate(ranks):
        (folder / f"trace.{number}.et").write_bytes(b"".join(_framed(rank)))


def _framed(rank: _Rank) -> Iterator[bytes]:
    yield framed(Metadata(version=VERSION))
    yield from map(framed, rank.nodes)
