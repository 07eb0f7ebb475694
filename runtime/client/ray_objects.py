"""Objects of Ray at the edges of programs: references as arguments, and results as references.

A program that has no references of Ray has not imported it, so nothing here does before.
"""

import sys
from typing import Any


def is_reference(argument: object) -> bool:
    """Return whether an argument is a reference of Ray to an object."""
    ray = sys.modules.get("ray")
    return ray is not None and isinstance(argument, ray.ObjectRef)


def referred_to(reference: Any) -> Any:
    """Wait for an object of Ray, and return it. Raises what Ray raises where there is none."""
    return sys.modules["ray"].get(reference)


def reference_to(data: Any) -> Any:
    """Give data to Ray, and return the reference to them."""
    import ray

    return ray.put(data)


def ray_address() -> str:
    """Return the address of the cluster that this program is connected to; ``auto`` where it is to none."""
    ray = sys.modules.get("ray")
    if ray is None or not ray.is_initialized():
        return "auto"
    return str(ray.get_runtime_context().gcs_address)
