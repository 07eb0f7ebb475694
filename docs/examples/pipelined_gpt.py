"""Train a small GPT in a pipeline of stages, and print its losses: python docs/examples/pipelined_gpt.py.

Each stage is on a device of its own. By default the first half of the stages is on one island and the rest on another;
``--islands 4`` gives each stage an island of its own. ``--schedule`` says in which order stages take micro-batches. The
result is compared with the same model trained in one piece.
"""

import argparse
import math

import numpy
import torch
import torch.nn.functional as nn

import runtime as rt
from runtime.pipelines import gpipe, one_forward_one_backward, training_step
from runtime.torch_stages import stages_of

STAGES, MICRO_BATCHES, STEPS = 4, 8, 5
VOCABULARY, LENGTH, WIDTH, HEADS, BATCH = 64, 32, 64, 4, 4
LEARNING_RATE = 0.1
SCHEDULES = {"gpipe": gpipe, "1f1b": one_forward_one_backward}


def block(parameters, x):
    """One transformer layer: attention and a network of two layers, both with a residual."""
    into, out, up, down = parameters
    batch, length, width = x.shape
    normed = nn.layer_norm(x, (width,))
    query, key, value = (normed @ into).view(batch, length, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
    attended = nn.scaled_dot_product_attention(query, key, value, is_causal=True)
    x = x + attended.transpose(1, 2).reshape(batch, length, width) @ out
    return x + nn.gelu(nn.layer_norm(x, (width,)) @ up) @ down


def first(parameters, tokens):
    """The first stage: embeddings and a block."""
    embedding, position, *rest = parameters
    return block(rest, embedding[tokens] + position)


def last(parameters, x):
    """The last stage: a block and the scores of the next token."""
    *rest, head = parameters
    return nn.layer_norm(block(rest, x), (WIDTH,)) @ head


def loss(scores, targets):
    """Cross entropy, per token."""
    return nn.cross_entropy(scores.reshape(-1, VOCABULARY), targets.reshape(-1))


def initial_parameters(stages):
    """Return the parameters of each stage."""
    torch.manual_seed(0)
    of_block = [(WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)]
    shapes = [
        [(VOCABULARY, WIDTH), (LENGTH, WIDTH), *of_block],
        *([of_block] * (stages - 2)),
        [*of_block, (WIDTH, VOCABULARY)],
    ]
    return [[torch.randn(shape).numpy() / math.sqrt(shape[0]) for shape in stage] for stage in shapes]


def batches():
    """Yield inputs and targets of each step: counting, with a random start and stride."""
    numbers = numpy.random.default_rng(0)
    for _ in range(STEPS):
        start, stride = numbers.integers(VOCABULARY, size=(MICRO_BATCHES, BATCH, 1)), numbers.integers(1, 4)
        tokens = (start + stride * numpy.arange(LENGTH + 1)) % VOCABULARY
        yield tokens[..., :-1].copy(), tokens[..., 1:].copy()


def in_one_piece(layers, parameters):
    """Return the losses of the same model without a runtime."""
    tensors = [[torch.from_numpy(each.copy()).requires_grad_() for each in stage] for stage in parameters]
    losses = []
    for inputs, targets in batches():
        total = torch.zeros(())
        for tokens, wanted in zip(inputs, targets, strict=True):
            x = torch.from_numpy(tokens)
            for layer, own in zip(layers, tensors, strict=True):
                x = layer(own, x)
            value = loss(x, torch.from_numpy(wanted))
            value.backward()
            total = total + value.detach()
        with torch.no_grad():
            for each in (each for stage in tensors for each in stage):
                each -= LEARNING_RATE / MICRO_BATCHES * each.grad
                each.grad = None
        losses.append(total.item() / MICRO_BATCHES)
    return losses


def in_a_pipeline(layers, parameters, islands=2, schedule=one_forward_one_backward):
    """Yield the loss of each step on the runtime."""
    devices = rt.make_virtual_device_set()
    slices = [devices.add_slice(1, island=f"island-{islands * stage // STAGES}") for stage in range(STAGES)]
    stages = stages_of(layers, loss, parameters, slices, learning_rate=LEARNING_RATE, micro_batches=MICRO_BATCHES)

    @rt.program
    def step(parameters, inputs, targets):
        return training_step(stages, parameters, inputs, targets, schedule)

    for inputs, targets in batches():
        value, parameters = step(parameters, list(inputs), list(targets))
        yield value.item()


def layers_of(stages):
    """Return the function of each stage."""
    return [first, *([block] * (stages - 2)), last]


def main():
    """Train the model on the runtime."""
    parser = argparse.ArgumentParser(description="Train a small GPT in a pipeline of stages, and print its losses.")
    parser.add_argument("--islands", type=int, choices=(1, 2, STAGES), default=2, help="on which the stages are")
    parser.add_argument("--schedule", choices=SCHEDULES, default="1f1b", help="the order of micro-batches")
    given = parser.parse_args()
    torch.set_num_threads(1)
    layers = layers_of(STAGES)
    parameters = initial_parameters(STAGES)
    expected = in_one_piece(layers, parameters)
    with rt.local(islands=given.islands, hosts=1, devices=STAGES // given.islands):
        losses = in_a_pipeline(layers, parameters, given.islands, SCHEDULES[given.schedule])
        for number, value in enumerate(losses):
            print(f"step {number}: loss {value:.6f}, in one piece {expected[number]:.6f}")


if __name__ == "__main__":
    main()
