import pytest

from workloads.coflow_trace import CoflowTraceError, parse_coflow_trace

BENCHMARK = "150 2\n1 5 1 22 1 65:1.0\n2 0 2 132 104 1 140:48.0\n"
GENERATED = "4 2\n0 5 1 1 1 3 2 7\n1 0 2 2 1 1 0 2 0 0 1\n"


def test_mappers_send_equal_shares_of_what_a_reducer_takes_in() -> None:
    trace = parse_coflow_trace(BENCHMARK)
    assert (trace.num_ports, trace.names, trace.num_flows) == (150, ("2", "1"), 3)
    assert trace.arrivals_s.tolist() == [0.0, 0.005]
    assert trace.starts.tolist() == [0, 2, 3]
    assert (trace.sources.tolist(), trace.destinations.tolist()) == ([104, 132, 22], [140, 140, 65])
    assert trace.size_bytes.tolist() == [24 * 2**20, 24 * 2**20, 2**20]


def test_flows_one_by_one() -> None:
    trace = parse_coflow_trace(GENERATED)
    assert trace.names == ("1", "0")
    flows = list(zip(trace.sources, trace.destinations, trace.size_bytes / 2**20, strict=True))
    assert flows == [(0, 0, 1.0), (1, 0, 2.0), (3, 2, 7.0)]


@pytest.mark.parametrize(
    ("announced", "num_miscounted"),
    [("2 1", 0), ("1 1", 1), ("2 2", 1), ("1 2", 1), ("3 1", 1)],
)
def test_flows_count_as_listed_where_the_announced_numbers_are_wrong(announced: str, num_miscounted: int) -> None:
    """The second coflow of the file has two sources and one destination."""
    trace = parse_coflow_trace(GENERATED.replace("1 0 2 2 1", f"1 0 2 {announced}"))
    flows = list(zip(trace.sources, trace.destinations, trace.size_bytes / 2**20, strict=True))
    assert flows == [(0, 0, 1.0), (1, 0, 2.0), (3, 2, 7.0)]
    assert trace.num_miscounted == num_miscounted
    words = "1 of 2 coflows announce other numbers of sources or destinations than their flows have"
    assert (trace.warning is None) if not num_miscounted else (words in str(trace.warning))


def test_the_benchmarks_format_cannot_be_miscounted() -> None:
    assert parse_coflow_trace(BENCHMARK).warning is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: number of ports: missing"),
        ("150\n", "line 1, column 2: number of coflows: missing"),
        ("150 x\n", "line 1, column 2: number of coflows: expected a whole number above 0, got 'x'"),
        ("4097 1\n", "line 1, column 1: number of ports: expected at most 4,096, got '4097'"),
        ("150 0\n", "line 1, column 2: number of coflows: expected a whole number above 0, got '0'"),
        (BENCHMARK.replace("150 2", "150 3"), "line 4, column 1: line 1 announces 3 coflows, 2 follow"),
        (BENCHMARK + "3 0 1 1 1 2:3\n", "line 4, column 1: line 1 announces 2 coflows, 3 follow"),
        (BENCHMARK.replace(" 140:48.0", ""), "line 3, column 7: reducer: missing; the line ends here"),
        (BENCHMARK.replace("140:48.0", "140"), "line 3, column 7: reducer: expected reducer:megabytes, got '140'"),
        (
            BENCHMARK.replace("2 132 104", "3 132 104"),
            "line 3, column 7: number of reducers: expected a whole number above 0",
        ),
        (BENCHMARK.replace("2 132 104", "1 132 104"), "line 3, column 6: reducer: expected reducer:megabytes, got '1'"),
        (BENCHMARK.replace("104", "150"), "line 3, column 5: mapper: expected a port from 0 to 149, got '150'"),
        (BENCHMARK.replace("140:", "-1:"), "line 3, column 7: reducer: expected a port from 0 to 149, got '-1'"),
        (BENCHMARK.replace("48.0", "0"), "line 3, column 7: megabytes: a flow of zero bytes"),
        (
            BENCHMARK.replace("48.0", "nan"),
            "line 3, column 7: megabytes: expected a number above 0, got 'nan'",
        ),
        (BENCHMARK.replace("48.0", "1e308"), "line 3, column 7: megabytes: expected at most 8.8e+12, got '1e308'"),
        (
            BENCHMARK.replace("2 0 2", "2 1e13 2"),
            "line 3, column 2: arrival: expected at most 1e+12, got '1e13'",
        ),
        (
            BENCHMARK.replace("2 0 2", "2 -1 2"),
            "line 3, column 2: arrival: expected milliseconds from 0, got '-1'",
        ),
        (BENCHMARK.replace("65:1.0", "65:1.0 66:1.0"), "line 2, column 7: expected the end of the line, got '66:1.0'"),
        (GENERATED.replace("3 2 7", "3 2"), "line 2, column 8: megabytes: missing"),
        (GENERATED.replace("3 2 7", "3 2 0"), "line 2, column 8: megabytes: a flow of zero bytes"),
        (GENERATED.replace("3 2 7", "4 2 7"), "line 2, column 6: source: expected a port from 0 to 3, got '4'"),
        (
            GENERATED.replace("1 0 2 2 1", "1 0 2 2 x"),
            "line 3, column 5: number of destinations: expected",
        ),
        (GENERATED + "\n2\n", "line 4, column 1: line 1 announces 2 coflows, 4 follow"),
        ("9" * 5000 + " 1\n", "line 1, column 1: number of ports: expected a whole number above 0, got '999"),
        (GENERATED.replace("3 2 7", "3 2 5.0e-324"), "line 2, column 8: megabytes: expected at least 1e-06, got '5.0e"),
    ],
)
def test_line_and_column_of_what_is_wrong_are_told(text: str, message: str) -> None:
    with pytest.raises(CoflowTraceError) as raised:
        parse_coflow_trace(text)
    assert message in str(raised.value)


def test_more_flows_than_memory_has_room_for_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workloads.coflow_trace.MOST_FLOWS", 5)
    with pytest.raises(CoflowTraceError, match="line 2, column 9: expected at most 5 flows, one from each mapper to"):
        parse_coflow_trace("9 1\nc 0 3 1 2 3 2 4:1 5:1\n")
    with pytest.raises(CoflowTraceError, match="line 3, column 1: expected at most 5 flows in all"):
        parse_coflow_trace("9 2\nc 0 3 1 2 3 1 4:1\nd 0 3 1 2 3 1 4:1\n")
