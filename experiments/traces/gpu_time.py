"""GPU-seconds over time, noted in spans within which they count as even."""

import numpy as np

from policies.rates.network import FloatArray


class GpuTime:
    """Spans of GPU-seconds, from which means over intervals are made."""

    def __init__(self) -> None:
        self.total_s = 0.0
        self._spans: list[tuple[float, float, float]] = []

    def note(self, from_s: float, to_s: float, gpu_s: float) -> None:
        """So many GPU-seconds within a span; one without length has none."""
        if to_s > from_s:
            self.total_s += gpu_s
            self._spans.append((from_s, to_s, gpu_s))

    def means(self, interval_s: float, num_intervals: int) -> FloatArray:
        """Mean GPUs in each of so many intervals from 0 on."""
        spans = np.array(self._spans).reshape(-1, 3)
        gpus = spans[:, 2] / (spans[:, 1] - spans[:, 0])
        times_s, changes = np.concatenate((spans[:, 0], spans[:, 1])), np.concatenate((gpus, -gpus))
        order = times_s.argsort()
        times_s, level = np.append(0.0, times_s[order]), np.append(0.0, np.cumsum(changes[order]))
        total = np.append(0.0, np.cumsum(level[:-1] * np.diff(times_s)))
        bounds_s = interval_s * np.arange(num_intervals + 1)
        return np.asarray(np.diff(np.interp(bounds_s, times_s, total)) / interval_s)
