import json
from pathlib import Path

import pytest

from tests.trainyard.cli.conftest import Trainyard

TRACE = "2 2\na 0 1 0 1 1:1024\nb 1000 1 0 1 0:128\n"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.txt"
    path.write_text(TRACE)
    return path


def test_json_has_the_policy_and_its_times(trainyard: Trainyard, trace: Path) -> None:
    """Ports of 1024 * 2^20 bit/s carry 128 MB a second."""
    ended = trainyard("coflows", trace, "--policy", "varys", "--json")
    assert ended.exit_code == 0
    measured = json.loads(ended.stdout)
    assert list(measured) == ["policy", "num_coflows", "average_cct_s", "p95_cct_s", "makespan_s"]
    assert (measured["policy"], measured["num_coflows"]) == ("varys", 2)
    times = measured["average_cct_s"], measured["p95_cct_s"], measured["makespan_s"]
    assert times == pytest.approx((5.0, 8.6, 9.0))


def test_ports_offline_and_recomputing_are_options(trainyard: Trainyard, trace: Path) -> None:
    options = ("--port-gbps", "2", "--offline", "--recompute", "coflow", "--json")
    measured = json.loads(trainyard("coflows", trace, "--policy", "fair", *options).stdout)
    assert measured["makespan_s"] == pytest.approx(4.5)
    assert measured["average_cct_s"] == pytest.approx((1.0 + 4.5) / 2)


def test_people_get_a_table(trainyard: Trainyard, trace: Path) -> None:
    words = trainyard("coflows", trace, "--policy", "sincronia").stdout
    for word in ("sincronia", "Average CCT", "5.000", "Makespan"):
        assert word in words


def test_a_trace_that_disagrees_with_itself_runs_and_is_told(trainyard: Trainyard, trace: Path) -> None:
    """One coflow announces a destination for its two, as the traces of Sincronia's authors do."""
    trace.write_text("3 2\na 0 2 1 1 0 1 128 0 2 128\nb 9000 1 1 1 1 0 128\n")
    ended = trainyard("coflows", trace, "--policy", "sincronia", "--json")
    assert ended.exit_code == 0
    assert json.loads(ended.stdout)["average_cct_s"] == pytest.approx(1.5)
    assert "trace.txt: 1 of 2 coflows announce other numbers of sources or destinations" in ended.stderr
    trace.write_text("3 1\na 0 2 1 2 0 1 128 0 2 128\n")
    assert trainyard("coflows", trace, "--policy", "sincronia", "--json").stderr == ""


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (TRACE.replace("1:1024", "1:0"), (), "line 2, column 6: megabytes: a flow of zero bytes"),
        (TRACE.splitlines()[0], (), "line 2, column 1: line 1 announces 2 coflows, 0 follow"),
        (TRACE, ("--port-gbps", "0"), "--port-gbps: expected a number from 1e-06 to 1e+06, got 0.0"),
        (TRACE, ("--port-gbps", "nan"), "--port-gbps: expected a number from 1e-06 to 1e+06, got nan"),
    ],
)
def test_bad_input_is_refused_by_its_place(
    trainyard: Trainyard, trace: Path, text: str, options: tuple[str, ...], message: str
) -> None:
    trace.write_text(text)
    ended = trainyard("coflows", trace, "--policy", "fair", *options)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert message in ended.stderr


def test_a_file_that_is_not_there_is_named(trainyard: Trainyard, tmp_path: Path) -> None:
    ended = trainyard("coflows", tmp_path / "none.txt", "--policy", "fair")
    assert ended.exit_code == 2
    assert "none.txt: cannot be read" in ended.stderr
