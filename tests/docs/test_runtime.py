"""docs/runtime.md: its examples print what the page says, and its commands work."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import runtime as rt
from tests.docs.pages import ROOT
from tests.patience import PATIENCE_S

_ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def _ran(example: str, folder: Path, *arguments: str) -> str:
    command = [sys.executable, str(ROOT / "docs" / "examples" / example), *arguments]
    ended = subprocess.run(command, cwd=folder, env=_ENVIRONMENT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_the_example_of_the_paper(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    assert _ran("pathways.py", tmp_path) == "(array([3., 5.]), array([2., 4.]))\n"


@pytest.mark.parametrize(
    ("example", "last_line"),
    [
        ("pipelined_gpt.py", "step 4: "),
        ("pipelined_gpt.py --islands 4 --schedule gpipe", "step 4: "),
        ("data_parallel_gpt.py", "replicas are the same"),
        ("two_islands_gpt.py", "islands are the same"),
        ("mixture_of_experts.py", "step 4: "),
    ],
)
def test_a_model_in_parts_has_the_losses_of_the_model_in_one_piece(
    example: str, last_line: str, tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    name, *arguments = example.split()
    printed = _ran(name, tmp_path, *arguments)
    losses = [(float(one), float(other)) for one, other in re.findall(r"loss ([\d.]+), in one piece ([\d.]+)", printed)]
    assert len(losses) == 5
    assert losses[-1][0] < losses[0][0]
    for one, other in losses:
        assert one == pytest.approx(other, rel=1e-5)
    assert printed.splitlines()[-1].startswith(last_line)


def test_a_model_is_trained_on_batches_that_hosts_make(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    *losses, weights = _ran("input_pipeline.py", tmp_path).splitlines()
    falling = [float(each.rpartition(" ")[2]) for each in losses]
    assert falling == sorted(falling, reverse=True)
    assert [abs(float(each)) for each in re.findall(r"[\d.]+", weights)] == [0, 1, 2, 3, 4, 5, 6, 7]


def test_tokens_are_routed_to_experts_without_a_bound(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "runtime.md").read_text(encoding="utf-8")
    printed = _ran("routing.py", tmp_path)
    assert printed.startswith("1 tokens: ")
    assert f"```text\n{printed}```" in page


def test_the_pictures_of_the_page_come_from_runs(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    _ran("runtime_pictures.py", tmp_path, str(tmp_path))
    equal, unequal, pipeline, one, eight, islands = (
        (tmp_path / f"runtime-{name}.svg").read_text()
        for name in ("equal-shares", "shares", "pipeline", "one-client", "eight-clients", "two-islands")
    )
    assert all(f"{client}, weight 1" in equal for client in "ABCD")
    assert "D, weight 8" in unequal
    assert all(name in pipeline for name in ("island-1, host 1", "forward", "backward", "update"))
    assert "timer" in one
    assert ">A<" in eight
    assert all(name in islands for name in ("island-1, host 1", "gradients", "update"))


def test_a_server_of_the_command_serves_clients_and_shows_its_state(tmp_path: Path) -> None:
    trainyard = [sys.executable, "-m", "trainyard", "runtime"]
    where = ["--address", f"unix:{tmp_path}/islands", "--clients", "clients.txt"]
    options = {"cwd": tmp_path, "env": _ENVIRONMENT, "text": True, "stderr": subprocess.PIPE}
    server = subprocess.Popen([*trainyard, "serve", *where, "--islands", "2", "--hosts", "2"], **options)  # type: ignore[call-overload]
    try:
        assert server.stderr.readline() == f"serving 4 hosts at unix:{tmp_path}/islands\n"
        assert (tmp_path / "clients.txt").stat().st_mode & 0o777 == 0o600
        shown = subprocess.run([*trainyard, "status", *where], stdout=subprocess.PIPE, check=True, **options).stdout  # type: ignore[call-overload]
        assert [line.split()[:2] for line in shown.splitlines() if "island-" in line] == [
            ["0", "island-0"],
            ["1", "island-0"],
            ["2", "island-1"],
            ["3", "island-1"],
        ]
        looked = [*trainyard, "top", *where, "--every", "0.1", "--looks", "1"]
        shown = subprocess.run(looked, stdout=subprocess.PIPE, check=True, **options).stdout  # type: ignore[call-overload]
        assert [line.split()[:3] for line in shown.splitlines() if "island-1" in line] == [
            ["2", "island-1", "0%"],
            ["3", "island-1", "0%"],
        ]
        joined = subprocess.Popen([*trainyard, "join", *where, "--island", "island-0"], **options)  # type: ignore[call-overload]
        assert joined.stderr.readline() == "host 4 has joined island-0\n"
        left = subprocess.run([*trainyard, "leave", "1", *where], check=True, **options)  # type: ignore[call-overload]
        assert left.stderr == "host 1 has left; arrays that moved: 0\n"
        gone = subprocess.run([*trainyard, "leave", "1", *where], check=False, **options)  # type: ignore[call-overload]
        assert (gone.returncode, "host 1: is not there" in gone.stderr) == (1, True)
        joined.send_signal(signal.SIGTERM)
        assert joined.communicate() == (None, "host 4 has left\n")
        assert joined.returncode == 0
        migrated = subprocess.run([*trainyard, "migrate", "nobody", *where], check=False, **options)  # type: ignore[call-overload]
        assert (migrated.returncode, "client 'nobody': is not connected" in migrated.stderr) == (1, True)
        drawn = [*trainyard, "trace", "trace.json", *where, "--picture", "trace.svg"]
        nothing = subprocess.run(drawn, check=False, **options)  # type: ignore[call-overload]
        assert (nothing.returncode, "trace.svg: nothing ran" in nothing.stderr) == (1, True)
        with rt.connect(f"unix:{tmp_path}/islands", (tmp_path / "clients.txt").read_text().split()[2]) as client:
            devices = client.make_virtual_device_set().add_slice(2)
            pause = rt.pmap(rt.timer(0.01, name="pause"), devices=devices)
            client.publish("held", pause(numpy.zeros(2)).wait(PATIENCE_S))
            (label,) = [each["client"] for each in client.status()["clients"] if each["slices"]]
            for command in (["suspend", label], ["resume", label], ["migrate", label], ["leave", "0"]):
                subprocess.run([*trainyard, *command, *where], check=True, **options)  # type: ignore[call-overload]
            shown = subprocess.run([*trainyard, "status", *where], stdout=subprocess.PIPE, check=True, **options).stdout  # type: ignore[call-overload]
            assert "default/held" in shown
            assert pause(client.open("held")).numpy(PATIENCE_S).tolist() == [0, 0]
        subprocess.run(drawn, check=True, **options)  # type: ignore[call-overload]
        assert '"name": "island-1, host 3"' in (tmp_path / "trace.json").read_text()
        assert "pause" in (tmp_path / "trace.svg").read_text()
        (tmp_path / "clients.txt").write_text("default 1 guess\n")
        refused = subprocess.run([*trainyard, "status", *where], stdout=subprocess.PIPE, check=False, **options)  # type: ignore[call-overload]
        assert (refused.returncode, "token: unknown" in refused.stderr) == (1, True)
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait() == 0
        server.stderr.close()
