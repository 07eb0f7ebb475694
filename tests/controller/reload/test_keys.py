"""What differs between two configurations, and what a running controller does about it."""

from typing import Any

import pytest

from controller.access.options import Quotas
from controller.config import ControllerConfig, RecordConfig
from controller.links.damping import Damping
from controller.reload.keys import CHANGES, Change, key_changes
from controller.switch_addresses import SwitchAddress
from topologies.specification import DumbbellSpecification

TOPOLOGY = DumbbellSpecification(kind="dumbbell", hosts_per_side=2, host_link_gbps=4, bottleneck_gbps=1)
SWITCHES = tuple(SwitchAddress(name=name, address="127.0.0.1:9559") for name in ("t0", "t1"))
CONFIG = ControllerConfig(topology=TOPOLOGY, switches=SWITCHES)


def changed(**keys: Any) -> ControllerConfig:
    return CONFIG.model_copy(update=keys)


def test_the_same_configuration_changes_nothing() -> None:
    assert key_changes(CONFIG, ControllerConfig(topology=TOPOLOGY, switches=SWITCHES)).is_empty


@pytest.mark.parametrize(
    ("keys", "lines"),
    [
        ({"policy": "ecmp"}, ("policy: crux, now ecmp",)),
        ({"damping": None}, ("damping: half_life_s 15.0, cutoff 1.5, reuse 0.75, longest_hold_s 60.0, now nothing",)),
        ({"damping": Damping(cutoff=2.0)}, ("damping.cutoff: 1.5, now 2.0",)),
        (
            {"record": RecordConfig(plans=5, audit_days=1)},
            ("record.plans: 10000, now 5", "record.audit_days: 30.0, now 1.0"),
        ),
        ({"num_levels": 3, "seed": 2}, ("seed: 1, now 2", "num_levels: 8, now 3")),
    ],
)
def test_small_keys_are_described_value_by_value(keys: dict[str, Any], lines: tuple[str, ...]) -> None:
    changes = key_changes(CONFIG, changed(**keys))
    assert set(changes.at_once) == set(lines)
    assert (changes.has_new_fabric, changes.refused) == (False, ())


def test_a_tenant_is_named() -> None:
    changes = key_changes(changed(tenants={"a": Quotas(jobs=1)}), changed(tenants={"a": Quotas(jobs=2), "b": Quotas()}))
    assert changes.at_once[0] == "tenants.a.jobs: 1, now 2"
    assert changes.at_once[1].startswith("tenants.b: nothing, now jobs")


def test_a_fabric_is_another_one_by_its_topology_or_its_switches() -> None:
    other = TOPOLOGY.model_copy(update={"bottleneck_gbps": 2.0})
    assert key_changes(CONFIG, changed(topology=other)).has_new_fabric
    assert key_changes(CONFIG, changed(switches=tuple(reversed(SWITCHES)))).has_new_fabric


def test_all_that_needs_a_restart_is_refused_together() -> None:
    log = CONFIG.log.model_copy(update={"format": "json", "level": "debug"})
    changes = key_changes(CONFIG, changed(listen="127.0.0.1:1", lease_s=1.0, policy="ecmp", log=log))
    assert changes.refused == ("listen", "lease_s", "log.format")


def test_a_key_that_nobody_has_decided_on_needs_a_restart() -> None:
    """The table of docs/reload.md has every key, so that whoever adds one decides."""
    for key in ControllerConfig.model_fields.keys() - CHANGES.keys():
        assert key_changes(CONFIG, changed(**{key: "another"})).refused == (key,)
    for key, change in CHANGES.items():
        assert change in Change
        assert key in ControllerConfig.model_fields
