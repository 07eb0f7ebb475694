"""What others than the registered jobs send on links: what switches tell, less what jobs are taken to send there.

Switches tell of windows of some milliseconds, and jobs send in bursts: one window says nothing. So what counts is the
mean of many, and only where it is further above nothing than chance and the jobs' iterations explain.
"""

import numpy as np
from numpy.typing import NDArray

from controller.telemetry.links import MAX_REPORTERS, WindowLoads
from controller.telemetry.planned_loads import PlannedLoads
from policies.flow_arrays import FloatArray
from topologies.fabric import Fabric

TIME_CONSTANT_S = 10.0
"""By what age a window counts e times less."""

STANDARD_ERRORS = 3.0
"""By so many the mean has to be above nothing."""

LEAST_SHARE = 0.05
"""Of a link's rate: less is what headers and acknowledgements, which no plan counts, may take."""

_SPACING_S = 0.2
"""Windows that are nearer to each other tell of the same burst: one of them counts."""

_LEAST_WINDOWS = 8.0
"""That count, before what a host tells is a mean at all."""

_MOST_CORRELATION = 0.99
_LEAST_SPREAD = 1e-12
"""What rounding leaves of no spread at all."""

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
"""What one host's windows of one link add up to, all as shares of its rate above what was expected: the number of the
host, -1 where there is none; when the last came and what it was; weights, their squares, and the time they tell of; the
weighted sums of windows, of their squares, of their products with the one before, of the variance that was expected,
and of the link time of iterations.
"""


class ForeignLoads:
    """Estimates by link, from windows of ``window_us``, of which every host's are averaged apart.

    A link's foreign load is the median of what the hosts find that tell of it, of two the lower; at most
    ``MAX_REPORTERS`` are listened to, each until it has told nothing for ``stale_after_s``.
    """

    def __init__(self, fabric: Fabric, window_us: float, stale_after_s: float) -> None:
        self._rates_bps = np.array([link.rate_bps for link in fabric.links])
        self._host_index = fabric.host_index
        self._spacing_s = max(_SPACING_S, window_us / 1e6)
        self._stale_after_s = stale_after_s
        self._expected = self._iteration_s = np.zeros(len(fabric.links))
        self._estimates = np.zeros((len(fabric.links), MAX_REPORTERS), _ESTIMATE)
        self._estimates["host"] = -1

    def expect(self, planned: PlannedLoads) -> None:
        """From now on the registered jobs are taken to send this."""
        num_links = len(self._rates_bps)
        self._expected, self._iteration_s = planned.utilisation[:num_links], planned.iteration_s[:num_links]

    def note(self, windows: WindowLoads, host: str) -> None:
        """A host tells of windows, one of each link at most."""
        number = self._host_index[host]
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
        """The foreign load of every link that carries any."""
        estimates = self._estimates.copy()  # another thread may ask
        shares, is_known = _shares(estimates)
        is_heard = is_known & (estimates["host"] >= 0) & (now_s - estimates["last_s"] <= self._stale_after_s)
        num_hosts = is_heard.sum(axis=1)
        in_order = np.sort(np.where(is_heard, shares, np.inf), axis=1)
        median = in_order[np.arange(len(in_order)), np.maximum(num_hosts - 1, 0) // 2]
        links = np.flatnonzero((num_hosts > 0) & (median > 0))
        return dict(zip(links.tolist(), (median[links] * self._rates_bps[links]).tolist(), strict=True))


def _shares(estimates: NDArray[np.void]) -> tuple[FloatArray, NDArray[np.bool_]]:
    """What others take of every link by every host's windows, 0 where that may be chance; and where there are enough.

    Jobs send at the full rate or not at all: of what is expected to be e on average, e(1 - e) is the variance at most.
    It is taken to be that at least, so that a few windows which happen to be alike are no certainty. Windows that tell
    of the same burst are worth less than their number: (1 - r)/(1 + r) of it for a series in which each value hangs on
    the one before alone, r being their correlation. In a time T one iteration of each job more than the mean may have
    been seen, which adds its link time over T.
    """
    weight = np.maximum(estimates["weight"], 1.0)
    number = weight**2 / np.maximum(estimates["squared_weight"], 1.0)
    is_known = number >= _LEAST_WINDOWS
    mean = estimates["sum"] / weight
    spread = np.maximum(estimates["squares"] / weight - mean**2, _LEAST_SPREAD)
    correlation = np.clip((estimates["products"] / weight - mean**2) / spread, 0.0, _MOST_CORRELATION)
    of_jobs = estimates["burstiness"] / weight * (1 + correlation) / (1 - correlation)
    error = np.sqrt(np.maximum(spread, of_jobs) / np.maximum(number - 1, 1.0))
    of_iterations = estimates["iteration_s"] / weight / np.maximum(estimates["time_s"], 1e-9)
    is_foreign = (mean >= LEAST_SHARE) & (mean > STANDARD_ERRORS * error + of_iterations)
    return np.where(is_foreign, mean, 0.0), is_known
