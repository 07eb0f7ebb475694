"""Train on batches that hosts make ahead of the steps, and print losses: python docs/examples/input_pipeline.py."""

import numpy
import torch

import runtime as rt

STEPS, REPLICAS, ROWS, WIDTH = 40, 2, 32, 8


def batches(step, shard, _shards):
    """Yield the rows of one replica for each step from this one on."""
    answer = numpy.arange(WIDTH, dtype=numpy.float32)
    for number in range(step, STEPS):
        x = numpy.random.default_rng((number, shard)).normal(size=(ROWS, WIDTH)).astype(numpy.float32)
        yield x, x @ answer


@rt.function(collective=True)
def step(weights, x, y):
    """Descend once on the rows of all replicas; return the loss before, and the new weights."""
    weights = weights.detach().requires_grad_()
    loss = ((x @ weights - y) ** 2).mean()
    (gradient,) = torch.autograd.grad(loss, weights)
    mean = [rt.all_reduce(each) / rt.num_shards() for each in (loss, gradient)]
    return mean[0], weights - 0.1 * mean[1]


with rt.local(devices=REPLICAS):
    devices = rt.make_virtual_device_set().add_slice(REPLICAS)
    train = rt.pmap(step, devices=devices, in_axes=(None, 0, 0), out_axes=None)
    shapes = [rt.ArraySpec((ROWS, WIDTH), "float32"), rt.ArraySpec((ROWS,), "float32")]
    weights = numpy.zeros(WIDTH, numpy.float32)
    losses = []
    for x, y in rt.input_pipeline(batches, devices=devices, outputs=shapes, depth=2):
        loss, weights = train(weights, x, y)
        losses.append(loss)
    for number in range(0, STEPS, 10):
        print(f"step {number}: loss {losses[number].item():.4f}")
    print("weights", weights.numpy().round(1).tolist())
