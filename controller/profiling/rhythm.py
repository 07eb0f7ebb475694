"""Find the rhythm of a job's traffic: how many bytes an iteration sends, and how long iterations take.

Iterations differ in length, but hardly in what they send. So the period is searched in the time that passes from byte
to byte, as a function of the bytes sent: there a gap recurs after exactly an iteration's bytes, however long it lasts.
Crux (section 5) takes the length of iterations from the Fourier transform of the traffic over time, which smears where
lengths vary.
"""

from dataclasses import dataclass

import numpy as np

from policies.arrays import FloatArray

MIN_ITERATIONS = 8
"""The fewest iterations that make a rhythm."""

_BINS = 1 << 13
_MOST_ITERATIONS = _BINS // 32
_BLURS_BINS = 5, 33, 129
"""Widths of the blur: a wider one tolerates iterations that differ more in bytes, but hides more of their inside."""
_MULTIPLES = 8
_SAME = 0.9
"""Share of the best lag's strength above which a shorter lag wins, as the longer one may be only its multiple."""
_PART = 0.5
"""Share of the best lag's strength above which a part of it may be the period."""
_ASIDE = 0.02
"""How far a multiple may be from a whole number."""
_LEAST_STRENGTH = 0.3
_EVIDENCE = 10.0
"""Required beyond twice the penalty of the Bayesian information criterion before several cycles make an iteration."""
_NOTHING = 1e-18
_PHASES = 8
_BUSIEST = 0.9
_LONGEST_CYCLE = 3.0
"""In medians. Anything longer, a checkpoint for example, is no iteration."""


@dataclass(frozen=True, slots=True)
class Rhythm:
    """The recurring part of a job's traffic: an iteration sends ``iteration_bytes`` in ``period_s`` on average.

    ``gap_s`` is the longest time at a stretch in which it sends nothing. ``strength`` is 1 where every iteration is
    like any other, 0 where nothing recurs. ``iterations`` counts those seen whole.
    """

    iteration_bytes: float
    period_s: float
    gap_s: float
    iterations: int
    strength: float


def find_rhythm(times_s: FloatArray, counted_bytes: FloatArray) -> Rhythm | None:
    """Return the rhythm of a counter that was read at these times, None where there is none, or not yet.

        >>> times_s = np.arange(0, 20, 0.02)
        >>> rate = 1e9 * (times_s % 1.0 < 0.4)  # 0.4 s of every second
        >>> round(find_rhythm(times_s, np.cumsum(rate) * 0.02).period_s, 1)
        1.0

    Bursts of the same length at the same distance count as iterations of their own.

    Raises:
        ValueError: Times do not ascend, or counts fall.
    """
    if times_s.shape != counted_bytes.shape or np.any(np.diff(times_s) <= 0) or np.any(np.diff(counted_bytes) < 0):
        raise ValueError("times must ascend, and counts must not fall")
    changes = np.flatnonzero(np.diff(counted_bytes))
    if len(changes) < 2 * MIN_ITERATIONS:
        return None
    sent = slice(changes[0], changes[-1] + 2)
    counter = _Counter(times_s[sent], counted_bytes[sent])
    passing_s = counter.passing_s(_BINS)
    # A length that only a few iterations exceed is no part of every iteration.
    few = MIN_ITERATIONS // 2
    passing_s = np.minimum(passing_s, np.partition(passing_s, -few)[-few])
    # Roots, because gaps differ more in length than in position.
    found = next(filter(None, (_fundamental(_blurred(np.sqrt(passing_s), width)) for width in _BLURS_BINS)), None)
    if found is None:
        return None
    bins, strength = found
    bins *= _parts(_Cycles(counter, passing_s, bins).lengths_s)
    cycles = _Cycles(counter, passing_s, bins)
    usual_s = cycles.lengths_s[cycles.lengths_s <= _LONGEST_CYCLE * np.median(cycles.lengths_s)]
    if len(usual_s) < MIN_ITERATIONS - 1:
        return None
    period_s = float(usual_s.mean())
    return Rhythm(cycles.bytes, period_s, min(cycles.longest_gap_s(), period_s), len(usual_s), strength)


class _Counter:
    """A counter's readings, as a function from bytes sent to time."""

    def __init__(self, times_s: FloatArray, counted_bytes: FloatArray) -> None:
        self._times_s = times_s
        self._sent_bytes = counted_bytes - counted_bytes[0]
        self.total_bytes = float(self._sent_bytes[-1])
        samples_bytes = np.diff(counted_bytes)
        self.busiest_bytes = float(np.quantile(samples_bytes[samples_bytes > 0], _BUSIEST))
        """Bytes of a sample while the job sends at its full rate."""
        self.sample_s = float(np.median(np.diff(times_s)))

    def times_at(self, sent_bytes: FloatArray) -> FloatArray:
        """Return the times at which so many bytes had been sent."""
        return np.interp(sent_bytes, self._sent_bytes, self._times_s)

    def passing_s(self, bins: int) -> FloatArray:
        """Return the time that each of so many equal parts of the bytes took."""
        return np.diff(self.times_at(np.linspace(0.0, self.total_bytes, bins + 1)))


class _Cycles:
    """Traffic cut into equal numbers of bytes, ``bins`` each, at a phase where little time passes."""

    def __init__(self, counter: _Counter, passing_s: FloatArray, bins: float) -> None:
        self.bytes = bins / len(passing_s) * counter.total_bytes
        self._counter = counter
        phases = max(_PHASES, round(bins / 2))
        phase = (np.arange(len(passing_s)) % bins * (phases / bins)).astype(np.int64) % phases
        self._folded_s = np.bincount(phase, passing_s, phases) * bins / len(passing_s)
        """Mean time that each phase of a cycle takes."""
        calm = int(np.argmin(np.convolve(np.tile(self._folded_s, 3), np.hanning(7), mode="same")[phases : 2 * phases]))
        begin = calm / phases
        cuts = np.arange(begin, len(passing_s) / bins)
        self.lengths_s = np.diff(counter.times_at(cuts * self.bytes))

    def longest_gap_s(self) -> float:
        """Return the longest time in which a cycle sends nothing, on average, less the blur of samples at its ends."""
        phases = len(self._folded_s)
        phase_bytes = self.bytes / phases
        half = min(int(np.ceil(self._counter.busiest_bytes / phase_bytes)) + 1, (phases - 1) // 2)
        width = 2 * half + 1
        around_s = np.concatenate([self._folded_s[-half:], self._folded_s, self._folded_s[:half]])
        longest_s = float(np.convolve(around_s, np.ones(width), mode="valid").max())
        sending_s = width * phase_bytes / self._counter.busiest_bytes * self._counter.sample_s
        return max(0.0, longest_s - sending_s)


def _blurred(signal: FloatArray, width: int) -> FloatArray:
    window = np.hanning(width + 2)
    return np.convolve(signal, window / window.sum(), mode="same")


def _fundamental(signal: FloatArray) -> tuple[float, float] | None:
    """Return the shortest period of a signal, in bins, and the share of its variance that recurs with it.

    Where some iterations have a gap and others none, a multiple may explain more by chance. If its parts are alike,
    each of them is the period.

    Returns:
        None where nothing recurs.
    """
    correlation = _autocorrelation(signal)
    if correlation[0] <= 0:
        return None
    correlation /= correlation[0]
    shortest, longest = len(signal) // _MOST_ITERATIONS, len(signal) // MIN_ITERATIONS
    middle = correlation[shortest : longest + 1]
    is_peak = (middle >= correlation[shortest - 1 : longest]) & (middle >= correlation[shortest + 1 : longest + 2])
    peaks = np.flatnonzero(is_peak & (middle >= _LEAST_STRENGTH / 2)) + shortest
    candidates = [_refined(correlation, int(peak)) for peak in peaks]
    best = max((strength for _, strength in candidates), default=0.0)
    if best < _LEAST_STRENGTH:
        return None
    period, strength = min(candidate for candidate in candidates if candidate[1] >= _SAME * best)
    for part, part_strength in candidates:
        parts = round(period / part)
        is_whole = abs(period / part - parts) <= _ASIDE
        if parts > 1 and is_whole and part_strength >= _PART * best and _are_alike(signal, period / parts, parts):
            return period / parts, part_strength
    return period, strength


def _are_alike(signal: FloatArray, part_bins: float, parts: int) -> bool:
    """Return whether the parts of an iteration differ by less than chance, so that each part is an iteration.

    This is a two-way analysis of variance: differences between whole iterations do not count.
    """
    phases, iterations = round(part_bins), int(len(signal) / (part_bins * parts))
    places = np.arange(iterations * parts * phases) * (part_bins / phases)
    shapes = np.interp(places, np.arange(len(signal)), signal).reshape(iterations, parts, phases)
    shapes -= shapes.mean(axis=1, keepdims=True)
    by_part = iterations * (shapes.mean(axis=0) ** 2).sum()
    return bool(by_part < (shapes**2).sum() / 2)


def _autocorrelation(signal: FloatArray) -> FloatArray:
    """Return the autocorrelation by lag; each lag is a mean over the pairs that it has."""
    size = len(signal)
    spectrum = np.fft.rfft(signal - signal.mean(), 2 * size)
    products = np.fft.irfft(np.abs(spectrum) ** 2)[:size]
    return np.asarray(products / np.arange(size, 0, -1), dtype=np.float64)


def _refined(correlation: FloatArray, lag: int) -> tuple[float, float]:
    """Refine a lag to a fraction by its multiples; return it with the mean correlation there, weighted by pairs."""
    period, heights, pairs = float(lag), [], []
    for multiple in range(1, _MULTIPLES + 1):
        near = round(multiple * period)
        if near + 2 >= len(correlation) * (MIN_ITERATIONS - 1) // MIN_ITERATIONS:
            break
        place = near - 2 + int(np.argmax(correlation[near - 2 : near + 3]))
        heights.append(correlation[place])
        pairs.append(len(correlation) - place)
        period = place / multiple
    return period, float(np.average(heights, weights=pairs))


def _parts(lengths_s: FloatArray) -> int:
    """Return how many of these cycles make an iteration: as many as differ in length systematically.

    It is the number with the best Bayesian information criterion, where every cycle of an iteration has its own mean.
    """
    num_cycles = len(lengths_s)
    best, best_score = 1, np.inf
    for parts in range(1, num_cycles // MIN_ITERATIONS + 1):
        left = sum(((own - own.mean()) ** 2).sum() for own in (lengths_s[part::parts] for part in range(parts)))
        penalty = 2 * (parts - 1) * np.log(num_cycles) + _EVIDENCE * (parts > 1)
        score = num_cycles * np.log(max(left, _NOTHING)) + penalty
        if score < best_score:
            best, best_score = parts, score
    return best
