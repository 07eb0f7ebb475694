"""Bundles: flows that are alike in everything that counts, as one."""

from dataclasses import dataclass

import numpy as np

from policies.rates.network import FloatArray, IntArray, Network


@dataclass(frozen=True, slots=True, eq=False)
class Bundles:
    """What there is to be under way until paths or tiers change: a bundle is one flow of ``network``.

    ``weights`` tells how many flows a bundle is; all of them have its path, size, start and end. A bundle of a smaller
    ``tier`` is served first, and ``levels`` are those that what it sends is counted under. What it has sent arrives
    ``latency_ps`` later. Raises ValueError where these are not as many as the network's flows, and, naming the bundle,
    for a weight that is not positive and finite or a latency that is negative.
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
