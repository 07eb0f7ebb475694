"""docker-compose.yml and the Dockerfile: tools accept them, and the services work together on one Debian."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from graphlib import TopologicalSorter
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
import yaml

from tests import postgresql
from tests.deploy.checkout import ROOT
from tests.deploy.containers import IMAGE, Containers, volume_path
from tests.deploy.machine import Machine, NoMachineError, running_machine
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow

_COMPOSE = ROOT / "docker-compose.yml"
_PROMETHEUS = "prom/prometheus"
_NOT_STARTED = {"demo", "grafana", "operator"}
"""The demo is tested by itself; Debian has no Grafana; an operator comes with every command."""
_CREDENTIALS = {
    "controller": "controller",
    "emulator": "switch-emulator",
    "job": "job-demo",
    "operator": "operator-operator",
    "prometheus": "viewer-prometheus",
}
"""Whose certificate and key each service has."""


@pytest.fixture(scope="module")
def resolved() -> dict[str, Any]:
    """The compose file as docker-compose understands it, without what this environment may override."""
    if shutil.which("docker-compose") is None:
        pytest.skip("not tried: docker-compose is not installed")
    environment = {key: value for key, value in os.environ.items() if not key.endswith("_PASSWORD")}
    command = ("docker-compose", "--file", str(_COMPOSE), "config")
    told = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    loaded: dict[str, Any] = yaml.safe_load(told.stdout)
    return loaded


def test_the_dockerfile_has_nothing_that_hadolint_knows_better() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    told = subprocess.run([hadolint, ROOT / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (told.returncode, told.stdout, told.stderr) == (0, "", "")


def test_every_image_is_pinned_and_every_port_is_on_loopback(resolved: dict[str, Any]) -> None:
    for name, service in resolved["services"].items():
        assert re.fullmatch(r"v?\d+\.\d+.*", service["image"].partition(":")[2]), name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ())), name


def test_what_is_mounted_is_there(resolved: dict[str, Any]) -> None:
    mounted = [volume.split(":")[0] for each in resolved["services"].values() for volume in each.get("volumes", ())]
    missing = [path for path in mounted if path.startswith("/") and not Path(path).exists()]
    assert set(missing) <= {str(ROOT / "out")}  # Docker makes it


def test_credentials_are_mounted_where_they_are_needed_and_nowhere_else(resolved: dict[str, Any]) -> None:
    mounted = {
        name: [volume for volume in service.get("volumes", ()) if ":/credentials" in volume]
        for name, service in resolved["services"].items()
    }
    assert mounted.pop("certificates") == ["authority:/credentials:rw"]
    assert {name: volumes for name, volumes in mounted.items() if volumes} == {
        name: [f"{name}-credentials:/credentials:ro"] for name in _CREDENTIALS
    }
    others = [name for name in resolved["services"] if "authority" in str(resolved["services"][name].get("volumes"))]
    assert others == ["certificates"]


def test_only_the_demo_needs_root(resolved: dict[str, Any]) -> None:
    ours = {name: service for name, service in resolved["services"].items() if service["image"] == IMAGE}
    assert [name for name, service in ours.items() if service.get("user") == "root"] == ["demo"]
    assert {name for name, service in ours.items() if service["cap_drop"] != ["ALL"]} == {"demo"}


def test_the_demo_writes_its_page_to_this_checkout(resolved: dict[str, Any]) -> None:
    demo = resolved["services"]["demo"]
    words = shlex.split(demo["command"]) if isinstance(demo["command"], str) else demo["command"]
    folder = Path(demo["working_dir"], words[words.index("--out") + 1])
    assert [volume for volume in demo["volumes"] if volume.startswith(f"{ROOT / 'out'}:{folder}:")]


def test_its_services_work_side_by_side(resolved: dict[str, Any]) -> None:
    services = {name: service for name, service in resolved["services"].items() if name not in _NOT_STARTED}
    prometheus = shutil.which("prometheus")
    if prometheus is None:
        del services["prometheus"]
    try:
        with running_machine() as machine:
            containers = Containers(machine, resolved["services"], {_PROMETHEUS: prometheus or ""})
            containers.install(Path(sys.prefix))
            for name in in_order(services):
                if name == "database":
                    start_database(machine, services[name]["environment"])
                elif ends_by_itself(name, services):
                    containers.run(name)
                else:
                    containers.start(name)
            each_has_its_own_credentials(machine)
            jobs_are_planned_and_rules_are_in_switches(containers)
            if prometheus is not None:
                prometheus_scrapes_the_controller(machine)
            containers.stop("job")
            assert shown(containers, "jobs") == []
    except NoMachineError as error:
        pytest.skip(f"not started side by side: {error}")
    if prometheus is None:
        pytest.skip("tried without Prometheus, which is not installed")


def in_order(services: Mapping[str, Any]) -> list[str]:
    return list(TopologicalSorter({name: each.get("depends_on", {}) for name, each in services.items()}).static_order())


def ends_by_itself(name: str, services: Mapping[str, Any]) -> bool:
    waits = [each.get("depends_on", {}).get(name, {}).get("condition") for each in services.values()]
    return "service_completed_successfully" in waits


def start_database(machine: Machine, environment: Mapping[str, str]) -> None:
    """What the image of PostgreSQL does with these variables, by Debian's programs."""
    try:
        programs = (postgresql.programs() / "postgres").resolve().parent
    except postgresql.NotInstalledError as error:
        pytest.skip(f"not started side by side: PostgreSQL: {error}")
    data, user = "/var/lib/postgresql/data", environment["POSTGRES_USER"]
    machine.run("install", "--directory", "--owner", "postgres", "--mode", "0700", data)
    machine.write("/run/password", environment["POSTGRES_PASSWORD"])
    machine.run("chown", "postgres", "/run/password")
    as_postgres = ("setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups")
    initdb = ("--username", user, "--pwfile", "/run/password", "--auth-local", "trust", "--auth-host", "scram-sha-256")
    machine.run(*as_postgres, programs / "initdb", "--pgdata", data, *initdb)
    server = (programs / "postgres", "-D", data, "-k", "/tmp", "-h", "127.0.0.1")
    machine.run("systemd-run", "--unit", "database", "--uid", "postgres", *server)
    machine.until(programs / "pg_isready", "--host", "127.0.0.1", says="accepting connections")
    machine.run(programs / "createdb", "--host", "/tmp", "--username", user, environment["POSTGRES_DB"])


def each_has_its_own_credentials(machine: Machine) -> None:
    for service, name in _CREDENTIALS.items():
        held = machine.run("ls", volume_path(f"{service}-credentials")).split()
        assert sorted(held) == sorted(["ca.pem", f"{name}.key", f"{name}.pem"])


def jobs_are_planned_and_rules_are_in_switches(containers: Containers) -> None:
    wait_until(lambda: {job["name"] for job in shown(containers, "jobs") if "level" in job} == {"bert", "gpt"})
    wait_until(lambda: {switch["condition"] for switch in shown(containers, "switches")} == {"CAUGHT_UP"})
    switches = {switch["name"]: switch for switch in shown(containers, "switches")}
    assert switches.keys() == {"t0", "t1", "a0", "a1"}
    held = {name: switch.get("num_rules", 0) for name, switch in switches.items()}
    assert held == {name: switch["num_planned_rules"] for name, switch in switches.items()}
    assert sum(held.values()) == len(shown(containers, "rules")) > 0


def shown(containers: Containers, what: str) -> list[dict[str, Any]]:
    """What `docker compose run operator show` says."""
    told: dict[str, Any] = json.loads(containers.execute("operator", "trainyard", "show", what, "--json"))
    found: list[dict[str, Any]] = told[what]
    return found


def wait_until(holds: Callable[[], bool]) -> None:
    end_s = monotonic() + PATIENCE_S
    while not holds():
        assert monotonic() < end_s
        sleep(0.5)


def prometheus_scrapes_the_controller(machine: Machine) -> None:
    machine.until(*machine.fetching("http://localhost:9090/api/v1/targets"), says='"health":"up"')
