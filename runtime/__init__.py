"""A single-controller runtime: programs over islands of devices, written as if there were one machine.

After *Pathways: Asynchronous Distributed Dataflow for ML* (Barham et al., MLSys 2022). ::

    import runtime as rt

    with rt.local(islands=2):
        slice_ = rt.make_virtual_device_set().add_slice(devices=2)
        double = rt.pmap(lambda x: x * 2.0, devices=slice_)
        print(double(numpy.array([1.0, 2.0])))
"""

from runtime.arrays import ArraySpec, Sharding
from runtime.client.array import Array
from runtime.client.current import connect, local, make_virtual_device_set, on_ray
from runtime.client.local import LocalRuntime
from runtime.client.session import Runtime, needed_in
from runtime.client.slices import VirtualDeviceSet, VirtualSlice
from runtime.collectives import all_gather, all_reduce, num_shards, reduce_scatter, shard_index
from runtime.control import cond, while_loop
from runtime.errors import (
    ComputationError,
    DisconnectedError,
    InputEndedError,
    LostError,
    RefusedError,
    RuntimeFailure,
    UnboundedError,
)
from runtime.functions import Function, function, timer
from runtime.inputs import InputPipeline, input_pipeline
from runtime.mapping import Mapped, pmap
from runtime.program import Program
from runtime.resources.slices import Constraints
from runtime.server.settings import Quota
from runtime.substrates.interface import NetworkHost
from runtime.tracing import TracedArray, TracedFunction, program

__all__ = [
    "Array",
    "ArraySpec",
    "ComputationError",
    "Constraints",
    "DisconnectedError",
    "Function",
    "InputEndedError",
    "InputPipeline",
    "LocalRuntime",
    "LostError",
    "Mapped",
    "NetworkHost",
    "Program",
    "Quota",
    "RefusedError",
    "Runtime",
    "RuntimeFailure",
    "Sharding",
    "TracedArray",
    "TracedFunction",
    "UnboundedError",
    "VirtualDeviceSet",
    "VirtualSlice",
    "all_gather",
    "all_reduce",
    "cond",
    "connect",
    "function",
    "input_pipeline",
    "local",
    "make_virtual_device_set",
    "needed_in",
    "num_shards",
    "on_ray",
    "pmap",
    "program",
    "reduce_scatter",
    "shard_index",
    "timer",
    "while_loop",
]
