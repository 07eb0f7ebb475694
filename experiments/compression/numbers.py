"""The numbers to reach, from what was measured: the keys that ``benchmarks/netsense.py`` prints."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from experiments.compression.joint_outcomes import JointPlay
from experiments.compression.outcomes import (
    TOLERATED_POINTS,
    AtRate,
    Confirmed,
    Scenario,
    Trained,
    UnderScenario,
    mean,
    time_to,
)
from hostlib.compression.controllers import MODES

OURS = "budget"
DENSE = "AllReduce"
PAPERS = (DENSE, "TopK-0.1")
DEVICE = "GPU"
"""Whose table of codec times the keys use."""
MODEL = "ResNet18"
COMPUTE_S = (0.25, 0.6)
"""Computation per step of the jobs that the keys are of."""
TRAINED_COMPUTE_S = 0.25
"""Of the job whose choices the small models are trained with: the one with less time to send."""
JOINT_POLICY = "trainyard"
"""Of the controller, where two jobs share a link."""
RATES_MBPS = (200.0, 500.0, 800.0)
FAST_MBPS = 10_000.0


@dataclass(frozen=True)
class Numbers:
    """What was measured, to be asked. A number is None where the cases that it needs were not measured."""

    at_rates: Sequence[AtRate]
    scenarios: Sequence[UnderScenario]
    trained: Sequence[Trained]
    joint: Sequence[JointPlay] = ()
    confirmed: Sequence[Confirmed] = ()

    def keys(self) -> dict[str, float | None]:
        """Return all numbers by their keys; infinite: never reached."""
        scenarios = {scenario: self.scenario_share(scenario) for scenario in Scenario}
        worst = [value for rate in RATES_MBPS for value in self.time_ratios(rate).values()]
        return {
            **{f"throughput_share_{rate:g}": self.throughput_share(rate) for rate in RATES_MBPS},
            "accuracy_difference_points_worst": self.accuracy_difference_points_worst(),
            "time_to_accuracy_ratio_worst": max(worst, default=None),
            "time_to_accuracy_ratio_200": max(self.time_ratios(RATES_MBPS[0], PAPERS).values(), default=None),
            "scenario2_share": scenarios[Scenario.FALLING],
            "scenario3_share": scenarios[Scenario.CONTENDED],
            "budget_used": self.budget_used(),
            "overhead_10_gbps": self.overhead_10_gbps(),
            "joint_mean": self.joint_mean(),
            "joint_worst": max((each.joint for each in self.joint), default=None),
        }

    def throughput_share(self, rate_mbps: float) -> float | None:
        """Return ours at a rate over the job without communication, of the job for which it is least."""
        return min((each.of(OURS).share for each in self._of_keys(rate_mbps)), default=None)

    def overhead_10_gbps(self) -> float | None:
        """Return by how much of its step ours is longer than plain DDP's at 10 Gbit/s, for the worst job."""
        found = [each.of(DENSE).share / each.of(OURS).share - 1 for each in self._of_keys(FAST_MBPS)]
        return max(found, default=None)

    def joint_mean(self) -> float | None:
        """Return the mean over mixes of two jobs of what both take with the controller over what they take apart."""
        return mean([each.joint for each in self.joint]) if self.joint else None

    def find(self, task: str, method: str, rate_mbps: float) -> Trained | None:
        """Return a task under a method at a rate."""
        return next(
            (
                each
                for each in self.trained
                if (each.task, each.method) == (task, method) and each.rate_mbps in (None, rate_mbps)
            ),
            None,
        )

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that were trained, with dense as well."""
        return tuple(dict.fromkeys(each.task for each in self.trained if each.method == DENSE))

    def difference(self, each: Trained) -> float | None:
        """Return the mean of paired differences from dense, in points of all test examples; None without dense."""
        dense = self.find(each.task, DENSE, 0)
        return None if dense is None else mean(each.differences(dense))

    def accuracy_difference_points_worst(self) -> float | None:
        """Return ours of the task and rate for which it is least."""
        found = [self.difference(each) for each in self.trained if each.method == OURS]
        return min((value for value in found if value is not None), default=None)

    def time_to_accuracy(self, task: str, method: str, rate_mbps: float) -> float | None:
        """Return when a method reaches dense's final accuracy less the tolerated points; None: never, or unknown."""
        own, dense = self.find(task, method, rate_mbps), self.find(task, DENSE, rate_mbps)
        timeline = self._trained_job(rate_mbps)
        if own is None or dense is None or timeline is None:
            return None
        return time_to(own.curve, timeline.of(method).ends_s, dense.final - TOLERATED_POINTS / 100)

    def time_ratios(self, rate_mbps: float, others: Sequence[str] = ()) -> dict[str, float]:
        """Return our time to accuracy over that of the best baseline, by task; infinite where we never reach it.

        Args:
            rate_mbps: Of the slow links.
            others: The baselines that count; all that are no mode of ours, if there are none.
        """
        found = {}
        for task in self.tasks:
            if self.find(task, OURS, rate_mbps) is None or self._trained_job(rate_mbps) is None:
                continue
            names = others or tuple(each.method for each in self.trained if _is_baseline(each.method))
            times_s = [self.time_to_accuracy(task, name, rate_mbps) for name in dict.fromkeys(names)]
            best_s = min((time_s for time_s in times_s if time_s is not None), default=None)
            own_s = self.time_to_accuracy(task, OURS, rate_mbps)
            if best_s is not None:
                found[task] = float("inf") if own_s is None else own_s / best_s
        return found

    def eligible(self) -> tuple[str, ...]:
        """Return the fixed configurations that end at most the tolerated points below dense, in every task."""
        names = dict.fromkeys(each.method for each in self.trained if each.method not in MODES)
        return tuple(
            name
            for name in names
            if all((self.difference(each) or 0.0) >= -TOLERATED_POINTS for each in self.trained if each.method == name)
        )

    def scenario_share(self, scenario: Scenario) -> float | None:
        """Return our throughput over that of the best fixed configuration, for the condition where it is least."""
        shares = [part.over_best(OURS, self.eligible()) for each in self._of_scenario(scenario) for part in each.parts]
        return min((share for share in shares if share is not None), default=None)

    def budget_used(self) -> float | None:
        """Return the share of the free time that was used, over both scenarios: the mean of their conditions."""
        used = [part.used for scenario in Scenario for each in self._of_scenario(scenario) for part in each.parts]
        known = [value for value in used if value is not None]
        return mean(known) if known else None

    def _of_keys(self, rate_mbps: float) -> list[AtRate]:
        return [
            each
            for each in self.at_rates
            if (each.case.job.model, each.case.job.device) == (MODEL, DEVICE)
            and each.case.job.compute_s in COMPUTE_S
            and each.case.rate_mbps == rate_mbps
        ]

    def _of_scenario(self, scenario: Scenario) -> list[UnderScenario]:
        return [each for each in self.scenarios if each.case.scenario is scenario]

    def _trained_job(self, rate_mbps: float) -> AtRate | None:
        return next((each for each in self._of_keys(rate_mbps) if each.case.job.compute_s == TRAINED_COMPUTE_S), None)


def finite(keys: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return keys as JSON can have them: None for what is infinite, as it is never reached."""
    return {key: value if value is not None and isfinite(value) else None for key, value in keys.items()}


def _is_baseline(method: str) -> bool:
    return method not in MODES and not method.startswith("fixed")
