"""A program on two islands of a Ray cluster, between two tasks of Ray: python docs/examples/on_ray.py."""

import numpy
import ray

import runtime as rt


@ray.remote(num_cpus=0)
def load():
    """Stand for a job of Ray that makes data."""
    return numpy.arange(4.0)


@ray.remote(num_cpus=0)
def store(x):
    """Stand for a job of Ray that takes results."""
    return f"stored {x.tolist()}"


@rt.function(library="numpy", outputs=lambda x: x)
def add_one(x):
    """Add 1."""
    return x + 1


ray.init(log_to_driver=False)

with rt.on_ray(islands=2, hosts=1, devices=2, cpus_per_device=0.25):
    devices = rt.make_virtual_device_set()
    here = rt.pmap(add_one, devices=devices.add_slice(2, island="island-0"))
    there = rt.pmap(add_one, devices=devices.add_slice(2, island="island-1"))

    @rt.program
    def f(x):
        return there(here(x))

    result = f(load.remote())
    print(ray.get(store.remote(result.object_ref())))
