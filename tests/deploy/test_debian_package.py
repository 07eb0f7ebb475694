"""The Debian package as it is built: what it holds, and its services under systemd in a machine of its own."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.checkout import ROOT, copy_checkout
from tests.deploy.machine import Machine, NoMachineError, running_machine

pytestmark = pytest.mark.slow

_CONTROLLER, _AGENT = "trainyard-controller.service", "trainyard-agent.service"
_PACKAGE = "/root/trainyard.deb"
_CONFIG = "/etc/trainyard/controller.yaml"
_DEPLOYMENT = ROOT / "docs" / "deployment.md"
_JOB = """
from hostlib import BlockingClient, Flow, FlowGroup, Job, Nic, Profile

with BlockingClient("127.0.0.1:4790") as client:
    client.register_job(Job("gpt", ("h0", "h1"), 16, Profile(1.2, 0.7, 19.2)))
    client.register_flow_groups("gpt", [FlowGroup("gradients", (Flow(Nic("h0"), Nic("h1"), 3_000_000_000),))])
    assert client.acknowledged("gpt", 60.0)
"""


@pytest.fixture
def package(tmp_path: Path) -> Iterator[Path]:
    """What `make package` builds, by its script, from a copy of this checkout."""
    if shutil.which("dpkg-deb") is None or not Path("/usr/bin/python3").exists():
        pytest.skip("not tried: a Debian package takes Debian and its Python")
    source = copy_checkout(tmp_path / "source")
    (source / ".venv").symlink_to(sys.prefix)
    built = subprocess.run(["deploy/debian/build.sh"], cwd=source, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (file,) = (source / "out").glob("*.deb")
    kept = file.rename(tmp_path / file.name)
    shutil.rmtree(source)
    yield kept
    kept.unlink()


def test_a_package_from_its_build_to_its_end(package: Path) -> None:
    it_holds_command_units_and_configuration(package)
    it_is_for_one_version_of_python(package)
    try:
        with running_machine() as machine:
            machine.put(package, _PACKAGE)
            machine.run("dpkg", "--install", _PACKAGE)
            nothing_starts_by_itself_and_strangers_read_no_configuration(machine)
            commands_work_without_a_network(machine)
            the_controller_plans_under_systemd_and_writes_to_switches(machine)
            a_reload_keeps_the_process_and_goes_by_the_file(machine)
            systemd_restarts_a_controller_that_hangs(machine)
            the_agent_probes_with_the_least_privileges(machine)
            services_know_each_other_by_certificates(machine)
            an_upgrade_restarts_what_runs_and_keeps_the_configuration(machine)
            a_purge_leaves_databases_and_credentials_alone(machine)
    except NoMachineError as error:
        pytest.skip(f"built and looked at, not installed: {error}")


def fields(package: Path) -> dict[str, str]:
    told = subprocess.run(["dpkg-deb", "--field", str(package)], capture_output=True, text=True, check=True).stdout
    return dict(line.split(": ", 1) for line in told.splitlines() if not line.startswith(" "))


def it_holds_command_units_and_configuration(package: Path) -> None:
    listed = subprocess.run(["dpkg-deb", "--contents", str(package)], capture_output=True, text=True, check=True)
    files = {line.split()[5].removeprefix(".") for line in listed.stdout.splitlines()}
    assert files >= {
        "/usr/bin/trainyard",
        f"/usr/lib/systemd/system/{_CONTROLLER}",
        f"/usr/lib/systemd/system/{_AGENT}",
        "/etc/trainyard/controller.yaml",
        "/etc/default/trainyard-agent",
        "/usr/share/doc/trainyard/deployment.md",
        "/usr/share/doc/trainyard/examples/fabric.yaml",
    }
    assert not [name for name in files if name.endswith(".wants/") or "/multi-user.target" in name]
    conffiles = subprocess.run(
        ["dpkg-deb", "--info", str(package), "conffiles"], capture_output=True, text=True, check=True
    )
    assert conffiles.stdout.split() == ["/etc/default/trainyard-agent", "/etc/trainyard/controller.yaml"]


def it_is_for_one_version_of_python(package: Path) -> None:
    told = fields(package)
    asked = [one for one in told["Depends"].split(", ") if one.startswith("python3 ")]
    version = subprocess.run(["/usr/bin/python3", "-V"], capture_output=True, text=True, check=True).stdout.split()[1]
    major, minor, _ = map(int, version.split("."))
    assert asked == [f"python3 (>= {major}.{minor}~)", f"python3 (<< {major}.{minor + 1}~)"]


def nothing_starts_by_itself_and_strangers_read_no_configuration(machine: Machine) -> None:
    for unit in (_CONTROLLER, _AGENT):
        assert machine.property(unit, "UnitFileState") == "disabled"
        assert machine.property(unit, "ActiveState") == "inactive"
    assert machine.run("stat", "--format", "%A %U %G", "/etc/trainyard").split() == [
        "drwxr-x---",
        "root",
        "trainyard",
    ]
    assert machine.run("dpkg", "--verify", "trainyard") == ""


def commands_work_without_a_network(machine: Machine) -> None:
    assert "Usage: trainyard" in machine.run("trainyard", "--help")
    assert machine.run("trainyard", "check", _CONFIG) == "ok\n"
    assert "--nic" in machine.run("trainyard", "agent", "--help")
    assert "run" in machine.run("/usr/lib/trainyard/bin/python", "-m", "hostlib", "--help")
    assert "crux-pa" in machine.run("trainyard", "policies")


def the_controller_plans_under_systemd_and_writes_to_switches(machine: Machine) -> None:
    fabric = "/usr/share/doc/trainyard/examples/fabric.yaml"
    machine.run("systemd-run", "--unit", "emulator", "trainyard", "emulator", "--topology", fabric)
    machine.start(_CONTROLLER)
    assert machine.property(_CONTROLLER, "ActiveState") == "active"
    assert machine.property(_CONTROLLER, "StatusText") == "listening on 127.0.0.1:4790"
    assert machine.run(*machine.fetching("http://127.0.0.1:4791/healthz")) == "up\n"
    machine.until("trainyard", "show", "switches", says="caught up")
    machine.run("/usr/lib/trainyard/bin/python", "-c", _JOB)
    machine.until("trainyard", "show", "rules", says="10.0.0.1")
    owner = machine.run("stat", "--format", "%A %U", "/var/lib/trainyard/controller.db").split()
    assert owner == ["-rw-------", "trainyard"]


def a_reload_keeps_the_process_and_goes_by_the_file(machine: Machine) -> None:
    process, config = machine.property(_CONTROLLER, "MainPID"), machine.run("cat", _CONFIG)
    changed = config.replace("policy: crux", "policy: ecmp")
    machine.write(_CONFIG, changed)
    machine.run("systemctl", "reload", _CONTROLLER)
    machine.until("trainyard", "show", "controller", says="Policy.*ecmp")
    machine.write(_CONFIG, f"{changed}lease_s: 77\n")
    machine.run("systemctl", "reload", _CONTROLLER)  # which does not tell that it is refused: the log does
    log = ("journalctl", "--no-pager", "--output", "cat", "--unit", _CONTROLLER)
    machine.until(*log, says="lease_s: cannot change while the controller runs")
    machine.until("trainyard", "show", "controller", says="Policy.*ecmp")
    machine.write(_CONFIG, config)
    assert machine.run("trainyard", "reload") == "policy: ecmp, now crux\n"
    assert machine.property(_CONTROLLER, "ActiveState") == "active"
    assert machine.property(_CONTROLLER, "MainPID") == process
    assert "gpt" in machine.run("trainyard", "show", "jobs")


def systemd_restarts_a_controller_that_hangs(machine: Machine) -> None:
    drop_in = f"/etc/systemd/system/{_CONTROLLER}.d"
    machine.run("mkdir", "--parents", drop_in)
    machine.write(f"{drop_in}/watchdog.conf", "[Service]\nWatchdogSec=3\n")
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "restart", _CONTROLLER)
    hanging = machine.property(_CONTROLLER, "MainPID")
    machine.run("kill", "-STOP", hanging)
    machine.until("systemctl", "show", "--property", "NRestarts", _CONTROLLER, says="NRestarts=1")
    machine.until("systemctl", "is-active", _CONTROLLER, says="^active$")
    log = machine.log(_CONTROLLER)
    assert "Failed with result 'watchdog'" in log
    assert "Fatal Python error: Aborted" in log  # what every thread did
    assert "gpt" in machine.run("trainyard", "show", "jobs")  # from its database
    machine.run("rm", "--recursive", drop_in)


def the_agent_probes_with_the_least_privileges(machine: Machine) -> None:
    machine.write("/etc/default/trainyard-agent", 'AGENT_OPTIONS="--host h0 --nic lo=127.0.0.1@1"\n')
    machine.start(_AGENT)
    assert machine.property(_AGENT, "StatusText") == "probing for h0 by lo (127.0.0.1, 1 Gbit/s)"
    assert "the host's own protocols see probes" not in machine.log(_AGENT)  # its program is in the kernel
    assert machine.run("stat", "--format", "%A", "/var/lib/trainyard-agent/token").strip() == "-rw-------"


def services_know_each_other_by_certificates(machine: Machine) -> None:
    folder = "/etc/trainyard/credentials"
    said = machine.run("trainyard", "certificates", folder, "--operator", "alice", "--agent", "h0")
    machine.run("chown", "--recursive", "trainyard:", folder)
    machine.write(_CONFIG, machine.run("cat", _CONFIG) + said)
    machine.run("systemctl", "restart", _CONTROLLER)
    files = ("ca.pem", "agent-h0.pem", "agent-h0.key")
    machine.run("cp", *(f"{folder}/{file}" for file in files), "/etc/trainyard")
    machine.run("chown", "root:trainyard", *(f"/etc/trainyard/{file}" for file in files))
    machine.run("chmod", "0640", "/etc/trainyard/agent-h0.key")
    options = "--host h0 --nic lo=127.0.0.1@1 --controller localhost:4790 --every-s 1"
    named = re.findall(r"^ {4}(TRAINYARD_\w+=.*)$", _DEPLOYMENT.read_text(), re.MULTILINE)
    machine.write("/etc/default/trainyard-agent", "\n".join([f'AGENT_OPTIONS="{options}"', *named]) + "\n")
    machine.run("systemctl", "restart", _AGENT)
    machine.until("systemctl", "show", "--property", "StatusText", _AGENT, says=r"with the controller [1-9]\d*$")


def an_upgrade_restarts_what_runs_and_keeps_the_configuration(machine: Machine) -> None:
    before = machine.property(_CONTROLLER, "MainPID")
    machine.write(_CONFIG, machine.run("cat", _CONFIG) + "seed: 2\n")
    machine.run("dpkg", "--install", "--force-confold", _PACKAGE)
    assert machine.property(_CONTROLLER, "ActiveState") == "active"
    assert machine.property(_CONTROLLER, "MainPID") != before
    assert machine.run("tail", "-1", _CONFIG) == "seed: 2\n"


def a_purge_leaves_databases_and_credentials_alone(machine: Machine) -> None:
    machine.run("dpkg", "--purge", "trainyard")
    left = machine.run(
        "find", "/etc", "/usr", "/var", "-xdev", "-name", "*trainyard*", "-not", "-path", "*/dist-packages/*"
    )
    assert set(left.split()) == {"/etc/trainyard", "/var/lib/trainyard"}
    assert "controller.db" in machine.run("ls", "/var/lib/trainyard")
    assert "credentials" in machine.run("ls", "/etc/trainyard")
