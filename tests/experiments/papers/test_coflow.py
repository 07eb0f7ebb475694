import pytest

from experiments.papers.coflow import BENCHMARK_SHA256, findings, json_object, measure
from simulator.coflow_options import CoflowPolicy, Recompute
from workloads.coflow_trace import parse_coflow_trace

# A gigabyte and 128 MB into one port at once: alone they take 8 s and 1 s.
TRACE = parse_coflow_trace("2 2\na 0 1 0 1 1:1024\nb 0 1 0 1 1:128\n")


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
    assert measure(TRACE, policy, Recompute.FLOW).average_cct_s == pytest.approx(average_cct_s)


def test_the_table_has_the_speedup_over_fair_beside_the_published_one() -> None:
    measured = [measure(TRACE, policy, Recompute.FLOW) for policy in CoflowPolicy]
    found = findings(TRACE, measured, Recompute.FLOW, BENCHMARK_SHA256)
    rows = {row[0]: row[1:] for row in found.tables[0].rows}
    times, none = "\N{MULTIPLICATION SIGN}", "\N{EN DASH}"
    assert rows["varys"][1:3] == (f"1.10{times}", f"up to 3.16{times}")
    assert rows["sincronia"][2] == none
    shares = [bar.share for bar in found.charts[0].bars]
    assert max(shares) == 1.0
    assert shares[2] == pytest.approx(5.0 / 8.5)


@pytest.mark.parametrize(("sha256", "words"), [(BENCHMARK_SHA256, "is the"), ("0", "is not the")])
def test_whether_it_is_the_benchmark_is_said(sha256: str, words: str) -> None:
    measured = measure(TRACE, CoflowPolicy.VARYS, Recompute.COFLOW)
    found = json_object(TRACE, measured, Recompute.COFLOW, sha256)
    assert found["is_benchmark"] is (sha256 == BENCHMARK_SHA256)
    assumptions = found["assumptions"]
    assert isinstance(assumptions, tuple)
    assert words in assumptions[0]
