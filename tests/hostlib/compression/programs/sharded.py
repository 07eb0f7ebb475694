"""FSDP2 with communicators and without, and copies of shards: what ranks see is returned for the test to compare."""

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

from hostlib.compression import BudgetSettings
from hostlib.compression.choice import Choice, Collective, Precision, low_rank
from hostlib.compression.netsense import NetSense
from tests.hostlib.compression.programs.training import DENSE, batches, fixed, loss_of, perceptron, turning

_PRECISIONS = {
    "fp32": DENSE,
    "fp16": Choice(1, Precision.FP16, Collective.ALL_REDUCE),
    "int8": Choice(1, Precision.INT8, Collective.REDUCE_SCATTER),
}
SPARSE = Choice(0.1, Precision.FP16, Collective.ALL_GATHER)


def _sharded(mesh: DeviceMesh, reduce_dtype: torch.dtype | None = None) -> nn.Sequential:
    model = perceptron(65)  # no multiple of the ranks
    policy = MixedPrecisionPolicy(reduce_dtype=reduce_dtype)
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    return model


def _modules(model: nn.Module) -> Iterable[FSDPModule]:
    return (module for module in model.modules() if isinstance(module, FSDPModule))


def _gradients(rank: int, model: nn.Module) -> torch.Tensor:
    """Return all gradients of the third step; only the first is sent as it is, before anything is known."""
    for batch in batches(rank, 3):
        model.zero_grad()
        loss_of(model, batch).backward()
    return _flat(model)


def _flat(model: nn.Module) -> torch.Tensor:
    return torch.cat([parameter.grad.full_tensor().reshape(-1).float() for parameter in model.parameters()])


def _difference(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one - other).abs().max() / other.abs().max())


def reduced(rank: int, size: int) -> Any:
    """Reduce in each precision, reduce dtype and operation; return the differences from FSDP2's own mean."""
    mesh = init_device_mesh("cpu", (size,))
    found = {}
    for dtype in (None, torch.bfloat16, torch.float16):
        plain = _gradients(rank, _sharded(mesh, dtype))
        for name, choice in _PRECISIONS.items():
            for operation in ("AVG", "SUM", "PREMUL_SUM"):
                model = _sharded(mesh, dtype)
                factor = 1.0
                for module in _modules(model):
                    if operation == "SUM":
                        module.set_force_sum_reduction_for_comms(True)
                    if operation == "PREMUL_SUM":
                        factor = 4.0 / size
                        module.set_gradient_divide_factor(4.0)
                NetSense(fixed(choice)).attach(model)
                found[f"{dtype} {name} {operation}"] = _difference(_gradients(rank, model) * factor, plain)
    return found


def sparse(rank: int, size: int) -> Any:
    """Send a tenth of the same gradient again and again; compare the mean of what came with it; return statistics."""
    return _repeated(SPARSE, rank, init_device_mesh("cpu", (size,)))


def rounded(rank: int, size: int) -> Any:
    """Do the same with all of it in 4 bits."""
    return _repeated(Choice(1, Precision.INT4, Collective.REDUCE_SCATTER), rank, init_device_mesh("cpu", (size,)))


def _repeated(choice: Choice, rank: int, mesh: DeviceMesh) -> Any:
    net = NetSense(fixed(choice), is_sparse_sharded=True)
    model = _sharded(mesh)
    net.attach(model)
    plain = _sharded(mesh)
    total, steps = torch.tensor(0.0), 40
    (batch,) = batches(rank, 1)
    for _ in range(steps):
        model.zero_grad()
        loss_of(model, batch).backward()
        total = total + _flat(model)
    loss_of(plain, batch).backward()
    stats = net.stats()
    return {
        "difference": _difference(total / steps, _flat(plain)),
        "notes": stats.notes,
        "residual_bytes": stats.residual_bytes,
        "elements": sum(parameter.numel() for parameter in model.parameters()),
        "saved_bytes": stats.saved_bytes,
        "modules": [bucket.parameters for bucket in stats.buckets],
        "steps": stats.steps,
    }


def turned(rank: int, size: int) -> Any:
    """Send sparse, and then all, of the same gradient; return how far the sum is from that many gradients."""
    mesh = init_device_mesh("cpu", (size,))
    plain = _sharded(mesh)
    (batch,) = batches(rank, 1)
    loss_of(plain, batch).backward()
    found = {}
    for name, dense in _PRECISIONS.items():
        net = NetSense(turning(SPARSE, dense, 6), is_sparse_sharded=True)
        model = _sharded(mesh)
        net.attach(model)
        total, steps, ratios = torch.tensor(0.0), 10, []
        for _ in range(steps):
            model.zero_grad()
            loss_of(model, batch).backward()
            total = total + _flat(model)
            ratios.append(net.stats().ratio)
        found[name] = {"difference": _difference(total / steps, _flat(plain)), "ratios": ratios}
    return found


def not_finite(rank: int, size: int) -> Any:
    """Have an infinity in one rank's gradient; return what became of gradients, residuals and counts."""
    mesh = init_device_mesh("cpu", (size,))
    found = {}
    for name, choice in (("int8", _PRECISIONS["int8"]), ("sparse", SPARSE)):
        net = NetSense(fixed(choice), is_sparse_sharded=True)
        model = _sharded(mesh)
        net.attach(model)
        for number, (data, labels) in enumerate(batches(rank, 3)):
            loss = loss_of(model, (data, labels))
            (loss * (math.inf if number == 2 and rank == 1 else 1)).backward()
            finite = all(bool(torch.isfinite(each.grad.full_tensor()).all()) for each in model.parameters())
            model.zero_grad()
        kept = net.state_dict()["unsent"].values()
        found[name] = {
            "is_finite": finite,
            "residuals_are_finite": all(bool(torch.isfinite(each).all()) for each in kept),
            "passed_on": dict(net.stats().passed_on),
        }
    return found


def refused(rank: int, size: int) -> Any:
    """Ask for what cannot be; return the errors with their notes."""
    del rank
    mesh = init_device_mesh("cpu", (size,))
    errors = []
    model = _sharded(mesh)
    NetSense(fixed(SPARSE)).attach(model)
    for _ in range(2):
        try:  # the first step is sent as it is: nothing is known of the buckets
            loss_of(model, next(iter(batches(0, 1)))).backward()
        except ValueError as error:
            errors.append([str(error), *error.__notes__])
    model = _sharded(mesh)
    NetSense(fixed(low_rank(2))).attach(model)
    for _ in range(2):
        try:
            loss_of(model, next(iter(batches(0, 1)))).backward()
        except ValueError as error:
            errors.append([str(error), *error.__notes__])
    for net in (NetSense("paper"), NetSense(momentum=0.9), NetSense(budget=BudgetSettings(low_rank=(2,)))):
        try:
            net.attach(_sharded(mesh))
        except ValueError as error:
            errors.append([str(error)])
    return errors


def replicated(rank: int, size: int) -> Any:
    """Reduce over shards and copies; return the differences from FSDP2's own mean over both."""
    mesh = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("replicas", "shards"))
    plain = _gradients(rank, _sharded(mesh))
    found = {}
    for name, choice in _PRECISIONS.items():
        model = _sharded(mesh["shards"])
        net = NetSense(fixed(choice))
        net.attach(model, replicas=mesh["replicas"].get_group())
        found[name] = _difference(_gradients(rank, model), plain)
    try:
        NetSense(fixed(DENSE)).attach(_sharded(mesh), replicas=mesh["replicas"].get_group())
    except ValueError as error:
        found["refused"] = str(error)
    return found


def inside_copies(rank: int, size: int) -> Any:
    """Compress what shards send each other where PyTorch adds up copies; return differences from FSDP2's own mean."""
    mesh = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("replicas", "shards"))
    plain = _gradients(rank, _sharded(mesh))
    found: dict[str, Any] = {}
    for name, choice in _PRECISIONS.items():
        model = _sharded(mesh)
        net = NetSense(fixed(choice))
        net.attach(model)
        found[name] = _difference(_gradients(rank, model), plain)
        found[f"{name} bytes"] = net.stats().sent_bytes
        found["modules"] = [bucket.parameters for bucket in net.stats().buckets]
    return found | {"sparse": _repeated(SPARSE, rank, mesh)}


def all_of_it(rank: int, size: int) -> Any:
    """Run the ones for two ranks in one job."""
    functions = (reduced, sparse, rounded, turned, not_finite, refused)
    return {function.__name__: function(rank, size) for function in functions}
