"""The factor is doubled until cores have time to spare, and every method stands beside virtual time at every rate."""

from collections.abc import Sequence

import pytest

from experiments.compression.outcomes import ConfirmationCase
from experiments.compression.real import confirmation
from experiments.compression.real.plan import Task, TaskResult
from experiments.scenarios.backend import RunError
from hostlib.compression.control.cost import MeasuredCosts

CASE = ConfirmationCase("ResNet18", 0.25, (200.0, 800.0), 4)
REAL_STEP_S = 0.5
"""Before it is slowed."""


class _Hosts:
    """Stands for hosts whose cores are idle for a share that grows with the factor."""

    def __init__(self, idle_from_factor: float) -> None:
        self._idle_from_factor = idle_from_factor
        self.asked: list[tuple[float, float]] = []

    def ran(self, case: ConfirmationCase, rate_mbps: float, factor: float, tasks: Sequence[Task]) -> list[TaskResult]:
        assert case == CASE
        self.asked.append((rate_mbps, factor))
        idle_share = 0.4 if factor >= self._idle_from_factor else 0.2
        costs = {name: None if name == "AllReduce" else MeasuredCosts(hop_s=factor * 1e-3) for name in _names(tasks)}
        return [
            TaskResult(task.method, (REAL_STEP_S * factor,) * task.steps, idle_share, costs[task.method], 0.5)
            for task in tasks
        ]


def _names(tasks: Sequence[Task]) -> list[str]:
    return [task.method for task in tasks]


def test_the_factor_is_doubled_until_cores_are_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = _Hosts(idle_from_factor=60.0)
    monkeypatch.setattr(confirmation, "ran", hosts.ran)
    confirmed = confirmation.confirmed(CASE)
    assert confirmed.factor == 64.0
    assert hosts.asked == [(800.0, 16.0), (800.0, 32.0), (800.0, 64.0), (200.0, 64.0), (800.0, 64.0)]


def test_each_method_stands_beside_virtual_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirmation, "ran", _Hosts(idle_from_factor=1.0).ran)
    methods = confirmation.confirmed(CASE).methods
    assert [(each.method, each.rate_mbps) for each in methods] == [
        (name, rate) for rate in (200.0, 800.0) for name in ("AllReduce", "TopK-0.1", "budget")
    ]
    assert all(each.real_step_s == REAL_STEP_S for each in methods)
    # 46.8 MB by a ring of 14 messages, 1 ms each: the hop that was measured, over the factor.
    dense = methods[3]
    last_s = dense.virtual_step_s - 0.25
    assert 14 * 1e-3 < last_s < 14 * 3e-3 + 1.75 * 46.8e6 / 1e8
    assert dense.difference == pytest.approx(dense.virtual_step_s / REAL_STEP_S - 1)


def test_cores_that_are_never_idle_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirmation, "ran", _Hosts(idle_from_factor=1e9).ran)
    with pytest.raises(RunError, match="80% of the cores are busy even 128 times slower"):
        confirmation.confirmed(CASE)
