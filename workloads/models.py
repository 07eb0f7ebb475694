"""The model table: what the GPUs of a model compute per iteration, and what its hosts exchange.

Crux names the models of its testbed, their GPUs and its results (section 6.2), but neither times nor volumes. Ours are
one table for all mixes, calibrated as ``docs/models.md`` describes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class ModelName(StrEnum):
    """A model of the table."""

    GPT = "gpt"
    BERT = "bert"
    RESNET = "resnet"


@dataclass(frozen=True, slots=True)
class Model:
    """Numbers of one model for any number of GPUs; each GPU has its own share of a batch (weak scaling).

    ``compute_s`` is the computation of every GPU per iteration, a third of it forward. ``gradient_bytes`` is what the
    hosts reduce per iteration, over ``flows_per_pair`` connections per pair of hosts (None: one per NIC of the job),
    starting after the fraction ``comm_start`` of the computation. ``activation_bytes`` pass from one pipeline stage to
    the next per iteration, and as many back. ``measured_forward_s`` is the forward pass where it is not a third.
    """

    compute_s: float
    comm_start: float
    gradient_bytes: float
    activation_bytes: float
    flows_per_pair: int | None
    measured_forward_s: float | None = None

    @property
    def forward_s(self) -> float:
        """Duration of the forward pass; unless it is measured, the backward pass takes twice as long."""
        return self.compute_s / 3 if self.measured_forward_s is None else self.measured_forward_s

    @property
    def backward_s(self) -> float:
        """Duration of the backward pass."""
        return self.compute_s - self.forward_s


MODELS: Mapping[ModelName, Model] = {
    # Alone on 64 GPUs an iteration takes 1.53 s (Crux, section 2.2), alone on 32 the GPUs compute all the time (the
    # ideals of its figure 19): the transfer, 0.41 s on 4 hosts, runs inside the computation.
    ModelName.GPT: Model(
        compute_s=1.53, comm_start=0.4, gradient_bytes=27e9, activation_bytes=6e9, flows_per_pair=None
    ),
    # Alone on 8 GPUs, 4 on either of two hosts, they compute 54 % of the time (figure 19), by a ring of one connection.
    ModelName.BERT: Model(
        compute_s=0.25, comm_start=0.4, gradient_bytes=4.55e9, activation_bytes=1e9, flows_per_pair=1
    ),
    # What it takes of a PCIe link beside BERT, a quarter of it, is what figures 21 and 22 cost without scheduling.
    ModelName.RESNET: Model(
        compute_s=0.7, comm_start=0.4, gradient_bytes=4.375e9, activation_bytes=1.5e9, flows_per_pair=1
    ),
}
"""The table; ``docs/models.md`` has the reasons."""
