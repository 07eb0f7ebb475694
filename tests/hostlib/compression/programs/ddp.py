"""DDP in all its ways, with the hook and without: what ranks see is returned for the test to compare."""

import contextlib
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from hostlib.compression.choice import Choice, Collective, Precision, low_rank
from hostlib.compression.netsense import NetSense
from hostlib.torch.sockets import AdoptedSocket, connections
from tests.hostlib.compression.programs.training import DENSE, batches, digest, fixed, loss_of, perceptron

GATHERED = Choice(0.1, Precision.FP16, Collective.ALL_GATHER)
SCATTERED = Choice(0.1, Precision.FP16, Collective.REDUCE_SCATTER)
CHOICES = {
    "fp32": DENSE,
    "bf16": Choice(1, Precision.BF16, Collective.ALL_REDUCE),
    "fp16": Choice(1, Precision.FP16, Collective.ALL_REDUCE),
    "int8": Choice(1, Precision.INT8, Collective.REDUCE_SCATTER),
    "gathered": GATHERED,
    "gathered-int8": Choice(0.1, Precision.INT8, Collective.ALL_GATHER),
    "scattered": SCATTERED,
    "pruned": Choice(0.1, Precision.FP16, Collective.ALL_GATHER, prune_share=0.45),
    "low rank": low_rank(2),
}
REMAINDER_CASES = ("plain", "bf16", "two forward passes", "NaN", "scaler", "checkpoint", "in flight", "low rank")
_CAP_MB = 0.01
"""So that there are several buckets, the last of another size."""


class Branched(nn.Module):
    """Rank 0 uses a branch that the others do not."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk, self.branch = perceptron(), nn.Linear(10, 10)

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        out = self.trunk(data)
        return self.branch(out) if torch.distributed.get_rank() == 0 else out


def _train(rank: int, model: nn.Module, net: NetSense | None, steps: int, **options: Any) -> dict[str, Any]:
    ddp = DistributedDataParallel(model, bucket_cap_mb=_CAP_MB, **options)
    if net is not None:
        net.attach(ddp)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
    digests, losses = [], []
    for number, batch in enumerate(batches(rank, steps, next(ddp.parameters()).dtype)):
        accumulating = ddp.no_sync() if options.get("find_unused_parameters") is None and number % 3 == 1 else None
        with accumulating or contextlib.nullcontext():
            loss = loss_of(ddp, batch)
            loss.backward()
        losses.append(loss.item())
        if accumulating is None:
            digests.append(digest(parameter.grad for parameter in ddp.parameters()))
            optimizer.step()
            optimizer.zero_grad()
    return {"digests": digests, "loss": sum(losses[-20:]) / 20}


def identical(rank: int, size: int) -> Any:
    """Train with the hook at ratio 1 and without it; return the hashes of all gradients of both."""
    del size
    cases: dict[str, tuple[Any, dict[str, Any]]] = {
        "fp32": (perceptron, {}),
        "bf16": (lambda: perceptron().bfloat16(), {}),
        "fp16": (lambda: perceptron().half(), {}),
        "fp64": (lambda: perceptron().double(), {}),
        "static graph": (perceptron, {"static_graph": True}),
        "views": (perceptron, {"gradient_as_bucket_view": True}),
        "unused parameters": (Branched, {"find_unused_parameters": True}),
    }
    found = {}
    for name, (make, options) in cases.items():
        net = NetSense(fixed(DENSE))
        with_hook = _train(rank, make(), net, 6, **options)
        found[name] = {
            "with": with_hook["digests"],
            "without": _train(rank, make(), None, 6, **options)["digests"],
            "steps": net.stats().steps,
            "buckets": [bucket.elements for bucket in net.stats().buckets],
            "passed on": dict(net.stats().passed_on),
        }
    return found


def converge(rank: int, size: int) -> Any:
    """Train with each choice; return the mean of the last losses, hashes and what was sent."""
    del size
    found = {"plain": _train(rank, perceptron(), None, 120)}
    for name, choice in CHOICES.items():
        net = NetSense(fixed(choice))
        found[name] = _train(rank, perceptron(), net, 120) | {
            "sent_bytes": net.stats().sent_bytes,
            "saved_bytes": net.stats().saved_bytes,
            "choices": [(each.ratio, each.precision, each.collective) for each in net.stats().buckets],
        }
    return found


def momentum(rank: int, size: int) -> Any:
    """Train with momentum in the optimizer, and with momentum correction in its place where all is sent."""
    del size
    found = []
    for of_optimizer, net in ((0.9, None), (0.0, NetSense(fixed(DENSE), momentum=0.9))):
        ddp = DistributedDataParallel(perceptron(), bucket_cap_mb=_CAP_MB)
        if net is not None:
            net.attach(ddp)
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=of_optimizer)
        for batch in batches(rank, 10):
            loss_of(ddp, batch).backward()
            optimizer.step()
            optimizer.zero_grad()
        found.append(torch.cat([parameter.detach().reshape(-1) for parameter in ddp.parameters()]))
    return float((found[0] - found[1]).abs().max())


def scaled(rank: int, size: int) -> Any:
    """Train with a scaler that doubles its scale every other step, and without; return hashes of the parameters."""
    del size
    found = []
    for scaler in (None, torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)):
        net = NetSense(fixed(Choice(0.1, Precision.FP32, Collective.ALL_GATHER)))
        ddp = DistributedDataParallel(perceptron(), bucket_cap_mb=_CAP_MB)
        net.attach(ddp, scaler=scaler)
        optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
        for batch in batches(rank, 10):
            loss = loss_of(ddp, batch)
            if scaler is None:
                loss.backward()
                optimizer.step()
            else:
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
            optimizer.zero_grad()
        found.append(digest(ddp.parameters()))
    return found


def not_finite(rank: int, size: int) -> Any:
    """Have NaN in the gradient of one rank in one step; return what became of gradients and residuals."""
    del size
    found = {}
    for name in ("fp32", "fp16", "int8", "gathered", "scattered", "pruned", "low rank"):
        net = NetSense(fixed(CHOICES[name]))
        ddp = DistributedDataParallel(perceptron(), bucket_cap_mb=_CAP_MB)
        net.attach(ddp)
        before: dict[str, torch.Tensor] = {}
        is_lost, after_is_finite = False, True
        for number, batch in enumerate(batches(rank, 8)):
            loss = loss_of(ddp, batch)
            if number == 5:
                before = net.state_dict()["unsent"]
                if rank == 1:
                    poisoned = ddp.module[4].weight.register_hook(lambda gradient: gradient * torch.nan)
            loss.backward()
            grads = [parameter.grad for parameter in ddp.parameters() if parameter.grad is not None]
            if number == 5:
                is_lost = not bool(torch.isfinite(ddp.module[4].weight.grad).all())
                after = net.state_dict()["unsent"]
                changed = max(
                    [float((after[each] - before[each]).abs().max()) for each in after if each.startswith("4")],
                    default=0,
                )
                if rank == 1:
                    poisoned.remove()
            elif number > 5:
                after_is_finite &= all(bool(torch.isfinite(each).all()) for each in grads)
            ddp.zero_grad()
        finite = all(bool(torch.isfinite(each).all()) for each in net.state_dict()["unsent"].values())
        found[name] = {
            "is_lost": is_lost,
            "changed": changed,
            "residuals_are_finite": finite,
            "after_is_finite": after_is_finite,
            "passed_on": dict(net.stats().passed_on),
            "digest": digest(grads),
        }
    return found


def remainders(rank: int, size: int) -> Any:
    """Send a little of each bucket and the remainder of the last one later; return what is missing of all gradients.

    Parameters stay, so gradients are known. What DDP returned, and the mean of what ranks keep, must add up to them.
    """
    found = {}
    for case in REMAINDER_CASES:
        choice, later = SCATTERED, Choice(0.5, Precision.INT8, Collective.REDUCE_SCATTER)
        if case == "low rank":
            choice, later = low_rank(2), low_rank(1)
        nets = None, NetSense(fixed(choice, later))
        totals = []
        for net in nets:
            dtype = torch.bfloat16 if case == "bf16" else torch.float32
            ddp = DistributedDataParallel(perceptron().to(dtype), bucket_cap_mb=_CAP_MB)
            # Only a scaler of ours doubles its scale, so both have the same gradients in the end.
            scaler = torch.amp.GradScaler("cpu", init_scale=1.0) if case == "scaler" and net else None
            if net is not None:
                net.attach(ddp, scaler=scaler)
            total = [torch.zeros_like(parameter, dtype=torch.float32) for parameter in ddp.parameters()]
            for number, batch in enumerate(batches(rank, 8, dtype)):
                if case == "two forward passes":
                    loss_of(ddp, batch)
                loss = loss_of(ddp, batch)
                if scaler is not None:
                    loss = scaler.scale(loss)
                poisoned = None
                if case == "NaN" and number == 5 and rank == 1:
                    poisoned = ddp.module[0].weight.register_hook(lambda gradient: gradient * torch.nan)
                loss.backward()
                if poisoned is not None:
                    poisoned.remove()
                scale = 1.0 if scaler is None else scaler.get_scale()
                for sum_, parameter in zip(total, ddp.parameters(), strict=True):
                    if torch.isfinite(parameter.grad).all():
                        sum_.add_(parameter.grad, alpha=1 / scale)
                if scaler is not None:
                    scaler.update(2.0 * scale)
                if net is not None and number == 6 and case == "checkpoint":
                    net.load_state_dict(net.state_dict())
                ddp.zero_grad()
            if case == "in flight":
                loss_of(ddp, batch)
            totals.append(total)
        statistics, state = net.stats(), net.state_dict()
        for name, sum_ in zip(dict(ddp.module.named_parameters()), totals[1], strict=True):
            unsent = state["unsent"][name].clone()
            torch.distributed.all_reduce(unsent)
            sum_.add_(unsent.view_as(sum_), alpha=1 / size / state["scale"])
        missing = max(float((ours - plain).abs().max()) for plain, ours in zip(*totals, strict=True))
        found[case] = {
            "missing": missing,
            "remainder": statistics.remainder and statistics.remainder.ratio,
            "ratio": statistics.ratio,
            "bytes": (statistics.sent_bytes, statistics.tcp_sent_bytes),
        }
    return found


def sparse_gradients(rank: int, size: int) -> Any:
    """Train an embedding with sparse gradients."""
    torch.manual_seed(1)
    found = []
    for net in (None, NetSense(fixed(GATHERED))):
        model = nn.Sequential(nn.Embedding(10, 4, sparse=True), nn.Linear(4, 3))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.fill_(0.5)
        ddp = DistributedDataParallel(model)
        if net is not None:
            net.attach(ddp)
        for _ in range(3):
            ddp.zero_grad()
            ddp(torch.tensor([rank, rank + 1])).sum().backward()
        found.append(ddp.module[0].weight.grad.to_dense().tolist())
    return {"gradients": found, "passed_on": dict(net.stats().passed_on), "steps": net.stats().steps, "size": size}


def slowed(rank: int, size: int) -> Any:
    """Train under ``budget`` while one rank's link is slow and another rank is; return all choices of all steps."""
    before = connections()
    ddp = DistributedDataParallel(perceptron(512), bucket_cap_mb=0.5)
    net = NetSense()
    net.attach(ddp)
    if rank == size - 1:
        for connection in AdoptedSocket.open_all(connections() - before).values():
            connection.set_pacing_rate(50e6)
    choices = []
    for number, batch in enumerate(batches(rank, 16)):
        loss = loss_of(ddp, batch)
        if rank == 0 and number % 2:
            torch.sin(torch.ones(1_000_000)).sum()
        loss.backward()
        choices.append([(each.ratio, each.precision, each.collective) for each in net.stats().buckets])
        ddp.zero_grad()
    return {"choices": choices, "reason": net.stats().reason, "malformed": net.stats().malformed_proposals}


def uneven(rank: int, size: int) -> Any:
    """Train where some ranks have more data, under DDP's join."""
    del size
    ddp = DistributedDataParallel(perceptron(), bucket_cap_mb=_CAP_MB)
    net = NetSense(fixed(SCATTERED, DENSE))
    net.attach(ddp)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
    with ddp.join():
        for batch in batches(rank, 4 + rank):
            loss_of(ddp, batch).backward()
            optimizer.step()
            optimizer.zero_grad()
    return {"digest": digest(ddp.parameters()), "steps": net.stats().steps}


def bytes_sent(rank: int, size: int) -> Any:
    """Compare what is counted as sent with what TCP has sent."""
    found = {}
    for name, choice in CHOICES.items():
        ddp = DistributedDataParallel(perceptron(600), bucket_cap_mb=1)
        net = NetSense(fixed(choice))
        net.attach(ddp)
        for batch in batches(rank, 4):
            loss_of(ddp, batch).backward()
        torch.distributed.barrier()
        found[name] = (net.stats().sent_bytes, net.stats().tcp_sent_bytes)
    return found | {"size": size}


def all_of_it(rank: int, size: int) -> Any:
    """Run the short ones in one job."""
    functions = (identical, momentum, scaled, not_finite, remainders, sparse_gradients, slowed, uneven, bytes_sent)
    return {function.__name__: function(rank, size) for function in functions}
