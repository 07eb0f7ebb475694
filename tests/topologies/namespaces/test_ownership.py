"""Only namespaces whose owner is gone are removed."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.topologies.namespaces.owners import wait_until
from topologies.namespaces.host_network import NetworkError, run
from topologies.namespaces.ownership import NAMESPACES, Ownership, remove, remove_abandoned

OWN = Ownership.of_this_process()


@pytest.fixture
def made() -> Iterator[list[str]]:
    """Names that are added to it are removed with the test."""
    names: list[str] = []
    yield names
    remove(names)


def _add(made: list[str], name: str) -> Path:
    if os.geteuid() != 0:
        pytest.skip("needs root: no namespaces of others are removed")
    made.append(name)
    run("ip", "netns", "add", name)
    return NAMESPACES / name


def _owner_of(process: subprocess.Popen[str]) -> Ownership:
    """The ownership of a process that prints a line and waits for its input to end."""
    assert process.stdout is not None
    run_number, pid, ticks = process.stdout.readline().split()
    return Ownership(run_number, int(pid), int(ticks))


@pytest.fixture
def other() -> Iterator[subprocess.Popen[str]]:
    """Another process, which says its ownership and lives until its input ends."""
    program = (
        "import sys; from topologies.namespaces.ownership import Ownership; own = Ownership.of_this_process();"
        "print(own.run, own.pid, own.started_ticks, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.kill()


@pytest.mark.usefixtures("permitted")
def test_namespaces_end_with_their_owner(made: list[str], other: subprocess.Popen[str]) -> None:
    owner = _owner_of(other)
    fabric, host = _add(made, owner.fabric_name), _add(made, owner.host_name("h0", 0))
    remove_abandoned()
    assert fabric.exists()
    assert host.exists()
    other.kill()
    wait_until(lambda: not owner.is_alive)  # its parent has not taken note yet
    assert Path(f"/proc/{other.pid}").exists()
    remove_abandoned()
    assert not fabric.exists()
    assert not host.exists()
    other.wait()
    assert not owner.is_alive


@pytest.mark.usefixtures("permitted")
def test_a_process_with_the_number_of_the_owner_is_another(made: list[str]) -> None:
    gone = _add(made, replace(OWN, started_ticks=OWN.started_ticks - 1).host_name("h0", 0))
    own = _add(made, OWN.host_name("h0", 0))
    remove_abandoned()
    assert not gone.exists()
    assert own.exists()


@pytest.mark.parametrize("name", ["{}", "x-{}", "trainyard-{}", "trainyard-abcdef-999999999-1", "Trainyard-{}-1-1-h0"])
@pytest.mark.usefixtures("permitted")
def test_foreign_names_stay(made: list[str], name: str) -> None:
    foreign = _add(made, name.format(OWN.run))
    remove_abandoned()
    assert foreign.exists()


@pytest.mark.usefixtures("permitted")
def test_what_is_gone_is_removed_already() -> None:
    remove([OWN.host_name("absent", 0)])


@pytest.mark.usefixtures("permitted")
def test_what_cannot_be_removed_is_named_and_the_rest_is_removed(
    made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (OWN.host_name(host, 0) for host in ("first", "second"))
    _add(made, first)
    _add(made, second)

    def fail_for_the_first(*command: str) -> str:
        if first in command:
            raise NetworkError(f"{first}: busy")
        return run(*command)

    with monkeypatch.context() as patched:
        patched.setattr("topologies.namespaces.ownership.run", fail_for_the_first)
        with pytest.raises(NetworkError, match=re.escape(f"{first}: busy")):
            remove([first, second])
    assert not (NAMESPACES / second).exists()


def test_every_host_has_a_name_of_its_own() -> None:
    hosts = ["h0", "h 0", "a/b", ".1", ".2", ".fabric", "2", "node1", "", "..", "ü", "x" * 200]
    names = [OWN.host_name(host, number) for number, host in enumerate(hosts)]
    assert len({*names, OWN.fabric_name}) == len(hosts) + 1
    assert names[0].endswith("-h0")
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]{1,200}", name) for name in names)


def test_runs_of_one_process_differ() -> None:
    again = Ownership.of_this_process()
    assert again.run != OWN.run
    assert (again.pid, again.started_ticks) == (OWN.pid, OWN.started_ticks)
    assert again.is_alive
