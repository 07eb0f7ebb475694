"""Train the small GPT on two islands and print its losses: python docs/examples/two_islands_gpt.py.

Each island takes half of every batch, each of its devices half of that. Gradients are summed inside of the islands,
then across. The result is compared with the same model trained in one piece on whole batches.
"""

import torch
from pipelined_gpt import LEARNING_RATE, batches, first, in_one_piece, initial_parameters, last, loss

import runtime as rt
from runtime.torch_replicas import replicas_on

ISLANDS, REPLICAS, FIRST = 2, 2, 6


def model(parameters, tokens):
    """The whole model: the six parameters of the first stage, then those of the last."""
    return last(parameters[FIRST:], first(parameters[:FIRST], tokens))


def on_islands(start):
    """Yield the loss of each step on the runtime, and the parameters that each island then holds."""
    devices = rt.make_virtual_device_set()
    slices = [devices.add_slice(REPLICAS, island=f"island-{number}") for number in range(ISLANDS)]
    replicas = replicas_on(model, loss, start, slices, learning_rate=LEARNING_RATE)

    @rt.program
    def step(parameters, inputs, targets):
        return replicas(parameters, inputs, targets)

    parameters = [start] * ISLANDS
    for inputs, targets in batches():
        halves = [list(each.reshape(ISLANDS, -1, each.shape[-1])) for each in (inputs, targets)]
        value, parameters = step(parameters, *halves)
        yield value.item(), parameters


def main():
    """Train the model on the runtime."""
    torch.set_num_threads(1)
    stages = initial_parameters(2)
    expected = in_one_piece([first, last], stages)
    with rt.local(islands=ISLANDS, hosts=1, devices=REPLICAS):
        for number, (value, held) in enumerate(on_islands([each for stage in stages for each in stage])):
            print(f"step {number}: loss {value:.6f}, in one piece {expected[number]:.6f}")
            one, other = (each[0].numpy() for each in held)
        print("islands are the same" if (one == other).all() else "islands differ")


if __name__ == "__main__":
    main()
