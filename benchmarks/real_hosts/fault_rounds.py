"""Rounds of random kills on the three jobs, over as many runs as they take."""

import random
import statistics
import sys
from collections.abc import Iterator

from benchmarks.real_hosts.faults import FaultyRun, Round
from benchmarks.real_hosts.run_processes import Part
from workloads.loading import SHIPPED_SCENARIOS, load_scenario
from workloads.scenario import Scenario

SEED = 1
_ITERATION_BYTES = 2.1e9
"""A quarter of what the smaller jobs have, so that iterations are short."""
_OUTLASTS_S = 3600.0
_WEIGHTS = {Part.EMULATOR: 2, Part.CONTROLLER: 3, Part.AGENT: 3, Part.RANK: 2, Part.RUN: 1}
_MOST_RANKS = 2
"""Of the three jobs, so that one is left to go on."""
_MOST_IN_A_RUN = 6

Figures = dict[str, object]


def scenario_of_faults() -> Scenario:
    """Return the three jobs, with short iterations, without an end, and with probes."""
    shipped = load_scenario(SHIPPED_SCENARIOS / "three-jobs.yaml")
    jobs = tuple(
        job.model_copy(
            update={
                "duration_s": _OUTLASTS_S,
                "workload": job.workload.model_copy(update={"bytes": _ITERATION_BYTES}),
            }
        )
        for job in shipped.jobs
    )
    return shipped.model_copy(update={"jobs": jobs, "probes": True})


async def fault_figures(rounds: int, *, is_real_time: bool) -> Figures:
    """Kill as often as there are rounds, and count those after which all was well."""
    chance = random.Random(SEED)
    played: list[Round] = []
    for parts in list(drawn(rounds, chance)):
        async with FaultyRun(scenario_of_faults(), chance, is_real_time=is_real_time) as run:
            played += await run.play(parts)
        print(f"{len(played)} of {rounds} kills, the last: {played[-1]}", file=sys.stderr, flush=True)
    recoveries = {part: [each.recovery_s for each in played if each.part is part] for part in Part}
    return {
        "fault_rounds": len(played),
        "fault_rounds_failed": sum(bool(each.problems) for each in played),
        "fault_problems": [f"{each.part}: {problem}" for each in played for problem in each.problems],
        "recovery_median_s": {part: round(statistics.median(times), 2) for part, times in recoveries.items() if times},
        "recovery_worst_s": {part: round(max(times), 2) for part, times in recoveries.items() if times},
    }


def drawn(rounds: int, chance: random.Random) -> Iterator[list[Part]]:
    """Yield what to kill in each run, so many kills in all."""
    left = rounds
    while left:
        parts: list[Part] = []
        while len(parts) < min(left, _MOST_IN_A_RUN) and Part.RUN not in parts:
            (part,) = chance.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
            if part is not Part.RANK or parts.count(part) < _MOST_RANKS:
                parts.append(part)
        left -= len(parts)
        yield parts
