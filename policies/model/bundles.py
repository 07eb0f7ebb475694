"""Bundles: identical flows that are simulated as one."""

from dataclasses import dataclass

import numpy as np

from policies.rates.network import FloatArray, IntArray, Network


@dataclass(frozen=True, slots=True, eq=False)
class Bundles:
    """The bundles of a simulation until paths or tiers change; each is one flow of ``network``.

    ``weights`` are the numbers of flows in the bundles; all flows of a bundle have the same path, size, start and end.
    Bundles of smaller ``tiers`` are served first. Bytes sent are counted under ``levels`` and arrive ``latency_ps``
    later.

    Raises ValueError if the arrays differ in length, for a weight that is not positive and finite, and for a negative
    latency; the message names the bundle.
    """

    network: Network
    weights: FloatArray
    tiers: IntArray
    levels: IntArray
    latency_ps: IntArray

    def __post_init__(self) -> None:
        lengths = {len(self.weights), len(self.tiers), len(self.levels), len(self.latency_ps)}
        if lengths != {self.network.num_flows}:
            raise ValueError(f"expected weights, tiers, levels and latencies of {self.network.num_flows} bundles")
        if not (sound := (self.weights > 0) & (self.weights < np.inf)).all():
            bundle = int((~sound).argmax())
            raise ValueError(f"bundle {bundle}: its weight must be positive and finite, not {self.weights[bundle]}")
        if (self.latency_ps < 0).any():
            raise ValueError(f"bundle {int((self.latency_ps < 0).argmax())}: its latency must not be negative")
