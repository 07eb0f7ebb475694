"""The star on each back end in virtual time."""

from experiments.compression.conditions import Conditions
from experiments.compression.star import HOP_S, Star
from experiments.scenarios.backend import Backend

BACKENDS = (Backend.SIMULATOR, Backend.EMULATOR)
"""Those on which collectives are carried in virtual time."""


def star_on(backend: Backend, conditions: Conditions, hop_s: float = HOP_S) -> Star:
    """Return the network under conditions on a back end, with what a message without content takes.

    Raises:
        ValueError: It has no virtual time.
    """
    # Each takes a while to import.
    match backend:
        case Backend.SIMULATOR:
            from experiments.compression.simulated_star import SimulatedStar

            return SimulatedStar(conditions, hop_s)
        case Backend.EMULATOR:
            from experiments.compression.emulated_star import EmulatedStar

            return EmulatedStar(conditions, hop_s)
    raise ValueError(f"expected one of {', '.join(BACKENDS)}, not {backend}")
