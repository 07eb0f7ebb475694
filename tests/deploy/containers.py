"""The services of a compose file as systemd units of one machine: commands, files, users and health checks as written.

All services share one loopback, on which their names resolve, and one file system, but for named volumes.
"""

import shlex
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from tests.deploy.checkout import ROOT
from tests.deploy.machine import Machine
from tests.patience import PATIENCE_S

IMAGE = "trainyard:0.1.0"
_USER = "4790"
_PATH = "/opt/trainyard/bin:/usr/local/bin:/usr/bin:/bin"
_IMAGE_ENVIRONMENT = {
    "PATH": _PATH,
    "PYTHONFAULTHANDLER": "1",
    "TRAINYARD_CACHE": "/cache",
    "NUMBA_CACHE_DIR": "/cache/numba",
    "PYTHONPATH": str(ROOT),
}


class Containers:
    """The services of a resolved compose file.

    ``programs`` starts the command of another image by the program that the image has as its entry point.
    """

    def __init__(self, machine: Machine, services: Mapping[str, Any], programs: Mapping[str, str]) -> None:
        self._machine = machine
        self._services = services
        self._programs = programs
        self._numbers = count(1)
        hosts = " ".join(["localhost", *services])
        machine.write("/etc/hosts", f"127.0.0.1 {hosts}\n")

    def install(self, environment: Path) -> None:
        """Have what the image has: an environment's programs, the user and the health check."""
        # They may be in a home folder, into which the user may not look.
        for path in (environment, environment.resolve(), (environment / "bin" / "python").resolve(), ROOT):
            self._machine.run("chmod", "a+x", *path.parents)
        self._machine.run("ln", "--symbolic", environment, "/opt/trainyard")
        self._machine.run("useradd", "--system", "--uid", _USER, "--user-group", "trainyard")
        self._machine.put(ROOT / "deploy" / "docker" / "healthy.py", "/usr/local/bin/healthy")

    def start(self, name: str) -> None:
        """Start a service once those are there that it depends on, as far as it waits for them."""
        service = self._services[name]
        for needed, how in service.get("depends_on", {}).items():
            if how["condition"] == "service_healthy":
                self._wait_until_healthy(needed)
        self._mount_all(service)
        self._machine.run(*self._unit(service, f"container-{name}"), *self._command(service))

    def stop(self, name: str) -> None:
        """End a service by SIGTERM."""
        self._machine.run("systemctl", "stop", f"container-{name}")

    def run(self, name: str) -> None:
        """Run the command of a service that ends by itself."""
        service = self._services[name]
        self._mount_all(service)
        self._to_its_end(service, f"container-{name}", self._command(service))

    def execute(self, name: str, *command: str) -> str:
        """Run a command in a service's container, as ``docker compose exec`` does; returns what it prints."""
        unit = f"exec-{name}-{next(self._numbers)}"
        program, *further = command
        self._to_its_end(self._services[name], unit, ["/usr/bin/env", program, *further])
        return self._machine.output(unit)

    def _to_its_end(self, service: Mapping[str, Any], unit: str, command: Sequence[str]) -> None:
        try:
            self._machine.run(*self._unit(service, unit, "--property=Type=oneshot"), *command)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self._machine.log(unit)}") from error

    def _wait_until_healthy(self, name: str) -> None:
        kind, *test = self._services[name]["healthcheck"]["test"]
        assert kind == "CMD"
        end_s = monotonic() + PATIENCE_S
        while True:
            try:
                self._check(name, test)
                return
            except AssertionError as error:
                if monotonic() > end_s:
                    raise AssertionError(f"{name}: {error}\n{self._machine.log(f'container-{name}')}") from error
                sleep(1.0)

    def _check(self, name: str, test: Sequence[str]) -> None:
        service = self._services[name]
        if service["image"] == IMAGE:
            self.execute(name, *test)
        else:
            self._machine.run(*test)

    def _unit(self, service: Mapping[str, Any], name: str, *options: str) -> list[str]:
        environment = (_IMAGE_ENVIRONMENT if service["image"] == IMAGE else {}) | service.get("environment", {})
        properties = {"NoNewPrivileges": "yes", "PrivateTmp": "yes"}
        if service.get("read_only"):
            properties["ProtectSystem"] = "strict"
        volumes = [_parts(volume) for volume in service.get("volumes", ())]
        for kind, wanted in (("BindPaths", "rw"), ("BindReadOnlyPaths", "ro")):
            bound = [each for each in volumes if each[2] == wanted and not each[0].startswith("/")]
            if bound:
                properties[kind] = " ".join(f"{volume_path(source)}:{target}" for source, target, _ in bound)
        if service.get("cap_drop") == ["ALL"]:
            properties["CapabilityBoundingSet"] = ""
        user = service.get("user", _USER if service["image"] == IMAGE else "root").partition(":")[0]
        return [
            *("systemd-run", "--quiet", "--collect", "--unit", name, "--uid", user, *options),
            *(f"--property={key}={value}" for key, value in properties.items()),
            *(f"--setenv={key}={value}" for key, value in environment.items()),
            "--",
        ]

    def _command(self, service: Mapping[str, Any]) -> Sequence[str]:
        command = service.get("command", [])
        words = shlex.split(command) if isinstance(command, str) else list(command)
        entry_point = (
            ["trainyard"] if service["image"] == IMAGE else [self._programs[service["image"].partition(":")[0]]]
        )
        program, *further = [*service.get("entrypoint", entry_point), *words]
        # systemd looks for programs in its own path.
        return ["/usr/bin/env", program, *further] if service["image"] == IMAGE else [program, *further]

    def _mount_all(self, service: Mapping[str, Any]) -> None:
        for volume in service.get("volumes", ()):
            self._mount(volume)
        for temporary in service.get("tmpfs", ()):
            self._machine.run("mkdir", "--parents", "--mode", "1777", temporary.partition(":")[0])

    def _mount(self, volume: str) -> None:
        """Make a named volume, owned by the image's user, or copy what is mounted from the checkout."""
        source, target, _ = _parts(volume)
        if not source.startswith("/"):
            self._machine.run("install", "--directory", "--owner", _USER, "--mode", "0700", volume_path(source))
            self._machine.run("mkdir", "--parents", target)
            return
        assert Path(source).exists(), f"{source}: mounted at {target}, and not there"
        self._machine.run("mkdir", "--parents", Path(target).parent)
        self._machine.run("rm", "--recursive", "--force", target)
        self._machine.run("cp", "--recursive", source, target)


def volume_path(name: str) -> str:
    """Where a named volume is; services see it where they mount it, and no others."""
    return f"/volumes/{name}"


def _parts(volume: str) -> tuple[str, str, str]:
    source, target, mode = volume.split(":")
    return source, target, mode
