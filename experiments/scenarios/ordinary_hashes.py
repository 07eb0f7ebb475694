"""What ordinary switches of a run hash by: nothing that its controller knows."""

from topologies.ecmp import hash_multipliers
from topologies.routing import Routing


def as_ordinary_switches_hash(believed: Routing, seed: int) -> Routing:
    """Return the routing of a run, in which ordinary switches hash otherwise than the controller believes."""
    ordinary = sorted(believed.fabric.ordinary_switches)
    return believed.with_hash(hash_multipliers(ordinary, ~seed)) if ordinary else believed
