"""Communicators for FSDP2: one object for each module on which ``fully_shard`` was called.

FSDP2 lets a module's reduce-scatter be replaced as a whole. Here each rank sends every other one that one's part in the
agreed precision, and its owner adds the parts up in fp32. With ``is_sparse`` only the largest elements are sent, and
the rest waits in a residual as large as the unsharded gradient, which is why that is not the default.

Where parameters are sharded inside a group and copied across groups (HSDP), the copies' all-reduce of shards is a hook,
and can be all that DDP's buckets can be.

FSDP2 calls from the backward pass, one module after the other, so these send in its thread.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import torch
import torch.distributed as dist

from hostlib.compression.choice import Choice, Precision
from hostlib.compression.codecs.payload import is_finite as was_finite
from hostlib.compression.collectives import Exchange, Ranks, ReduceScatter
from hostlib.compression.control.cost import Bucket
from hostlib.compression.encoding import Encoding, is_finite
from hostlib.compression.lanes import Transmission, carry_here
from hostlib.compression.residuals import Held, Residuals, Section
from hostlib.compression.steps import Steps
from hostlib.compression.transmissions import NOT_FINITE, PRECISIONS, Gradient, Reducer, with_unsent


class MakesTransmissions(Protocol):
    """Makes what sends a gradient as chosen."""

    def transmission(self, gradient: Gradient, choice: Choice | None) -> Transmission:
        """Return it; a choice of None means as it is."""


class Rounds:
    """The modules of one model, and where one backward pass ends and the next begins: where a module comes again.

    Args:
        steps: The agreement of all modules.
        residuals: What is not sent yet.
        scaler: The ``torch.amp.GradScaler`` that scales the loss; None: none does.
    """

    def __init__(self, steps: Steps, residuals: Residuals, scaler: Any = None) -> None:
        self.residuals = residuals
        self._steps = steps
        self._scaler = scaler
        self._seen: set[str] = set()

    def carry(self, name: str, ranks: Ranks, tensor: torch.Tensor, reducer: MakesTransmissions) -> torch.Tensor:
        """Send a module's flat gradient, and return what it has become.

        Raises:
            ValueError: It is of a type that cannot be compressed.
        """
        precision = PRECISIONS.get(tensor.dtype)
        if precision is None:
            raise ValueError(f"reduce dtype: expected float32, bfloat16 or float16, got {tensor.dtype}")
        beside = None
        if not self._seen or name in self._seen:
            self._seen.clear()
            beside = self._steps.begin()
            if self._scaler is not None:
                self.residuals.rescale(self._scaler.get_scale())
        self._seen.add(name)
        gradient = Gradient(tensor, (Section(name, tensor.numel()),), (), self._steps.seed(ranks))
        sent = self._steps.next_bucket(gradient, Bucket(tensor.numel(), ranks.size, precision))
        if sent.choice is not None and sent.choice.rank:
            raise ValueError(f"rank: expected 0, as a module's shards are no matrices, got {sent.choice.rank}")
        return carry_here(reducer.transmission(gradient, sent.choice), sent.carried, ranks, tensor.device, beside)


class ShardedReduceScatter:
    """Reduces and scatters the gradients of one module, in place of PyTorch's ``ReduceScatter``.

    Args:
        name: The module's. Errors have a note with it.
        rounds: Shared by all modules of a model.
        ranks: Those that share the module's parameters, in a process group of ours.
        is_sparse: Whether choices may leave elements out.
    """

    def __init__(self, name: str, rounds: Rounds, ranks: Ranks, is_sparse: bool) -> None:
        self._name = name
        self._rounds = rounds
        self._ranks = ranks
        self._is_sparse = is_sparse

    def allocate(self, size: Sequence[int], *, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        """Return memory for an input or an output."""
        return torch.empty(size, dtype=dtype, device=device)

    def __call__(self, output_tensor: torch.Tensor, input_tensor: torch.Tensor, group: Any, op: Any, **_: Any) -> None:
        """Reduce an input of as many equal parts as there are ranks to this rank's part; return when that is there.

        Args:
            output_tensor: One part, of the same type: FSDP2's reduce dtype.
            input_tensor: All parts; it may be changed.
            group: FSDP2's process group of the same ranks.
            op: AVG, SUM, or PREMUL_SUM with a factor.

        Raises:
            ValueError: Operation, type or ranks are others.
        """
        with _named(self._name):
            ranks = self._ranks
            if dist.get_process_group_ranks(group) != dist.get_process_group_ranks(ranks.group):
                raise ValueError("group: it has other ranks than when the model was attached")
            scattering = _Scattering(ranks, self._rounds.residuals, output_tensor, op, self._is_sparse)
            self._rounds.carry(self._name, ranks, input_tensor, scattering)


class ReplicaAllReduce:
    """Makes the shards' gradients of one module the mean over its copies: an all-reduce hook of FSDP2.

    Args:
        name: The module's. Errors have a note with it.
        rounds: Shared by all modules of a model.
        ranks: Those that have the same shard.
    """

    def __init__(self, name: str, rounds: Rounds, ranks: Ranks) -> None:
        self._name = name
        self._rounds = rounds
        self._ranks = ranks
        self._reducer = Reducer(ranks, rounds.residuals)

    def __call__(self, reduce_output: torch.Tensor) -> None:
        """Change a shard's flat gradient to the mean."""
        if self._ranks.size > 1:
            with _named(self._name):
                self._rounds.carry(self._name, self._ranks, reduce_output, self._reducer)


class _Scattering:
    """One reduce-scatter."""

    def __init__(self, ranks: Ranks, residuals: Residuals, output: torch.Tensor, op: Any, is_sparse: bool) -> None:
        self._ranks = ranks
        self._residuals = residuals
        self._output = output
        self._factor = _factor(op, ranks.size)
        self._op = op if op == dist.ReduceOp.AVG else dist.ReduceOp.SUM
        self._is_sparse = is_sparse

    def transmission(self, gradient: Gradient, choice: Choice | None) -> Transmission:
        native = PRECISIONS[gradient.buffer.dtype]
        if choice is None or choice.ratio >= 1:
            self._add_unsent(gradient)
        if choice is None or (choice.ratio >= 1 and choice.precision in (native, Precision.FP32)):
            return self._as_it_is(gradient)
        if choice.ratio < 1 and not self._is_sparse:
            raise ValueError(f"ratio: expected 1, as sparse gradients are not opted for, got {choice.ratio}")
        return self._encoded(gradient, choice)

    def _add_unsent(self, gradient: Gradient) -> None:
        """Add what was not sent before, as all is sent now; not to what the script will skip."""
        buffer = gradient.buffer
        if self._is_sparse and not self._residuals.is_empty(gradient.sections) and is_finite(buffer):
            buffer.copy_(with_unsent(gradient, self._residuals, buffer.dtype))

    def _as_it_is(self, gradient: Gradient) -> Transmission:
        if self._op != dist.ReduceOp.AVG and self._factor != 1:
            gradient.buffer.mul_(self._factor)  # as PREMUL_SUM does, which gloo has not
        yield ReduceScatter(gradient.buffer, self._output, self._op)
        return self._output

    def _encoded(self, gradient: Gradient, choice: Choice) -> Transmission:
        buffer, ranks = gradient.buffer, self._ranks
        momentum = 0.0
        if not self._is_sparse:
            held = Held(torch.zeros(buffer.numel(), device=buffer.device), None)
        else:
            held = self._residuals.held(gradient.sections, buffer.device)
            if choice.ratio < 1:
                momentum = self._residuals.momentum
            else:
                held = Held(held.unsent, None)  # the gradient has its momentum by now
        encoding = Encoding(buffer, held, momentum, choice, gradient.seed)
        ranges = ranks.ranges(buffer.numel())
        received = yield Exchange(encoding.encode(ranges), [encoding.wire_bytes(len(ranges[0]))] * ranks.size)
        if not all(map(was_finite, received)):  # all ranks see it: each has sent to every other one
            gradient.passed_on = NOT_FINITE
            encoding.take_back()
            return (yield from self._as_it_is(gradient))
        total = torch.zeros(self._output.numel(), device=buffer.device)
        for part in received:
            encoding.add(part, total)
        return self._output.copy_(total.mul_(self._factor))


def _factor(op: Any, size: int) -> float:
    """Return by what a sum is multiplied."""
    if op == dist.ReduceOp.SUM:
        return 1.0
    if op == dist.ReduceOp.AVG:
        return 1 / size
    if op == dist.ReduceOp.PREMUL_SUM:
        return float(op.__getstate__()[1])
    raise ValueError(f"op: expected AVG, SUM or PREMUL_SUM, got {op}")


@contextmanager
def _named(name: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        error.add_note(f"This was the gradient of module {name}.")
        raise
