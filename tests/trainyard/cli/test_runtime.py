import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.trainyard.cli.conftest import Trainyard
from trainyard.cli.answers import OutputFormat

WHERE = ["--address", "unix:/tmp/nobody-listens-here"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("default 1\n", "clients.txt:1: expected a new name, a weight and a token"),
        ("default 1 token\n\nother heavy token\n", "clients.txt:3: expected a new name"),
        ("default 1 token bytes=many\n", "clients.txt:1: expected a new name, a weight and a token"),
        ("default 1 token king\n", "then operator, bytes=N, arrays=N, programs=N or reads=NAME"),
        ("default 1 token bytes=-1\n", "clients.txt:1: most_bytes: must not be negative"),
        ("default 1 token programs=0\n", "clients.txt:1: most_programs: expected at least one, got 0"),
        ("default 1 token reads=\n", "clients.txt:1: expected a new name, a weight and a token"),
        ("default 1 token\ndefault 1 token\n", "clients.txt:2: expected a new name"),
        ("other 1 token\n", "clients.txt: there is no client 'default'"),
        ("default 1 t\N{LATIN SMALL LETTER O WITH DIAERESIS}ken\n", "it is no ASCII text"),
    ],
)
def test_a_file_of_clients_with_mistakes(trainyard: Trainyard, tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "clients.txt"
    file.write_text(text, encoding="utf-8")
    ended = trainyard("runtime", "status", *WHERE, "--clients", str(file))
    assert (ended.exit_code, says in ended.stderr) == (2, True)


def test_weights_must_be_positive(trainyard: Trainyard, tmp_path: Path) -> None:
    file = tmp_path / "clients.txt"
    file.write_text("default -1 token\n")
    ended = trainyard("runtime", "serve", *WHERE, "--clients", str(file))
    assert (ended.exit_code, "client default: weight: expected a number above 0" in ended.stderr) == (2, True)


def test_an_address_that_is_none(trainyard: Trainyard, tmp_path: Path) -> None:
    ended = trainyard("runtime", "serve", "--address", "nowhere", "--clients", str(tmp_path / "clients.txt"))
    assert (ended.exit_code, "--address: expected HOST:PORT" in ended.stderr) == (2, True)
    assert not (tmp_path / "clients.txt").exists()


def test_where_hosts_on_a_ray_cluster_are_refused(trainyard: Trainyard, tmp_path: Path) -> None:
    file = tmp_path / "clients.txt"
    file.write_text("default 1 token\n")
    tcp = ["--address", "127.0.0.1:7411"]
    for asked, says in (
        ([*WHERE, "--ray", "auto"], "address: hosts on other nodes cannot reach unix:/tmp/nobody-listens-here"),
        ([*tcp, "--ray", "auto", "--strategy", "SCATTER"], "strategy: expected one of PACK, SPREAD"),
        ([*tcp, "--ray", "ray://head:10001"], "address: executors cannot reach a client of Ray"),
    ):
        ended = trainyard("runtime", "serve", *asked, "--clients", str(file))
        assert (ended.exit_code, says in ended.stderr) == (2, True), ended.stderr


def test_nobody_answers(trainyard: Trainyard, tmp_path: Path) -> None:
    file = tmp_path / "clients.txt"
    file.write_text("default 1 token\n")
    ended = trainyard("runtime", "trace", str(tmp_path / "trace.json"), *WHERE, "--clients", str(file))
    assert (ended.exit_code, "nobody answers" in ended.stderr) == (1, True)
    assert not (tmp_path / "trace.json").exists()


def test_a_picture_of_an_unknown_format(trainyard: Trainyard, tmp_path: Path) -> None:
    where = [*WHERE, "--clients", str(tmp_path / "clients.txt")]
    ended = trainyard("runtime", "trace", str(tmp_path / "trace.json"), *where, "--picture", "trace.gif")
    assert (ended.exit_code, "--picture: expected a file that ends with .png or .svg or .pdf" in ended.stderr) == (
        2,
        True,
    )
    assert not (tmp_path / "trace.json").exists()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0 h0\n", "hosts.txt:1: expected a new number, a name and an address"),
        ("first h0 10.0.0.1\n", "hosts.txt:1: expected a new number"),
        ("0 h0 10.0.0.1 ip netns exec h0\n\n0 h1 10.0.1.1\n", "hosts.txt:3: expected a new number"),
        ("0 h0 h0.example\n", "hosts.txt:1: network host h0: address: expected one of IPv4, got 'h0.example'"),
        ("1 h0 10.0.0.1\n", "network_hosts: there is no host 1"),
    ],
)
def test_a_file_of_network_hosts_with_mistakes(trainyard: Trainyard, tmp_path: Path, text: str, says: str) -> None:
    file, clients = tmp_path / "hosts.txt", tmp_path / "clients.txt"
    file.write_text(text)
    clients.write_text("default 1 token\n")
    ended = trainyard("runtime", "serve", *WHERE, "--clients", str(clients), "--network-hosts", str(file))
    assert (ended.exit_code, says in ended.stderr) == (2, True)


def test_an_address_of_a_controller_that_is_none(trainyard: Trainyard, tmp_path: Path) -> None:
    where = [*WHERE, "--clients", str(tmp_path / "clients.txt")]
    ended = trainyard("runtime", "serve", *where, "--controller", "one:4790")
    assert (ended.exit_code, "controllers: network_hosts are missing" in ended.stderr) == (2, True)
    ended = trainyard("runtime", "serve", *where, "--controller", "nowhere")
    assert (ended.exit_code, "address: expected HOST:PORT" in ended.stderr) == (2, True)


@pytest.mark.slow
def test_the_status_of_a_server_is_the_same_in_every_format(trainyard: Trainyard, tmp_path: Path) -> None:
    where = ("--address", f"unix:{tmp_path}/socket", "--clients", str(tmp_path / "clients.txt"))
    command = [sys.executable, "-m", "trainyard", "runtime", "serve", *where, "--devices", "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            assert server.stderr.readline().startswith("serving 1 hosts at ")
            shown = {output: trainyard("runtime", "status", *where, "-o", output) for output in OutputFormat}
        finally:
            server.terminate()
    assert [(ended.exit_code, ended.stderr) for ended in shown.values()] == [(0, "")] * len(OutputFormat)
    (host,) = json.loads(shown[OutputFormat.JSON].stdout)["hosts"]
    assert yaml.safe_load(shown[OutputFormat.YAML].stdout)["hosts"][0]["pid"] == host["pid"]
    (row,) = csv.DictReader(io.StringIO(shown[OutputFormat.CSV].stdout))
    assert (row["island"], row["pid"]) == ("island-0", str(host["pid"]))
    assert f"{host['pid']:,}" in shown[OutputFormat.TABLE].stdout
