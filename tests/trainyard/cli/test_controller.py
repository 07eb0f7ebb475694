import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from finsy.log import LOGGER

from controller.config import ControllerConfig
from controller.process import daemon
from tests.patience import PATIENCE_S
from tests.trainyard.cli.conftest import Trainyard


@pytest.fixture
def config(tmp_path: Path) -> Path:
    document = {
        "listen": "127.0.0.1:1",
        "topology": {"kind": "dumbbell", "hosts_per_side": 1, "host_link_gbps": 100, "bottleneck_gbps": 100},
        "switches": [{"name": name, "address": "127.0.0.1:9559"} for name in ("t0", "t1")],
    }
    path = tmp_path / "controller.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def test_the_controller_serves_what_the_file_says(
    trainyard: Trainyard, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[ControllerConfig] = []

    async def serve(accepted: ControllerConfig, **_: object) -> None:
        served.append(accepted)

    monkeypatch.setattr(daemon, "serve", serve)
    assert trainyard("controller", "--config", config).exit_code == 0
    assert [accepted.listen for accepted in served] == ["127.0.0.1:1"]


def test_what_finsy_says_of_switches_is_not_said_twice(
    trainyard: Trainyard, config: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def serve(*_: object) -> None:
        LOGGER.warning("gNMI is not implemented")
        LOGGER.error("Switch connection failed")

    monkeypatch.setattr(daemon, "_serve", serve)
    assert trainyard("controller", "--config", config).exit_code == 0
    assert caplog.messages == []


def test_an_address_that_is_taken_is_status_1(
    trainyard: Trainyard, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def serve(accepted: ControllerConfig, **_: object) -> None:
        raise OSError(f"cannot listen on {accepted.listen}")

    monkeypatch.setattr(daemon, "serve", serve)
    result = trainyard("controller", "--config", config)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "cannot listen on 127.0.0.1:1" in result.stderr


def test_a_bad_file_is_refused(trainyard: Trainyard, config: Path) -> None:
    config.write_text("topology: {kind: dumbbell}")
    result = trainyard("controller", "--config", config)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{config}: switches: missing; this key is required" in result.stderr.splitlines()


def test_the_agent_reads_its_own_options(trainyard: Trainyard) -> None:
    result = trainyard("agent", "--host", "h0", "--nic", "none@1")
    assert result.exit_code == 2
    assert result.stderr.startswith("--nic none: there is no such interface; there are ")


def test_it_needs_none_of_the_other_commands_packages() -> None:
    missing = "".join(f"sys.modules[{name!r}] = None; " for name in ("typer", "pydantic", "yaml", "networkx", "numpy"))
    program = f"import sys; {missing}sys.argv = ['trainyard', 'agent', '--help']; import trainyard.cli as c; c.main()"
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert said.returncode == 0, said.stderr
    assert said.stdout.startswith("usage: trainyard agent")
