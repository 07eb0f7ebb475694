import pytest

from workloads.coflow_benchmark import BenchmarkCoflow, parse_coflow_benchmark

SOUND = "150 2\n1 0 1 22 1 65:1.0\n2 10833 2 104 132 1 140:48.0\n"


def test_mappers_reducers_and_megabytes() -> None:
    benchmark = parse_coflow_benchmark(SOUND)
    assert benchmark.num_racks == 150
    assert benchmark.coflows[1] == BenchmarkCoflow("2", 10.833, (104, 132), ((140, 48.0 * 2**20),))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: expected the numbers"),
        ("150\n", "line 1: expected the numbers"),
        (SOUND.replace("150 2", "150 3"), "line 1: it announces 3 coflows, 2 follow"),
        (SOUND.replace("65:1.0", "65"), "line 2"),
        (SOUND.replace(" 65:1.0", ""), "line 2: mappers or reducers are missing"),
        (SOUND.replace("2 104 132 1", "3 104 132 1"), "line 3"),
        (SOUND.replace("104 132", "104 150"), "line 3: racks must lie between 0 and 149"),
        (SOUND.replace("48.0", "nan"), "line 3: arrival and sizes"),
        (SOUND.replace("10833", "-1"), "line 3: arrival and sizes"),
        (SOUND + "3 0", "line 4"),
    ],
)
def test_a_broken_line_is_named(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_coflow_benchmark(text)
