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


def main():
    """Train the model on the runtime."""
    torch.set_num_threads(1)
    stages = initial_parameters(2)
    expected = in_one_piece([first, last], stages)
    start = [each for stage in stages for each in stage]
    with rt.local(islands=ISLANDS, hosts=1, devices=REPLICAS):
        devices = rt.make_virtual_device_set()
        slices = [devices.add_slice(REPLICAS, island=f"island-{number}") for number in range(ISLANDS)]
        replicas = replicas_on(model, loss, start, slices, learning_rate=LEARNING_RATE)

        @rt.program
        def step(parameters, inputs, targets):
            return replicas(parameters, inputs, targets)

        parameters = [start] * ISLANDS
        for number, (inputs, targets) in enumerate(batches()):
            halves = [list(each.reshape(ISLANDS, -1, each.shape[-1])) for each in (inputs, targets)]
            value, parameters = step(parameters, *halves)
            print(f"step {number}: loss {value.item():.6f}, in one piece {expected[number]:.6f}")
        one, other = (each[0].numpy() for each in parameters)
        print("islands are the same" if (one == other).all() else "islands differ")


if __name__ == "__main__":
    main()
