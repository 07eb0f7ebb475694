"""Tokens go to one of two experts, and nobody knows beforehand how many to which: python docs/examples/routing.py."""

import numpy

import runtime as rt


@rt.function(library="numpy", outputs=[rt.ArraySpec((None, 2), "float32")] * 2)
def route(tokens):
    """Return the tokens of each expert."""
    is_first = tokens[:, 0] < 0
    return tokens[is_first], tokens[~is_first]


@rt.function(library="numpy", outputs=lambda tokens: tokens)
def expert(tokens):
    """Compute on whatever comes."""
    return tokens * 10


with rt.local(hosts=2, devices=2):
    devices = rt.make_virtual_device_set()
    routed = rt.pmap(route, devices=devices.add_slice(2))
    experts = [rt.pmap(expert, devices=devices.add_slice(1), in_axes=None) for _ in range(2)]

    @rt.program
    def layer(tokens):
        return [run(rows) for run, rows in zip(experts, routed(tokens), strict=True)]

    tokens = numpy.array([[-1, 0], [2, 1], [3, 2], [4, 3]], numpy.float32)
    for rows in layer(tokens):
        print(len(rows), "tokens:", rows.numpy().tolist())
