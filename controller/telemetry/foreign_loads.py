"""Estimate what others than the registered jobs send on links: the measured load less the planned one.

Switches report windows of some milliseconds and jobs send in bursts, so one window shows nothing. The estimate is the
mean of many windows, and counts only where it exceeds what chance and the jobs' iterations explain.
"""

import numpy as np
from numpy.typing import NDArray

from controller.telemetry.link_measurements import MAX_REPORTERS, WindowLoads
from controller.telemetry.planned_loads import PlannedLoads
from policies.arrays import FloatArray
from topologies.fabric import Fabric

TIME_CONSTANT_S = 10.0
"""Age at which a window weighs 1/e of a new one."""

STANDARD_ERRORS = 3.0
"""A foreign load is significant when its mean exceeds zero by this many."""

LEAST_SHARE = 0.05
"""Smallest foreign share of a link's rate; headers and acknowledgements, which no plan counts, take less."""

COUNTERS = "port counters"
"""Who reports what a switch without INT has counted, in the place of a host."""

_SPACING_S = 0.2
"""Windows closer together show the same burst, so only one of them counts."""

_LEAST_WINDOWS = 8.0
"""Effective number of windows that a host must have reported before their mean means anything."""

_MOST_CORRELATION = 0.99
_LEAST_SPREAD = 1e-12
"""Variance that rounding errors may leave of none."""

_ESTIMATE = np.dtype(
    [
        ("host", np.int64),
        ("last_s", np.float64),
        ("last", np.float64),
        ("weight", np.float64),
        ("squared_weight", np.float64),
        ("time_s", np.float64),
        ("sum", np.float64),
        ("squares", np.float64),
        ("products", np.float64),
        ("burstiness", np.float64),
        ("iteration_s", np.float64),
    ]
)
"""Running sums of the windows that one host reported of one link, as shares of the link's rate above the expected load.

``host`` is the number of the host, -1 for none; ``last_s`` and ``last`` are the time and value of the last window. Then
the weights, their squares and the time they span, and the weighted sums of: the windows, their squares, the products
with the window before, the expected variance, and the link time of one iteration of every job.
"""


class ForeignLoads:
    """Foreign loads by link, estimated from windows of ``window_us`` that hosts report.

    Each host's windows are averaged apart. The foreign load of a link is the median of the hosts' estimates, the lower
    of two; at most ``MAX_REPORTERS`` hosts count, each until it has reported nothing for ``stale_after_s``.
    """

    def __init__(self, fabric: Fabric, window_us: float, stale_after_s: float) -> None:
        self._rates_bps = np.array([link.rate_bps for link in fabric.links])
        self._reporter_index = {**fabric.host_index, COUNTERS: len(fabric.hosts)}
        self._spacing_s = max(_SPACING_S, window_us / 1e6)
        self._stale_after_s = stale_after_s
        self._expected = self._iteration_s = np.zeros(len(fabric.links))
        self._estimates = np.zeros((len(fabric.links), MAX_REPORTERS), _ESTIMATE)
        self._estimates["host"] = -1

    def set_expected(self, planned: PlannedLoads) -> None:
        """Set what the registered jobs are expected to send from now on."""
        num_links = len(self._rates_bps)
        self._expected, self._iteration_s = planned.utilisation[:num_links], planned.iteration_s[:num_links]

    def record(self, windows: WindowLoads, host: str) -> None:
        """Record the windows that a host, or COUNTERS, reports, at most one of each link."""
        number = self._reporter_index[host]
        of_link = self._estimates[windows.links]
        gaps_s = windows.came_s[:, np.newaxis] - of_link["last_s"]
        is_own = of_link["host"] == number
        is_free = (of_link["host"] < 0) | (gaps_s > self._stale_after_s)
        place = np.where(is_own.any(axis=1), is_own.argmax(axis=1), is_free.argmax(axis=1))
        rows = np.arange(len(place))
        is_new = is_free[rows, place]
        counts = is_new | (is_own[rows, place] & (gaps_s[rows, place] >= self._spacing_s))
        links, place, is_new = windows.links[counts], place[counts], is_new[counts]
        estimate = of_link[rows[counts], place]
        estimate[is_new] = np.zeros((), _ESTIMATE)
        gap_s = np.where(is_new, 0.0, gaps_s[rows[counts], place])
        expected = self._expected[links]
        above = np.minimum(windows.bps[counts] / self._rates_bps[links], 1.0) - expected
        kept = np.exp(-gap_s / TIME_CONSTANT_S)
        for name, added in (
            ("weight", 1.0),
            ("time_s", 0.0),
            ("sum", above),
            ("squares", above**2),
            ("products", above * estimate["last"]),
            ("burstiness", np.maximum(expected * (1 - expected), 0.0)),
            ("iteration_s", self._iteration_s[links]),
        ):
            estimate[name] = estimate[name] * kept + added
        estimate["squared_weight"] = estimate["squared_weight"] * kept**2 + 1.0
        estimate["time_s"] += TIME_CONSTANT_S * (1 - kept)
        estimate["host"], estimate["last_s"], estimate["last"] = number, windows.came_s[counts], above
        self._estimates[links, place] = estimate

    def loads_bps(self, now_s: float) -> dict[int, float]:
        """Return the foreign load of every link that carries any."""
        estimates = self._estimates.copy()  # planning reads in another thread
        median = self._median(*_shares(estimates), estimates, now_s)
        links = np.flatnonzero(median > 0)
        return dict(zip(links.tolist(), (median[links] * self._rates_bps[links]).tolist(), strict=True))

    def utilisation(self, now_s: float) -> FloatArray:
        """Return by link what all send, as a mean share of its rate; NaN where hosts have reported too few windows."""
        weight, number = _weights(self._estimates)
        mean = self._expected[:, np.newaxis] + self._estimates["sum"] / weight
        return np.maximum(self._median(mean, number >= _LEAST_WINDOWS, self._estimates, now_s), 0.0)

    def _median(
        self, shares: FloatArray, is_known: NDArray[np.bool_], estimates: NDArray[np.void], now_s: float
    ) -> FloatArray:
        """Return by link the median over the hosts that report it, of two the lower; NaN where none does."""
        is_heard = is_known & (estimates["host"] >= 0) & (now_s - estimates["last_s"] <= self._stale_after_s)
        num_hosts = is_heard.sum(axis=1)
        in_order = np.sort(np.where(is_heard, shares, np.inf), axis=1)
        median: FloatArray = in_order[np.arange(len(in_order)), np.maximum(num_hosts - 1, 0) // 2]
        return np.where(num_hosts > 0, median, np.nan)


def _weights(estimates: NDArray[np.void]) -> tuple[FloatArray, FloatArray]:
    """Return the weight of every host's windows, and how many windows of the same weight they amount to."""
    weight: FloatArray = np.maximum(estimates["weight"], 1.0)
    return weight, weight**2 / np.maximum(estimates["squared_weight"], 1.0)


def _shares(estimates: NDArray[np.void]) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return the foreign share of every link by every host's windows, 0 if not significant, and where it is known.

    Jobs send at the full rate or not at all, so an expected load e has a variance of at most e(1 - e). The variance is
    taken to be at least that: a few windows that happen to be alike are no certainty. Windows of the same burst are
    correlated: n values of a first-order autoregressive series with correlation r are worth n (1 - r)/(1 + r). Finally,
    a span T may contain one iteration of each job more than the mean, which adds the iteration's link time over T.
    """
    weight, number = _weights(estimates)
    is_known = number >= _LEAST_WINDOWS
    mean = estimates["sum"] / weight
    spread = np.maximum(estimates["squares"] / weight - mean**2, _LEAST_SPREAD)
    correlation = np.clip((estimates["products"] / weight - mean**2) / spread, 0.0, _MOST_CORRELATION)
    of_jobs = estimates["burstiness"] / weight * (1 + correlation) / (1 - correlation)
    error = np.sqrt(np.maximum(spread, of_jobs) / np.maximum(number - 1, 1.0))
    of_iterations = estimates["iteration_s"] / weight / np.maximum(estimates["time_s"], 1e-9)
    is_foreign = (mean >= LEAST_SHARE) & (mean > STANDARD_ERRORS * error + of_iterations)
    return np.where(is_foreign, mean, 0.0), is_known
