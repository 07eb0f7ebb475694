"""Train the small GPT with replicas, and print its losses: python docs/examples/data_parallel_gpt.py.

The model is that of pipelined_gpt.py, in two stages. Each stage has two replicas, on the two devices of its slice. Each
replica trains on its half of every micro-batch; gradients are averaged over the replicas. The result is compared with
the same model trained in one piece on whole batches.
"""

import torch
from pipelined_gpt import LEARNING_RATE, MICRO_BATCHES, batches, first, in_one_piece, initial_parameters, last, loss

import runtime as rt
from runtime.pipelines import training_step
from runtime.torch_stages import stages_of

STAGES, REPLICAS = 2, 2


def main():
    """Train the model on the runtime."""
    torch.set_num_threads(1)
    layers = [first, last]
    parameters = initial_parameters(STAGES)
    expected = in_one_piece(layers, parameters)
    with rt.local(islands=STAGES, hosts=1, devices=REPLICAS):
        devices = rt.make_virtual_device_set()
        slices = [devices.add_slice(REPLICAS) for _ in range(STAGES)]
        stages = stages_of(layers, loss, parameters, slices, learning_rate=LEARNING_RATE, micro_batches=MICRO_BATCHES)

        @rt.program
        def step(parameters, inputs, targets):
            return training_step(stages, parameters, inputs, targets)

        for number, (inputs, targets) in enumerate(batches()):
            value, parameters = step(parameters, list(inputs), list(targets))
            print(f"step {number}: loss {value.item():.6f}, in one piece {expected[number]:.6f}")

        stack = rt.pmap(lambda x: x.unsqueeze(0), devices=slices[0], in_axes=None)  # a row for each replica
        one, other = stack(parameters[0][0]).numpy()
        print("replicas are the same" if (one == other).all() else "replicas differ")


if __name__ == "__main__":
    main()
