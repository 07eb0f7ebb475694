"""The format of the coflow benchmark (github.com/coflow/coflow-benchmark): an hour of a cluster's shuffles.

The first line holds the numbers of racks and coflows. Each further line is one coflow: its name, arrival in ms, number
of mappers and their racks, number of reducers and each one's ``rack:megabytes``. A megabyte is 2^20 bytes, the mappers
send equal shares of every reducer's, and a flow between ports of one rack uses them like any other. The fabric is one
big switch: the racks' ingress ports, links 0 to n - 1, then their egress ports, links n to 2n - 1.
"""

from dataclasses import dataclass

BYTES_PER_MEGABYTE = float(1 << 20)


@dataclass(frozen=True, slots=True)
class BenchmarkCoflow:
    """One coflow; ``sends`` are racks of mappers, ``receives`` racks of reducers with the bytes each takes in."""

    name: str
    arrival_s: float
    sends: tuple[int, ...]
    receives: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class CoflowBenchmark:
    """Coflows in the order of the file, and how many racks there are."""

    num_racks: int
    coflows: tuple[BenchmarkCoflow, ...]


def parse_coflow_benchmark(text: str) -> CoflowBenchmark:
    """Read the format. Raises ValueError, naming the line, where it is broken."""
    header, *lines = text.splitlines() or [""]
    try:
        num_racks, num_coflows = map(int, header.split())
    except ValueError as error:
        raise ValueError(f"line 1: expected the numbers of racks and coflows, got {header!r}") from error
    coflows = []
    for number, line in enumerate(lines, 2):
        try:
            coflows.append(_coflow(line.split(), num_racks))
        except (ValueError, IndexError) as error:
            raise ValueError(f"line {number}: {error}") from error
    if len(coflows) != num_coflows:
        raise ValueError(f"line 1: it announces {num_coflows} coflows, {len(coflows)} follow")
    return CoflowBenchmark(num_racks, tuple(coflows))


def _coflow(fields: list[str], num_racks: int) -> BenchmarkCoflow:
    name, arrival_ms, num_mappers = fields[0], float(fields[1]), int(fields[2])
    sends = tuple(map(int, fields[3 : 3 + num_mappers]))
    num_reducers = int(fields[3 + num_mappers])
    receives = []
    for field in fields[4 + num_mappers :]:
        rack, megabytes = field.split(":")
        receives.append((int(rack), float(megabytes) * BYTES_PER_MEGABYTE))
    if len(sends) != num_mappers or len(receives) != num_reducers or not (sends and receives):
        raise ValueError("mappers or reducers are missing or too many")
    if not all(0 <= rack < num_racks for rack in (*sends, *(rack for rack, _ in receives))):
        raise ValueError(f"racks must lie between 0 and {num_racks - 1}")
    if not (0 <= arrival_ms < float("inf") and all(0 <= size_bytes < float("inf") for _, size_bytes in receives)):
        raise ValueError("arrival and sizes must be finite and not negative")
    return BenchmarkCoflow(name, arrival_ms / 1e3, sends, tuple(receives))
