"""Debian's Prometheus, in a folder that goes with it, and what it answers."""

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
import yaml

from tests.patience import PATIENCE_S
from tests.ports import free_port

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "prometheus"


def promtool(*arguments: str | Path, given: str | None = None) -> None:
    """Run promtool, which must find nothing wrong; skips, saying so, where it is not installed."""
    _require("promtool")
    ran = subprocess.run(["promtool", *map(str, arguments)], input=given, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


class Prometheus:
    """A Prometheus that runs."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/api/v1"

    def get(self, what: str, **arguments: str) -> Any:
        """The data of an answer. Raises OSError where there is none."""
        with urlopen(f"{self._url}/{what}?{urlencode(arguments)}", timeout=PATIENCE_S) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[tuple[Mapping[str, str], float]]:
        """The labels and values of an expression by now."""
        found = self.get("query", query=expression)["result"]
        return [(each["metric"], float(each["value"][1])) for each in found]

    def firing(self) -> dict[str, list[Mapping[str, str]]]:
        """The labels of the alerts that fire, by name."""
        firing: dict[str, list[Mapping[str, str]]] = {}
        for alert in self.get("alerts")["alerts"]:
            if alert["state"] == "firing":
                firing.setdefault(alert["labels"]["alertname"], []).append(alert["labels"])
        return firing


@contextmanager
def running(config: Mapping[str, Any], folder: Path) -> Iterator[Prometheus]:
    """Run Prometheus with a configuration; skips, saying so, where it is not installed."""
    _require("prometheus")
    (folder / "prometheus.yml").write_text(yaml.safe_dump(dict(config)))
    port = free_port()
    command = (
        *("prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"),
        f"--web.listen-address=127.0.0.1:{port}",
    )
    with (folder / "prometheus.log").open("w+") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            server, end_s = Prometheus(port), monotonic() + PATIENCE_S
            while True:
                try:
                    server.get("status/buildinfo")
                    break
                except OSError:
                    assert process.poll() is None, (folder / "prometheus.log").read_text()
                    assert monotonic() < end_s, "Prometheus does not answer"
                    sleep(0.1)
            yield server
        finally:
            process.terminate()


def _require(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"not tried: {program} is not installed (Debian's package prometheus)")
