"""What the ranks of a PyTorch job train, as the run tells them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TrainingPlan:
    """What a rank trains; ``bytes`` are those of the wire, after scaling.

    Attributes:
        parallelism: ddp, fsdp, pipeline or moe.
        is_real: Whether layers compute, or sleep for ``compute_s`` an iteration.
        compute_s: Computation of a rank in an iteration.
        parameter_bytes: Of the whole model, in ``layers`` of equal size (ddp, fsdp).
        activation_bytes: Of what passes from stage to stage in all ``micro_batches`` (pipeline), or of what a rank
            sends to the experts of a layer (moe).
        bucket_bytes: DDP reduces gradients when so many bytes are there.
        seed: Of the parameters.
    """

    parallelism: str
    is_real: bool
    compute_s: float
    parameter_bytes: float
    activation_bytes: float
    layers: int
    micro_batches: int
    bucket_bytes: float
    seed: int
