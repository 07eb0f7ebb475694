"""The fuzzer's own parts, without a sandbox: what it draws repeats, and it notices what it looks for."""

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from hostlib.wire import trainyard_pb2 as wire
from tests.fuzz import openflow
from tests.fuzz.files import Reading, case, reading, run_case
from tests.fuzz.findings import Findings
from tests.fuzz.messages import drawn_octets
from tests.fuzz.mutations import mutated_bytes
from tests.fuzz.readers import READERS, problem_of
from tests.fuzz.samples import Sample, samples
from tests.fuzz.servers import Usage
from tests.fuzz.templates import template

_SHUT_IN = """
from pathlib import Path
import resource, socket, tests.fuzz.sandbox as sandbox
sandbox.shut_in()
assert sandbox.interfaces() == ["lo"]
with socket.create_server(("127.0.0.1", 0)) as server:
    socket.create_connection(server.getsockname()).close()
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (1024, 1024)
try:
    socket.create_connection(("192.0.2.1", 80), 1)
except OSError as error:
    print(error.strerror)
"""


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Sample, ...]]:
    return dict(samples(tmp_path_factory.mktemp("samples")))


@pytest.mark.slow
def test_every_sample_is_valid_for_its_reader(known: dict[str, tuple[Sample, ...]], tmp_path: Path) -> None:
    (tmp_path / "trace").mkdir()
    for name in ("job.csv", "worker.csv", "topo.csv"):
        (tmp_path / "trace" / name).write_bytes(known[name][0].content)
    assert known.keys() == set(READERS)
    for reader in set(READERS) - {"program", "p4info"}:  # which take long, and tests of the emulator read
        for sample in known[reader][:2]:
            (tmp_path / reader).write_bytes(sample.content)
            assert problem_of(reader, tmp_path / reader, tmp_path / "trace") is None


@pytest.mark.parametrize("stream", openflow.streams(), ids=["1.3", "1.5"])
def test_what_an_honest_switch_sends_is_read_to_its_end(stream: bytes) -> None:
    assert openflow.take(stream) is None


def test_what_a_broken_switch_sends_is_refused_and_no_more() -> None:
    """A short campaign of its own, as these readers are quick."""
    draws = Random(3)
    for _ in range(300):
        for stream in openflow.streams():
            assert openflow.read(mutated_bytes(stream, draws)) is None


def test_a_seed_repeats_files_and_calls(known: dict[str, tuple[Sample, ...]]) -> None:
    assert [case(number, 7, known) for number in range(50)] == [case(number, 7, known) for number in range(50)]
    path = "/trainyard.v1.Controller/RegisterJob"
    octets = [
        drawn_octets(wire.RegisterJobRequest(), draws, {"name": ("j0",)}, template(path, draws))
        for _ in range(2)
        for draws in (Random(9),)
    ]
    assert octets[0] == octets[1]


@pytest.mark.slow
def test_the_first_cases_of_a_seed_find_nothing(known: dict[str, tuple[Sample, ...]], tmp_path: Path) -> None:
    (tmp_path / "trace").mkdir()
    for name in ("job.csv", "worker.csv", "topo.csv"):
        (tmp_path / "trace" / name).write_bytes(known[name][0].content)
    findings = Findings(tmp_path / "found")
    with reading(tmp_path) as process:
        for number in range(40):
            run_case(number, known, 1, process, findings)
    assert findings.found == {}


@pytest.mark.slow
def test_a_reader_that_hangs_or_ends_is_a_finding(tmp_path: Path) -> None:
    process = Reading(tmp_path)
    try:
        problem = process.give("scenario", b"name: a\n", patience_s=0.0).problem
    finally:
        process.end()
    assert problem is not None
    assert problem[0] == "scenario: no answer within 0 s"


def test_a_traceback_is_a_finding_named_by_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Path) -> None:
        raise KeyError("planted")

    monkeypatch.setattr("tests.fuzz.readers.load_config", fail)
    problem = problem_of("config", tmp_path / "any", tmp_path)
    assert problem is not None
    assert problem[0] == "config: KeyError in test_fuzz.py, fail"
    assert "planted" in problem[1]


def test_growth_is_noticed() -> None:
    before = Usage(200 << 20, 10, 20)
    assert Usage(250 << 20, 12, 30).grown(before) is None
    assert Usage(400 << 20, 12, 30).grown(before) == "memory: 209,715,200 to 419,430,400 bytes"
    assert Usage(200 << 20, 40, 30).grown(before) == "threads: 10 to 40"
    assert Usage(200 << 20, 10, 60).grown(before) == "open files: 20 to 60"


def test_the_sandbox_has_loopback_alone() -> None:
    ended = subprocess.run([sys.executable, "-c", _SHUT_IN], capture_output=True, text=True, check=False)
    if "SandboxError" in ended.stderr:
        pytest.skip(f"the sandbox is not shown: {ended.stderr.splitlines()[-1]}")
    assert ended.stdout == "Network is unreachable\n", ended.stderr
