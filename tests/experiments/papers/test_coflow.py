import hashlib
from pathlib import Path

import pytest

from experiments.papers import coflow
from experiments.papers.coflow import CoflowBenchmark, CoflowCase
from simulator.coflow_options import CoflowPolicy, Recompute
from workloads.coflow_trace import parse_coflow_trace

# A gigabyte and 128 MB into one port at once: alone they take 8 s and 1 s.
TEXT = "2 2\na 0 1 0 1 1:1024\nb 0 1 0 1 1:128\n"
TRACE = parse_coflow_trace(TEXT)


@pytest.fixture
def benchmark(tmp_path: Path) -> CoflowBenchmark:
    file = tmp_path / "trace.txt"
    file.write_text(TEXT)
    return CoflowBenchmark(file)


@pytest.mark.parametrize(
    ("policy", "average_cct_s"),
    [
        (CoflowPolicy.FAIR, (9.0 + 2.0) / 2),
        (CoflowPolicy.FIFO, (8.0 + 9.0) / 2),
        (CoflowPolicy.VARYS, (9.0 + 1.0) / 2),
        (CoflowPolicy.SINCRONIA, (9.0 + 1.0) / 2),
    ],
)
def test_ports_and_megabytes_are_coflowsims(policy: CoflowPolicy, average_cct_s: float) -> None:
    assert CoflowBenchmark.measure(CoflowCase(TRACE, policy, Recompute.FLOW)).average_cct_s == pytest.approx(
        average_cct_s
    )


def test_the_table_has_the_speedup_over_fair_beside_the_published_one(benchmark: CoflowBenchmark) -> None:
    measured = list(map(benchmark.measure, benchmark.cases()))
    found = benchmark.findings(measured)
    rows = {row[0]: row[1:] for row in found.tables[0].rows}
    times, none = "\N{MULTIPLICATION SIGN}", "\N{EN DASH}"
    assert rows["varys"][1:3] == (f"1.10{times}", f"up to 3.16{times}")
    assert rows["sincronia"][2] == none
    shares = [bar.share for bar in found.charts[0].bars]
    assert max(shares) == 1.0
    assert shares[2] == pytest.approx(5.0 / 8.5)
    without_fair = benchmark.findings(measured[1:])
    assert [(row[2], row[5]) for row in without_fair.tables[0].rows] == [(none, none)] * 3


@pytest.mark.parametrize("is_benchmark", [True, False])
def test_the_benchmark_is_recognised_by_its_hash(
    benchmark: CoflowBenchmark, monkeypatch: pytest.MonkeyPatch, is_benchmark: bool
) -> None:
    sha256 = hashlib.sha256(TEXT.encode()).hexdigest()
    monkeypatch.setattr(coflow, "BENCHMARK_SHA256", sha256 if is_benchmark else "0")
    found = benchmark.json_object(benchmark.measure(benchmark.cases()[0]))
    assert found["is_benchmark"] is is_benchmark
    assumptions = found["assumptions"]
    assert isinstance(assumptions, tuple)
    assert ("is the" if is_benchmark else "is not the") in assumptions[0]


def test_a_file_that_disagrees_with_itself_is_an_assumption(tmp_path: Path) -> None:
    file = tmp_path / "trace.txt"
    file.write_text("3 1\na 0 2 1 1 0 1 128 0 2 128\n")
    benchmark = CoflowBenchmark(file)
    found = benchmark.findings([benchmark.measure(benchmark.cases()[0])])
    assert "In this file 1 of 1 coflows announce other numbers" in found.assumptions[1]
