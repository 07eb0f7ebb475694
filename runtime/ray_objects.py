"""Objects of Ray at the edges of programs: references as arguments, and results as objects.

A program that has references of Ray has imported it. So nothing here imports it before.
"""

import sys
from collections.abc import Sequence
from typing import Any


def with_objects(arguments: Sequence[Any]) -> Sequence[Any]:
    """Return arguments with objects of Ray in place of references to them, once these are there.

    Raises what Ray raises where there are none.
    """
    ray = sys.modules.get("ray")
    if ray is None or not any(isinstance(each, ray.ObjectRef) for each in arguments):
        return arguments
    objects = iter(ray.get([each for each in arguments if isinstance(each, ray.ObjectRef)]))
    return [next(objects) if isinstance(each, ray.ObjectRef) else each for each in arguments]


def reference_to(data: Any) -> Any:
    """Give data to Ray, and return the reference. Raises ValueError where there is no connection to a cluster."""
    ray = _connected()
    if ray is None:
        raise ValueError("this program is connected to no Ray cluster: call ray.init first")
    return ray.put(data)


def cluster_address() -> str:
    """Return the address of the cluster that this program is connected to; ``auto`` where it is to none."""
    ray = _connected()
    return "auto" if ray is None else str(ray.get_runtime_context().gcs_address)


def _connected() -> Any:
    """Return Ray's module, if this program has connected to a cluster."""
    ray = sys.modules.get("ray")
    return ray if ray is not None and ray.is_initialized() else None
