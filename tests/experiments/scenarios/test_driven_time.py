"""Driven time has an entry point and a service of its own."""

from pathlib import Path

import pytest
import yaml

from experiments.scenarios.driven.__main__ import main
from hostlib.wire import trainyard_pb2 as wire

_CONFIG = {
    "topology": {"kind": "dumbbell", "hosts_per_side": 1, "host_link_gbps": 100, "bottleneck_gbps": 100},
    "switches": [{"name": name, "address": "127.0.0.1:1"} for name in ("t0", "t1")],
}


def test_the_host_service_cannot_move_the_clock() -> None:
    methods = wire.DESCRIPTOR.services_by_name["Controller"].methods_by_name
    assert "GetPlan" in methods
    assert "Settle" not in methods
    assert not [name for name in wire.DESCRIPTOR.message_types_by_name if "Settle" in name or "Port" in name]


def test_driven_time_refuses_leadership(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "controller.yaml"
    path.write_text(yaml.safe_dump(_CONFIG | {"database": str(tmp_path / "db"), "leadership": {}}))
    with pytest.raises(SystemExit):
        main(["--config", str(path)])
    assert "leadership: leases need real time" in capsys.readouterr().err
