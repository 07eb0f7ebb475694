"""The log of a controller process: its level and format are those of the command line, else of the configuration."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow

_CONFIG = {
    "listen": "127.0.0.1:0",
    "topology": {"kind": "dumbbell", "hosts_per_side": 1, "host_link_gbps": 100, "bottleneck_gbps": 100},
    "switches": [{"name": name, "address": "127.0.0.1:1"} for name in ("t0", "t1")],
}


def _logged(folder: Path, *options: str, **log: str) -> list[str]:
    """What a controller logs from its start to its end."""
    path = folder / "controller.yaml"
    path.write_text(yaml.safe_dump(_CONFIG | {"log": log}))
    command = [sys.executable, "-m", "controller", "--config", str(path), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("listening on ")
        process.send_signal(signal.SIGTERM)
        logged = process.stderr.read().splitlines()
        assert process.wait(timeout=PATIENCE_S) == 0
        return logged


def test_json_has_an_event_for_the_start_and_the_end(tmp_path: Path) -> None:
    entries = [json.loads(line) for line in _logged(tmp_path, "--log-format", "json")]
    assert (entries[0]["event"], entries[-1]["event"]) == ("controller started", "controller ended")
    assert entries[0]["fields"]["policy"] == "crux"
    assert entries[0]["fields"]["address"].startswith("127.0.0.1:")


def test_the_command_line_wins(tmp_path: Path) -> None:
    assert _logged(tmp_path, level="error") == []
    texts = _logged(tmp_path, "--log-level", "info", "--log-format", "text", level="error", format="json")
    assert "controller ended" in texts[-1]
    assert "INFO controller.process.daemon: " in texts[-1]
