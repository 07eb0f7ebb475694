"""Attaching and what it refuses, checkpoints, a world of one."""

from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from hostlib.compression import NetSense
from hostlib.compression.choice import Choice, Collective, Precision
from tests.hostlib.compression.programs.training import batches, digest, fixed, loss_of, perceptron

_SPARSE = Choice(0.1, Precision.FP16, Collective.ALL_GATHER)


def alone(rank: int, size: int) -> Any:
    """Train in a world of one, with the one line and without."""
    del size
    digests = []
    for net in (None, NetSense()):
        ddp = DistributedDataParallel(perceptron())
        if net is not None:
            net.attach(ddp)
        for batch in batches(rank, 3):
            ddp.zero_grad()
            loss_of(ddp, batch).backward()
        digests.append(digest(parameter.grad for parameter in ddp.parameters()))
    return {"digests": digests, "notes": net.stats().notes, "sent_bytes": net.stats().sent_bytes}


def refused(rank: int, size: int) -> Any:
    """Return the errors of what cannot be attached."""
    del size
    errors = {}
    ddp = DistributedDataParallel(perceptron())
    cases: dict[str, tuple[NetSense, Any, dict[str, Any]]] = {
        "no model": (NetSense(), perceptron(), {}),
        "replicas": (NetSense(), ddp, {"replicas": dist.group.WORLD}),
        "settings": (NetSense(momentum=0.5 * rank), ddp, {}),
    }
    for name, (net, model, options) in cases.items():
        try:
            net.attach(model, **options)
        except (TypeError, ValueError) as error:
            errors[name] = f"{type(error).__name__}: {error}"
    net = NetSense()
    net.attach(ddp)
    for name, again in (("twice", net), ("two hooks", NetSense())):
        try:
            again.attach(ddp)
        except RuntimeError as error:
            errors[name] = str(error)
    again.attach(DistributedDataParallel(perceptron()))  # what was refused has left nothing behind
    return errors


def resumed(rank: int, size: int) -> Any:
    """Save after a few steps, and go on in another process group of as many ranks, and with a state of other ranks."""
    del size
    net = NetSense(fixed(_SPARSE))
    ddp = DistributedDataParallel(perceptron(), bucket_cap_mb=0.01)
    net.attach(ddp)
    for batch in batches(rank, 5):
        ddp.zero_grad()
        loss_of(ddp, batch).backward()
    state = net.state_dict()
    after = NetSense(fixed(_SPARSE))
    after.attach(DistributedDataParallel(perceptron(), bucket_cap_mb=0.01))
    lost = after.load_state_dict(state)
    same = all(torch.equal(after.state_dict()["unsent"][name], value) for name, value in state["unsent"].items())
    reset = after.load_state_dict(state | {"world_size": 8})
    return {
        "parameters": sorted(state["unsent"]),
        "lost": lost,
        "same": same,
        "reset": reset,
        "notes": after.stats().notes,
        "left": sorted(after.state_dict()["unsent"]),
    }


def all_of_it(rank: int, size: int) -> Any:
    """Run those of two ranks in one job."""
    return {function.__name__: function(rank, size) for function in (refused, resumed)}
