"""The configuration refuses what it does not know."""

from typing import Any

import pytest
from pydantic import ValidationError

from controller.config import ControllerConfig


def _config(**changes: Any) -> dict[str, Any]:
    topology = {"kind": "dumbbell", "hosts_per_side": 1, "host_link_gbps": 100, "bottleneck_gbps": 100}
    switches = [{"name": name, "address": "127.0.0.1:1", "device_id": 1} for name in ("t0", "t1")]
    return {"topology": topology, "switches": switches} | changes


def test_defaults_leave_room_for_other_controllers_below() -> None:
    assert ControllerConfig.model_validate(_config()).election_id > 1 << 64


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"leases": 3}, "leases"),
        ({"clock": "driven"}, "clock"),
        ({"policy_time_limit_s": 0}, "policy_time_limit_s"),
        ({"policy": "best"}, "policy"),
        ({"lease_s": 0}, "lease_s"),
        ({"hash": "md5"}, "hash"),
        ({"switches": [{"name": "t0", "address": "a:1"}]}, "no address for t1"),
        ({"switches": [{"name": name, "address": "a:1"} for name in ("t0", "t1", "t2")]}, "not in the topology: t2"),
        ({"switches": [{"name": name, "address": "a:1"} for name in ("t0", "t1", "t1")]}, "listed twice"),
    ],
)
def test_wrong_configuration_is_refused_by_name(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        ControllerConfig.model_validate(_config(**changes))
