"""Coflow traces on one big switch, in the two published formats.

Both start with a line of two numbers: ports per side, and coflows. Each further line is a coflow. The coflow benchmark
(github.com/coflow/coflow-benchmark) lists name, arrival in ms, number of mappers and their ports, number of reducers,
and ``port:megabytes`` of each reducer, which the mappers send in equal shares. Sincronia's generator
(github.com/sincronia-coflow/workload-generator) lists name, arrival in ms, numbers of flows, sources and destinations,
then ``source destination megabytes`` of each flow. The traces that its authors published with their implementation
(github.com/sincronia-coflow/implementation, ``app/traces``) announce wrong numbers of sources and destinations for
about one coflow in four. The flows count as listed, and the trace says how many coflows disagree.

A megabyte is 2^20 bytes. Flows within a rack use both ports like any other flow. All bytes of a coflow from one port to
another form one flow.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from topologies.printable import quoted

BYTES_PER_MEGABYTE = float(1 << 20)
MOST_PORTS = 4096
"""Fair sharing needs memory in proportion to the square of the number of ports."""

MOST_FLOWS = 10_000_000
"""The most coflows of a trace, and flows of all of them."""
MOST_BYTES = 1 << 28
"""The largest file."""

_MOST_MEGABYTES = float(1 << 43)
_LEAST_MEGABYTES = 1e-6
"""About a byte; divided by a rate, much less would be no time at all."""
_MOST_DIGITS = 18
_LATEST_MS = 1e12
"""Some 31 years; a double still resolves microseconds then."""

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


class CoflowTraceError(ValueError):
    """A trace that does not follow its format; the message names line and column, where a column is a word."""


@dataclass(frozen=True, slots=True, eq=False)
class CoflowTrace:
    """Coflows by arrival; those of equal arrival keep the file's order.

    The flows of coflow ``c`` are ``starts[c]`` to ``starts[c + 1]``, ordered by destination and then by source. Each
    sends ``size_bytes`` from port ``sources`` to port ``destinations``. ``num_miscounted`` coflows announce other
    numbers of sources or destinations than their flows have.
    """

    num_ports: int
    names: tuple[str, ...]
    arrivals_s: FloatArray
    starts: IntArray
    sources: IntArray
    destinations: IntArray
    size_bytes: FloatArray
    num_miscounted: int

    @property
    def num_flows(self) -> int:
        """Flows of all coflows together."""
        return len(self.size_bytes)

    @property
    def warning(self) -> str | None:
        """What to tell whoever gave the trace; None where it agrees with itself."""
        if not self.num_miscounted:
            return None
        return (
            f"{self.num_miscounted:,} of {len(self.names):,} coflows announce other numbers of sources or destinations"
            " than their flows have; the flows count as listed"
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Coflow:
    name: str
    arrival_s: float
    sources: IntArray
    destinations: IntArray
    size_bytes: FloatArray
    is_miscounted: bool


def parse_coflow_trace(text: str) -> CoflowTrace:
    """Parse a trace in either format. Raises CoflowTraceError for the first error."""
    header, *lines = text.splitlines() or [""]
    words = _Words(1, header)
    num_ports, num_coflows = words.count("number of ports", MOST_PORTS), words.count("number of coflows")
    words.end()
    while lines and not lines[-1].strip():
        lines.pop()
    read = _read_benchmark if any(":" in line for line in lines) else _read_generated
    coflows = list(_bounded(read, lines[:num_coflows], num_ports))
    if len(lines) != num_coflows:
        where = f"line {2 + min(num_coflows, len(lines))}, column 1"
        raise CoflowTraceError(f"{where}: line 1 announces {num_coflows} coflows, {len(lines)} follow")
    coflows.sort(key=lambda coflow: coflow.arrival_s)
    return CoflowTrace(
        num_ports,
        tuple(coflow.name for coflow in coflows),
        np.array([coflow.arrival_s for coflow in coflows]),
        np.array([0, *accumulate(len(coflow.size_bytes) for coflow in coflows)], dtype=np.int64),
        np.concatenate([coflow.sources for coflow in coflows]),
        np.concatenate([coflow.destinations for coflow in coflows]),
        np.concatenate([coflow.size_bytes for coflow in coflows]),
        sum(coflow.is_miscounted for coflow in coflows),
    )


def _bounded(read: "_Reader", lines: Sequence[str], num_ports: int) -> Iterator[_Coflow]:
    num_flows = 0
    for number, line in enumerate(lines, 2):
        coflow = read(_Words(number, line), num_ports)
        num_flows += len(coflow.size_bytes)
        if num_flows > MOST_FLOWS:
            raise CoflowTraceError(f"line {number}, column 1: expected at most {MOST_FLOWS:,} flows in all")
        yield coflow


def _read_benchmark(words: "_Words", num_ports: int) -> _Coflow:
    name, arrival_s = words.text("name"), words.milliseconds("arrival")
    mappers = [words.port("mapper", num_ports) for _ in range(words.count("number of mappers"))]
    reducers, shares = [], []
    for _ in range(words.count("number of reducers")):
        reducer, megabytes = words.pair("reducer", "megabytes")
        reducers.append(words.as_port(reducer, "reducer", num_ports))
        shares.append(words.as_bytes(megabytes) / len(mappers))
    words.end()
    if (num_flows := len(mappers) * len(reducers)) > MOST_FLOWS:
        words.refuse(f"expected at most {MOST_FLOWS:,} flows, one from each mapper to each reducer, got {num_flows:,}")
    sources, destinations = np.tile(mappers, len(reducers)), np.repeat(reducers, len(mappers))
    return _coflow(name, arrival_s, sources, destinations, np.repeat(shares, len(mappers)))


def _read_generated(words: "_Words", num_ports: int) -> _Coflow:
    name, arrival_s = words.text("name"), words.milliseconds("arrival")
    num_flows = words.count("number of flows")
    announced = words.count("number of sources"), words.count("number of destinations")
    sources, destinations, sizes = [], [], []
    for _ in range(num_flows):
        sources.append(words.port("source", num_ports))
        destinations.append(words.port("destination", num_ports))
        sizes.append(words.as_bytes(words.text("megabytes")))
    words.end()
    is_miscounted = announced != (len(set(sources)), len(set(destinations)))
    return _coflow(name, arrival_s, np.array(sources), np.array(destinations), np.array(sizes), is_miscounted)


def _coflow(
    name: str,
    arrival_s: float,
    sources: IntArray,
    destinations: IntArray,
    size_bytes: FloatArray,
    is_miscounted: bool = False,
) -> _Coflow:
    order = np.lexsort((sources, destinations))
    sources, destinations = sources[order], destinations[order]
    is_first = np.append(True, (np.diff(sources) != 0) | (np.diff(destinations) != 0))
    first = np.flatnonzero(is_first)
    size_bytes = np.add.reduceat(size_bytes[order], first)
    return _Coflow(name, arrival_s, sources[first], destinations[first], size_bytes, is_miscounted)


_Reader = Callable[["_Words", int], _Coflow]


def _is_whole(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) <= _MOST_DIGITS


class _Words:
    """The words of a line in order; errors name line and column."""

    def __init__(self, line: int, text: str) -> None:
        self._line = line
        self._words = text.split()
        self._column = 0

    def text(self, what: str) -> str:
        """Return the next word."""
        if self._column == len(self._words):
            raise CoflowTraceError(f"line {self._line}, column {self._column + 1}: {what}: missing; the line ends here")
        self._column += 1
        return self._words[self._column - 1]

    def count(self, what: str, most: int = MOST_FLOWS) -> int:
        """Parse the next word as a whole number from 1 to ``most``."""
        word = self.text(what)
        if not (_is_whole(word) and int(word)):
            self.refuse(f"{what}: expected a whole number above 0, got {quoted(word)}")
        if int(word) > most:
            self.refuse(f"{what}: expected at most {most:,}, got {word!r}")
        return int(word)

    def milliseconds(self, what: str) -> float:
        """Parse the next word as a time and return it in seconds."""
        return self._number(self.text(what), what, "milliseconds from 0", _LATEST_MS) / 1e3

    def port(self, what: str, num_ports: int) -> int:
        """Parse the next word as a port number."""
        return self.as_port(self.text(what), what, num_ports)

    def pair(self, first: str, second: str) -> tuple[str, str]:
        """Split the next word at its colon."""
        word = self.text(first)
        left, colon, right = word.partition(":")
        if not colon:
            self.refuse(f"{first}: expected {first}:{second}, got {quoted(word)}")
        return left, right

    def as_port(self, word: str, what: str, num_ports: int) -> int:
        """Parse a word of the current column as a port number."""
        if not (_is_whole(word) and int(word) < num_ports):
            self.refuse(f"{what}: expected a port from 0 to {num_ports - 1}, got {quoted(word)}")
        return int(word)

    def as_bytes(self, word: str) -> float:
        """Parse a word of the current column, in megabytes."""
        megabytes = self._number(word, "megabytes", "a number above 0", _MOST_MEGABYTES)
        if not megabytes:
            self.refuse(f"megabytes: a flow of zero bytes; expected a number above 0, got {quoted(word)}")
        if megabytes < _LEAST_MEGABYTES:
            self.refuse(f"megabytes: expected at least {_LEAST_MEGABYTES:g}, got {quoted(word)}")
        return megabytes * BYTES_PER_MEGABYTE

    def end(self) -> None:
        """Check that the line ends here."""
        if self._column < len(self._words):
            self._column += 1
            self.refuse(f"expected the end of the line, got {quoted(self._words[self._column - 1])}")

    def refuse(self, problem: str) -> None:
        """Raise CoflowTraceError for the current column."""
        raise CoflowTraceError(f"line {self._line}, column {self._column}: {problem}")

    def _number(self, word: str, what: str, expected: str, most: float) -> float:
        try:
            number = float(word)
        except ValueError:
            number = -1.0
        if not number >= 0:
            self.refuse(f"{what}: expected {expected}, got {quoted(word)}")
        if number > most:
            self.refuse(f"{what}: expected at most {most:.3g}, got {quoted(word)}")
        return number
