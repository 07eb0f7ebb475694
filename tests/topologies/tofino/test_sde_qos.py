"""The script for the SDE, run against tables that write down what is written to them."""

from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from tests.topologies.tofino.cabled import tofino
from tests.topologies.tofino.drawing import drawn_ports
from topologies.fabric import Fabric
from topologies.tofino.sde_qos import sde_qos

Written = list[tuple[str, dict[str, Any]]]


@dataclass
class _Node:
    """A table, or what stands before its name; calls are written down."""

    path: str
    written: Written = field(default_factory=list)

    def __getattr__(self, name: str) -> "_Node":
        return _Node(f"{self.path}.{name}", self.written)

    def __call__(self, **values: Any) -> None:
        self.written.append((self.path, values))


def _run(fabric: Fabric) -> Written:
    bfrt = _Node("bfrt")
    exec(compile(sde_qos(fabric, "leaf"), "leaf", "exec"), {"bfrt": bfrt})
    assert bfrt.written[-1] == ("bfrt.complete_operations", {})
    return bfrt.written


def _of(written: Written, method: str) -> list[dict[str, Any]]:
    return [values for path, values in written if path == f"bfrt.tf1.tm.{method}"]


@pytest.mark.parametrize("seed", range(5))
def test_every_port_has_eight_queues_of_its_own(seed: int) -> None:
    ports = drawn_ports(Random(seed))
    written = _run(tofino(ports))
    for method in ("port.dpg.mod", "port.flowcontrol.mod", "port.sched_cfg.mod"):
        assert sorted(values["dev_port"] for values in _of(written, method)) == sorted(number for number, _ in ports)
    # Device port 128 p + 4 g + n is lane n of group g in pipe p, and has the n-th eight of the group's queues.
    levels = {
        (number // 128, number % 128 // 4, number % 4 * 8 + level): level for number, _ in ports for level in range(8)
    }
    assert len(levels) == 8 * len(ports)
    scheduled = _of(written, "queue.sched_cfg.mod")
    assert len(scheduled) == len(levels)
    assert {
        (values["pipe"], values["pg_id"], values["pg_queue"]): int(values["max_priority"]) for values in scheduled
    } == levels
    assert all(values["max_priority"] == values["min_priority"] for values in scheduled)
    assert not any(values["min_rate_enable"] or values["max_rate_enable"] for values in scheduled)
    for method in ("queue.buffer.mod_with_shared_pool", "queue.color.mod"):
        keys = [(values["pipe"], values["pg_id"], values["pg_queue"]) for values in _of(written, method)]
        assert len(keys) == len(set(keys))
        assert set(keys) == levels.keys()


def test_groups_are_divided_once_before_their_queues() -> None:
    written = _run(tofino([(4, 25), (5, 25), (260, 100)]))
    assert _of(written, "port.group.mod_with_seq") == [
        {"pipe": pipe, "pg_id": 1, "port_queue_count": [8, 8, 8, 8]} for pipe in (0, 2)
    ]
    names = [path for path, _ in written]
    last_group = max(at for at, path in enumerate(names) if "port.group" in path)
    assert last_group < min(at for at, path in enumerate(names) if "tm.queue." in path)


def test_a_cable_slower_than_its_port_is_shaped_and_others_are_not() -> None:
    written = _run(tofino([(4, 100), (8, 30)]))
    assert [(each["dev_port"], each["max_rate"]) for each in _of(written, "port.sched_shaping.mod")] == [
        (8, 30_000_000)
    ]
    enabled = {each["dev_port"]: each["max_rate_enable"] for each in _of(written, "port.sched_cfg.mod")}
    assert enabled == {4: False, 8: True}


def test_a_name_stays_in_its_comment() -> None:
    fabric = tofino([(4, 100)], names=[(4, "up\nbfrt.tf1.tm.cfg.mod(total_cells=0)")])
    assert _of(_run(fabric), "cfg.mod") == []
