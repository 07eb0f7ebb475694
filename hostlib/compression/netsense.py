"""Gradient compression that fits the network, by one line of a training script.

::

    model = DistributedDataParallel(model)
    NetSense().attach(model)

It senses what the network gives the job, and sends of each bucket of gradients as much as there is time for.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FSDPModule
from torch.nn.parallel import DistributedDataParallel

from hostlib.compression import attached
from hostlib.compression.calibration import measured_costs, slowest
from hostlib.compression.choice import Collective, Precision
from hostlib.compression.collectives import Ranks
from hostlib.compression.control.budget import BudgetSettings
from hostlib.compression.control.cost import share_sent
from hostlib.compression.control.paper import PaperParameters
from hostlib.compression.controllers import Controllers, controllers_of
from hostlib.compression.ddp import DdpHook
from hostlib.compression.direction import Direction
from hostlib.compression.fsdp import ReplicaAllReduce, Rounds, ShardedReduceScatter
from hostlib.compression.residuals import Residuals
from hostlib.compression.sensing import OpenedConnections
from hostlib.compression.steps import Sent, Steps

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BucketStatistics:
    """One bucket as it was sent in the last step.

    Attributes:
        parameters: Names; of FSDP2, the module's.
        elements: Their number.
        ratio: Share of the elements that were sent; of low rank, its values over the elements.
        precision: Of the values.
        collective: How they were summed.
        rank: Of low rank; 0: it was not.
        passed_on: Why it was not sent like that, but as it was; None: it was.
        sent_bytes: Payload that this rank sent.
    """

    parameters: tuple[str, ...]
    elements: int
    ratio: float
    precision: Precision
    collective: Collective
    rank: int
    passed_on: str | None
    sent_bytes: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """What NetSense has done for one model, as this rank sees it.

    Attributes:
        steps: Steps that have begun.
        ratio: Share of all elements that were sent in the last step, with the remainder.
        buckets: Of the last step, in the order in which they were sent.
        remainder: What the last bucket of the step before had left out, as it was sent before them; None: it was not.
        reason: Why the next step's choices are what they are.
        sent_bytes: Payload that this rank sent, in all steps.
        tcp_sent_bytes: What TCP says of that, the back end's own headers included; 0 where no TCP carries it.
        saved_bytes: What plain all-reduces would have sent more.
        passed_on: How many buckets were not sent as chosen, by cause.
        retransmissions: Segments that TCP sent again, on the connections of the group.
        round_trip_s: The shortest round trip of these connections; None: unknown.
        malformed_proposals: How many could not be read.
        residual_bytes: Memory that unsent gradients take.
        notes: What else there is to know.
    """

    steps: int
    ratio: float
    buckets: tuple[BucketStatistics, ...]
    remainder: BucketStatistics | None
    reason: str
    sent_bytes: int
    tcp_sent_bytes: int
    saved_bytes: int
    passed_on: Mapping[str, int]
    retransmissions: int
    round_trip_s: float | None
    malformed_proposals: int
    residual_bytes: int
    notes: tuple[str, ...]


class NetSense:
    """Compresses the gradients of one model.

    Args:
        mode: ``budget``: the least error that delays nothing; ``windowed`` and ``paper``: NetSenseML with windows, and
            as printed, which collapses. Or what makes a controller of buckets and costs.
        momentum: Of momentum correction, for an optimizer that has none of its own; 0: error feedback alone.
        budget: Settings of ``budget``.
        paper: Constants of ``windowed`` and ``paper``.
        is_sparse_sharded: Whether FSDP2's gradients may be sent sparse, which takes memory for a residual of the whole
            unsharded gradient.

    Raises:
        ValueError: There is no such mode, or the momentum is none.
    """

    def __init__(
        self,
        mode: str | Controllers = "budget",
        *,
        momentum: float = 0.0,
        budget: BudgetSettings | None = None,
        paper: PaperParameters | None = None,
        is_sparse_sharded: bool = False,
    ) -> None:
        self._mode = mode
        self._budget = budget or BudgetSettings()
        self._paper = paper or PaperParameters()
        self._is_sparse_sharded = is_sparse_sharded
        self._residuals = Residuals(momentum)
        self._notes: list[str] = []
        self._steps: Steps | None = None
        self._ranks: Ranks | None = None
        self._sizes: dict[str, int] | None = None
        self._settle: Callable[[], None] = lambda: None
        if isinstance(mode, str):
            controllers_of(mode, self._budget, self._paper)

    def attach(self, model: Any, *, scaler: Any = None, replicas: Any = None) -> None:
        """Compress a model's gradients from now on. All its ranks call this, before the first backward pass.

        Args:
            model: A ``DistributedDataParallel`` without a communication hook, or a module on which ``fully_shard`` was
                called.
            scaler: The ``torch.amp.GradScaler`` that scales the loss, if one does.
            replicas: With FSDP2 over one dimension of a mesh, the process group of the ranks that have the same shard
                of other copies; the all-reduce between them is what is compressed then.

        Raises:
            TypeError: The model is neither.
            ValueError: Ranks have different settings, or the model cannot be had as asked for.
            RuntimeError: This object has a model already, or PyTorch refuses the hook.
        """
        if self._steps is not None:
            raise RuntimeError("this NetSense is attached already: make one for each model")
        if isinstance(model, DistributedDataParallel):
            if replicas is not None:
                raise ValueError("replicas: they are for FSDP2, and this model is a DistributedDataParallel")
            self._steps, self._ranks = self._attach_to_ddp(model, scaler)
        elif _is_sharded(model):
            self._steps, self._ranks = self._attach_to_sharded(model, scaler, replicas)
        else:
            raise TypeError(
                f"model: expected a DistributedDataParallel or a module after fully_shard(), got {type(model).__name__}"
            )

    def direct(self, rate_bps: float | None, slack_s: float | None) -> None:
        """Say what Trainyard's controller leaves the job; None: it does not say. ``hostlib.torch`` does so by itself.

        Args:
            rate_bps: What this rank may send, in bit/s.
            slack_s: How long after the backward pass gradients are in time.

        Raises:
            RuntimeError: Nothing is attached.
            ValueError: A number is negative or not finite, or the rate is 0.
        """
        steps, _ = self._attached()
        steps.direction = Direction(rate_bps, slack_s)

    def stats(self) -> Statistics:
        """Return what was done until now; nothing before ``attach``."""
        if self._steps is None:
            return _NOTHING
        steps, totals = self._steps, self._steps.totals()
        buckets = tuple(_statistics(sent) for sent in steps.sent)
        elements = sum(bucket.elements for bucket in buckets)
        sent = sum(bucket.ratio * bucket.elements for bucket in buckets)
        remainder = None if steps.remainder is None else _statistics(steps.remainder)
        if remainder is not None:
            sent += min(remainder.ratio, 1 - buckets[-1].ratio) * remainder.elements
        return Statistics(
            steps.count,
            sent / elements if elements else 1.0,
            buckets,
            remainder,
            steps.reason,
            totals.sent_bytes,
            steps.tcp_sent_bytes(),
            round(totals.dense_bytes) - totals.sent_bytes,
            dict(totals.passed_on),
            steps.counters.retransmissions,
            steps.counters.round_trip_s,
            steps.malformed,
            self._residuals.size_bytes,
            tuple(self._notes),
        )

    def state_dict(self) -> dict[str, Any]:
        """Return what this rank's part of a checkpoint needs: gradients that were not sent yet.

        Raises:
            RuntimeError: Nothing is attached.
        """
        _, ranks = self._attached()
        self._settle()
        return self._residuals.state_dict(ranks.size)

    def load_state_dict(self, state: Mapping[str, Any]) -> tuple[str, ...]:
        """Go on from a checkpoint; return in words what of it could not be kept, as ``stats`` does from then on.

        A changed number of ranks resets all; a parameter that is gone, or has another size, is left out.

        Raises:
            RuntimeError: Nothing is attached.
            ValueError: It is no state of ``state_dict``. Nothing is changed then.
        """
        _, ranks = self._attached()
        self._settle()
        lost = self._residuals.load_state_dict(state, self._sizes, ranks.size)
        self._notes.extend(lost)
        return lost

    def _attached(self) -> tuple[Steps, Ranks]:
        if self._steps is None or self._ranks is None:
            raise RuntimeError("attach a model first")
        return self._steps, self._ranks

    def _attach_to_ddp(self, model: Any, scaler: Any) -> tuple[Steps, Ranks]:
        steps, ranks = self._begin(model.process_group, next(model.parameters()).device, self._budget)
        self._sizes = {name: parameter.numel() for name, parameter in model.module.named_parameters()}
        if ranks.size > 1:
            self._settle = DdpHook(model, ranks, steps, self._residuals, scaler).settle
        return steps, ranks

    def _attach_to_sharded(self, model: Any, scaler: Any, replicas: Any) -> tuple[Steps, Ranks]:
        modules = {name or "(root)": module for name, module in model.named_modules() if _is_sharded(module)}
        parameter = next(model.parameters())
        mesh, device = parameter.device_mesh, parameter.to_local().device
        is_sparse = self._is_sparse_sharded or replicas is not None
        if not is_sparse and self._mode in ("windowed", "paper"):
            raise ValueError(f"mode: {self._mode} is sparse, and is_sparse_sharded is off")
        if not is_sparse and self._residuals.momentum:
            raise ValueError("momentum: it corrects what sparse gradients leave out, and is_sparse_sharded is off")
        if self._budget.low_rank:
            raise ValueError("low_rank: it is for DistributedDataParallel, as FSDP2's shards are no matrices")
        budget = self._budget if is_sparse else replace(self._budget, lowest_ratio=1.0, start_ratio=1.0)
        if replicas is None:
            steps, ranks = self._begin(mesh.get_group(mesh.ndim - 1), device, budget)
        elif mesh.ndim == 1:
            steps, ranks = self._begin(replicas, device, budget)
        else:
            raise ValueError(
                f"replicas: {next(iter(modules))} is on a mesh of {mesh.ndim} dimensions, so its all-reduce is "
                "PyTorch's; call fully_shard() with the dimension of shards alone"
            )
        rounds = Rounds(steps, self._residuals, scaler)
        model.register_forward_hook(lambda *_: steps.clock.forward_ended())
        for name, module in modules.items():
            try:
                if replicas is None:
                    module.set_custom_reduce_scatter(ShardedReduceScatter(name, rounds, ranks, is_sparse))
                else:
                    module.set_all_reduce_hook(ReplicaAllReduce(name, rounds, ranks))
            except (AttributeError, ValueError) as error:
                error.add_note(f"This was module {name}.")
                raise
        if replicas is None and is_sparse:
            size_bytes = sum(parameter.numel() for parameter in model.parameters()) * _RESIDUAL_BYTES
            self._note(f"residuals of unsharded gradients will take {size_bytes / 1e6:,.3f} MB on each rank")
        return steps, ranks

    def _begin(self, group: Any, device: torch.device, budget: BudgetSettings) -> tuple[Steps, Ranks]:
        """Make a process group of our own with the same ranks, and have them agree on what all must know."""
        opened = OpenedConnections()
        ranks = Ranks.of(
            dist.new_group(dist.get_process_group_ranks(group), _timeout(group, device), use_local_synchronization=True)
        )
        costs = measured_costs(ranks, device, has_low_rank=bool(budget.low_rank))
        own = (self._mode if isinstance(self._mode, str) else "", budget, self._paper, self._residuals.momentum)
        found: list[Any] = [None] * ranks.size
        dist.all_gather_object(found, (own, costs), group=ranks.group)
        for rank, (theirs, _) in enumerate(found):
            if theirs != own:
                raise ValueError(f"ranks have different settings: rank {rank} has {theirs}, rank {ranks.rank} {own}")
        costs = slowest([each for _, each in found])
        controllers = controllers_of(self._mode, budget, self._paper) if isinstance(self._mode, str) else self._mode
        if ranks.size == 1:
            self._note("there is one rank, which has nobody to send to")
        steps = Steps(lambda buckets: controllers(buckets, costs), opened.sockets())
        if ranks.size > 1:
            attached.note(str(ranks.group.group_name), steps)
        return steps, ranks

    def _note(self, text: str) -> None:
        self._notes.append(text)
        _LOG.warning("NetSense: %s", text)


_RESIDUAL_BYTES = 4
"""Of an element, in fp32."""

_NOTHING = Statistics(0, 1.0, (), None, "Nothing is attached.", 0, 0, 0, {}, 0, None, 0, 0, ())


def _is_sharded(module: Any) -> bool:
    return isinstance(module, FSDPModule)


def _timeout(group: Any, device: torch.device) -> Any:
    """Return how long collectives of a group may take; a new group would have the default."""
    return getattr(getattr(group._get_backend(device), "options", None), "_timeout", None)


def _statistics(sent: Sent) -> BucketStatistics:
    choice = sent.choice or sent.bucket.dense_choice
    return BucketStatistics(
        tuple(section.name for section in sent.gradient.sections),
        sent.bucket.elements,
        share_sent(choice, sent.bucket),
        choice.precision,
        choice.collective,
        choice.rank,
        sent.gradient.passed_on,
        sent.carried.sent_bytes,
    )
