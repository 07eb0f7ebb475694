"""The keeper removes namespaces whichever process ends, and whenever."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.patience import PATIENCE_S
from tests.topologies.namespaces.owners import Marks, owning, wait_until
from topologies.namespaces import keeper
from topologies.namespaces.host_network import HostNic
from topologies.namespaces.keeper import READY, HostPlan, Plan
from topologies.namespaces.ownership import NAMESPACES, Ownership

_DAEMONS = "setsid sleep 1001 & (setsid sh -c 'sleep 1002 & sleep 1003 & wait' &) ; touch {}; sleep 1004"
_NIC = HostNic("eth0", "02:00:00:00:00:01", "10.0.0.1", 1e8, 1500)


@pytest.fixture
def plan() -> Plan:
    """A plan of one host with one NIC."""
    own = Ownership.of_this_process()
    host = HostPlan(own.host_name("h0", 0), [_NIC], ["h0-eth0"])
    return Plan(os.getpid(), own.fabric_name, [host], is_rootless=os.geteuid() != 0)


def _keep(given: str) -> subprocess.CompletedProcess[str]:
    """Run a keeper whose input ends after this."""
    command = [sys.executable, "-P", "-m", keeper.__name__]
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


@pytest.mark.parametrize("ended", ["the owner", "the entering process", "the keeper", "owner and keeper"])
def test_nothing_stays_behind_when_a_process_is_killed(ended: str, beginning: tuple[str, ...], tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    with owning(beginning, _DAEMONS.format(begun)) as owner:
        wait_until(lambda: begun.exists() and len(owner.running("^sleep 100")) >= 4)
        kept, entering = owner.running(keeper.__name__)[0], owner.running("enter.py")[0]
        if ended == "the owner":
            owner.process.kill()
        elif ended == "the entering process":
            os.kill(entering, signal.SIGKILL)
            wait_until(lambda: not owner.running("^sleep 100"))
            assert owner.process.poll() is None
            owner.process.communicate()
        else:
            os.kill(kept, signal.SIGKILL)
            if ended == "the keeper":
                owner.process.communicate()
                assert owner.process.returncode == 0
            else:
                owner.process.kill()
                owner.process.wait()
                with owning(beginning, "true"):  # the next owner removes what nobody else could
                    owner.wait_until_nothing_is_left()
        owner.wait_until_nothing_is_left()


def test_signals_do_not_end_a_keeper(beginning: tuple[str, ...]) -> None:
    with owning(beginning, "sleep 1000") as owner:
        kept = owner.running(keeper.__name__)[0]
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(kept, number)
        wait_until(lambda: bool(owner.running("^sleep 1000")))
        assert owner.running(keeper.__name__) == [kept]


def test_a_command_stands_where_it_was_started(beginning: tuple[str, ...], tmp_path: Path) -> None:
    with owning(beginning, f"pwd >{tmp_path}/where"):
        wait_until(lambda: (tmp_path / "where").exists() and (tmp_path / "where").read_text() == f"{ROOT}\n")


@pytest.mark.usefixtures("permitted")
def test_namespaces_end_with_an_owner_whose_forked_child_lives_on() -> None:
    marks = Marks()
    program = (
        "import os, time; from tests.topologies.namespaces.owners import *\n"
        "made = FabricNamespaces(small_fabric()).__enter__()\n"
        "print(made.fabric_name, flush=True)\n"
        "os.fork()\n"
        "time.sleep(1000)\n"
    )
    command = [sys.executable, "-c", program]
    owner = subprocess.Popen(command, env=marks.environment, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    fabric_name = owner.stdout.readline().strip()
    wait_until(lambda: len(marks.processes()) == 3)
    owner.kill()
    owner.wait()
    try:
        wait_until(lambda: not any(keeper.__name__ in line for line in marks.processes().values()))
        assert not (NAMESPACES / fabric_name).exists()
    finally:
        for process in marks.processes():
            os.kill(process, signal.SIGKILL)
        owner.communicate()


@pytest.mark.usefixtures("permitted")
def test_a_keeper_makes_a_plan_and_removes_it(plan: Plan) -> None:
    ended = _keep(plan.to_json() + "\n")
    assert (ended.stdout.strip(), ended.stderr, ended.returncode) == (READY, "", 0)
    assert not (NAMESPACES / plan.fabric).exists()


def test_half_a_plan_is_left_alone(plan: Plan) -> None:
    ended = _keep(plan.to_json()[:-5])
    assert (ended.stdout, ended.stderr, ended.returncode) == ("", "", 1)


@pytest.mark.parametrize("host", [
    pytest.param(HostPlan("", [_NIC, replace(_NIC, interface="eth1")], ["h0-eth0"] * 2), id="a name twice"),
    pytest.param(HostPlan("", [replace(_NIC, interface="sixteen-letters-")], ["h0-eth0"]), id="a long name"),
    pytest.param(HostPlan("", [replace(_NIC, mtu_bytes=1)], ["h0-eth0"]), id="a short packet"),
    pytest.param(HostPlan("", [replace(_NIC, rate_bps=1)], ["h0-eth0"]), id="a low rate"),
    pytest.param(HostPlan("", [replace(_NIC, rate_bps=float("inf"))], ["h0-eth0"]), id="no rate"),
])  # fmt: skip
@pytest.mark.usefixtures("permitted")
def test_what_cannot_be_made_is_named_and_nothing_stays(plan: Plan, host: HostPlan) -> None:
    host = replace(host, namespace=plan.hosts[0].namespace)
    ended = _keep(replace(plan, hosts=[host]).to_json() + "\n")
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert len(ended.stderr.strip().splitlines()) >= 1
    assert "Traceback" not in ended.stderr
    assert host.namespace in ended.stderr
    assert not (NAMESPACES / plan.fabric).exists()
    assert not (NAMESPACES / host.namespace).exists()
