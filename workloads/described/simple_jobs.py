"""A described model in a job of one parallelism: the numbers that the model table has for other models.

Every GPU computes as much as ``samples_per_gpu`` samples take, whatever the parallelism, so that all GPUs together
process ``samples_per_gpu`` times as many samples as there are GPUs. What hosts exchange follows from the layers.
"""

from workloads.described.description import ModelDescription
from workloads.described.devices import Device
from workloads.described.timing import device_for, times_of, total_times
from workloads.models import Model


def simple_model(
    kind: str, model: ModelDescription, given: Device | None, samples_per_gpu: float, num_hosts: int, num_gpus: int
) -> Model:
    """Return the numbers of a model for a job of this ``type`` on so many hosts and GPUs.

    Gradients are those of all parameters. The first of them is there when the backward pass has left the last layer
    that has any. Activations are, of all the job's samples, what the widest block passes on (``pp``) or has to be
    reduced after a layer (``tp``), or half of keys and values (``cp``); of a host's samples, what is routed to experts
    (``moe``).

    Raises ValueError for a layer that needs a device where there is none.
    """
    device = device_for(model, given)
    times = total_times(tuple(model.parts), device)
    last_s = 0.0
    for part in reversed(tuple(model.parts)):
        last_s += times_of(part, device).backward_s
        if part.numbers.parameters:
            break
    return Model(
        compute_s=samples_per_gpu * times.both_s,
        comm_start=min((times.forward_s + last_s) / times.both_s, 1.0),
        gradient_bytes=float(model.parameters * model.gradient_bytes),
        activation_bytes=_exchanged_elements(kind, model, num_hosts) * samples_per_gpu * num_gpus * model.element_bytes,
        flows_per_pair=model.flows_per_pair,
        measured_forward_s=samples_per_gpu * times.forward_s,
    )


DIVIDED = {
    "tp": "attention or mlp layers",
    "cp": "attention layers",
    "moe": "layers with experts",
    "pp": "more than one block",
}
"""What each parallelism divides of a model."""


def divided_layers(kind: str, model: ModelDescription) -> int:
    """Return how many layers of a model a parallelism divides, 0 if none; of ``fsdp``, how many blocks compute."""
    match kind:
        case "tp":
            halves = sum(part.numbers.reduced_elements > 0 for part in model.parts)
            return -(-halves // 2)
        case "cp":
            return sum(part.numbers.key_value_elements > 0 for part in model.parts)
        case "moe":
            return sum(part.numbers.routed_elements > 0 for part in model.parts)
        case "pp":
            return len(model.blocks) - 1
        case "fsdp":
            return sum(any(part.numbers.flops or part.measured_s for part in block.parts) for block in model.blocks)
    return 0


def _exchanged_elements(kind: str, model: ModelDescription, num_hosts: int) -> float:
    """Return what one sample adds to the activations that a parallelism sends; 0 where it sends none."""
    match kind:
        case "tp":
            return max((part.numbers.reduced_elements for part in model.parts), default=0)
        case "cp":
            return max((part.numbers.key_value_elements for part in model.parts), default=0) / 2
        case "moe":
            return max((part.numbers.routed_elements for part in model.parts), default=0) / num_hosts
        case "pp":
            return max((block.output.elements for block in model.blocks[:-1]), default=0)
    return 0.0
