"""Checks that a sound policy passes, to call from the tests of a policy.

::

    import pytest
    from policies.testing import CHECKS, Check

    @pytest.mark.parametrize("check", CHECKS)
    def test_my_policy(check: Check) -> None:
        check(MY_POLICY)

Each check decides on random Snapshots, the same ones every time. It raises AssertionError with the seed of a Snapshot
on which the property does not hold, and ``random_snapshot(seed)`` returns that Snapshot. The checks need no package
beyond those of the policies.
"""

import math
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from types import FrameType
from typing import Any, Protocol

from policies.flows import Flow, FlowGroup, FlowKey
from policies.job import Job, Profile
from policies.plan import JobPlan, Plan
from policies.policy import Policy, decide
from policies.snapshot import Links, LinkState, OrderKeeper, Snapshot
from policies.validation import InvalidPlanError, check_plan
from topologies.addressing import FLOW_DESTINATION_PORT, UDP_PROTOCOL, Address, FiveTuple
from topologies.fabric import Path
from topologies.paths import Paths

SEEDS: Sequence[int] = range(30)
"""Seeds of the Snapshots that a check decides on by default."""

_GBPS = 1e9
_NOISE = 1e-9
_CLOSE = 1e-6
"""Time shifts that differ by less are equal: unlike levels and paths they are real numbers."""
_SLACK = 1.25
_SIZES = (8, 16, 32)
_POWERS = (-10, 10)


class Check(Protocol):
    """A function that checks a policy for one property."""

    def __call__(self, policy: Policy, seeds: Sequence[int] = SEEDS) -> None:
        """Decide on ``random_snapshot`` of each seed.

        Raises:
            AssertionError: The property does not hold.
        """


def random_snapshot(seed: int, num_jobs: int | None = None) -> Snapshot:
    """Return a valid Snapshot of jobs that share links.

    Snapshots of even seeds have coarse sizes and times, so that ties are common; those of odd seeds have none. Some
    jobs send nothing, some flows have a single path, and on some links no switch keeps the order.

    Args:
        seed: Determines the Snapshot.
        num_jobs: How many jobs; None: up to six, by the seed.
    """
    chance = random.Random(seed)
    num_jobs = chance.randint(0, 6) if num_jobs is None else num_jobs
    num_links = 4 + num_jobs
    keepers = chance.choices((OrderKeeper.SWITCH_QUEUE, OrderKeeper.HOST, OrderKeeper.NOTHING), (6, 1, 1), k=num_links)
    links = Links(LinkState(chance.choice((1, 2, 10)) * _GBPS, keeper) for keeper in keepers)
    jobs = tuple(_random_job(f"job-{number:03}", chance, num_links, seed % 2 == 0) for number in range(num_jobs))
    return Snapshot(0.0, links, jobs, num_levels=chance.randint(1, 8), seed=chance.randint(0, 3))


def snapshots(seed: int = 0, count: int = len(SEEDS)) -> Iterator[Snapshot]:
    """Return so many random Snapshots: ``random_snapshot`` of this seed and the following ones."""
    return map(random_snapshot, range(seed, seed + count))


def check_plans_are_valid(policy: Policy, seeds: Sequence[int] = SEEDS) -> None:
    """Check that Plans are valid: every job and flow once, ranks in order, levels and paths that exist."""
    for seed in seeds:
        snapshot = random_snapshot(seed)
        plan = decide(policy, snapshot)
        try:
            check_plan(plan, snapshot)
        except InvalidPlanError as error:
            raise AssertionError(_failure(policy, seed, str(error))) from error


def check_decisions_repeat(policy: Policy, seeds: Sequence[int] = SEEDS) -> None:
    """Check that equal Snapshots give equal Plans."""
    for seed in seeds:
        first, again = (decide(policy, random_snapshot(seed)) for _ in range(2))
        _require(first == again, policy, seed, "equal Snapshots have different Plans")


def check_order_of_jobs_does_not_matter(policy: Policy, seeds: Sequence[int] = SEEDS) -> None:
    """Check that the Plan does not depend on the order in which the Snapshot lists the jobs."""
    for seed in seeds:
        snapshot = random_snapshot(seed)
        jobs = list(snapshot.jobs)
        random.Random(seed).shuffle(jobs)
        changed = _changed(decide(policy, snapshot), decide(policy, replace(snapshot, jobs=tuple(jobs))))
        _require(not changed, policy, seed, f"other decisions for {_list(changed)} with jobs in another order")


def check_scale_does_not_matter(policy: Policy, seeds: Sequence[int] = SEEDS) -> None:
    """Check that scaling all bytes and all rates by one factor changes no decision."""
    for seed in seeds:
        snapshot = random_snapshot(seed)
        for power in _POWERS:
            factor = 2.0**power  # a power of two rounds nothing
            changed = _changed(decide(policy, snapshot), decide(policy, _scaled(snapshot, factor)))
            _require(
                not changed, policy, seed, f"other decisions for {_list(changed)} with all {factor:g} times as large"
            )


def check_no_inversion(policy: Policy, seeds: Sequence[int] = SEEDS) -> None:
    """Check that of two flows on a switch's link the one earlier in the order never has the lower level."""
    for seed in seeds:
        snapshot = random_snapshot(seed)
        plan = decide(policy, snapshot)
        flows = [flow for job in snapshot.jobs for flow in job.flows if flow.sends]
        for one, other in combinations(flows, 2):
            first, second = plan.flows[one.key], plan.flows[other.key]
            shared = set(first.path or one.hashed_path) & set(second.path or other.hashed_path)
            if any(snapshot.links[link].order_keeper is OrderKeeper.SWITCH_QUEUE for link in shared):
                is_inverted = (first.order - second.order) * (second.level - first.level) < 0
                _require(
                    not is_inverted,
                    policy,
                    seed,
                    f"{_named(one)} and {_named(other)} share a link, and levels {first.level} and {second.level}"
                    f" contradict orders {first.order} and {second.order}",
                )


def check_damping(policy: Policy, seeds: Sequence[int] = SEEDS) -> None:
    """Check that a policy keeps its own Plan where nothing has changed, or sizes differ only by rounding."""
    for seed in seeds:
        snapshot = random_snapshot(seed)
        plan = decide(policy, snapshot)
        changed = _changed(plan, decide(policy, replace(snapshot, previous=plan)))
        _require(not changed, policy, seed, f"other decisions for {_list(changed)} although nothing has changed")
        if seed % 2 == 1:  # in Snapshots of even seeds jobs tie, and any change may decide between them
            noisy = replace(_noisy(snapshot, random.Random(seed)), previous=plan)
            changed = _changed(plan, decide(policy, noisy))
            _require(not changed, policy, seed, f"sizes that differ by {_NOISE:g} move {_list(changed)}")


def check_bounded_steps(policy: Policy, seeds: Sequence[int] = range(3), exponent: float = 2.0) -> None:
    """Check that twice the jobs take at most 2^``exponent`` times the steps, with a quarter to spare.

    A step is one executed line of Python, so the speed of the machine does not matter. Whatever compiled code does
    inside one line counts as one step.
    """
    for size, larger in pairwise(_SIZES):
        few, many = (sum(_steps(policy, random_snapshot(seed, jobs)) for seed in seeds) for jobs in (size, larger))
        _require(
            many <= _SLACK * 2**exponent * few,
            policy,
            seeds[0],
            f"{few} steps for {size} jobs and {many} for {larger}, which is more than {2**exponent:g} times as many",
        )


def check_memory_is_recorded(policy: Policy, seeds: Sequence[int] = SEEDS) -> None:
    """Check that a Plan's memory, encoded and decoded, leads to the same next decision as the memory itself."""
    for seed in seeds:
        snapshot = random_snapshot(seed)
        before = replace(snapshot, jobs=snapshot.jobs[: len(snapshot.jobs) // 2])
        plan = decide(policy, before)
        recalled = policy.with_memory(replace(plan, memory=None), policy.encode_memory(plan), before)
        one, other = (decide(policy, replace(snapshot, previous=previous)) for previous in (plan, recalled))
        _require(one == other, policy, seed, "the recorded memory leads to another Plan")


CHECKS: tuple[Check, ...] = (
    check_plans_are_valid,
    check_decisions_repeat,
    check_order_of_jobs_does_not_matter,
    check_scale_does_not_matter,
    check_no_inversion,
    check_damping,
    check_bounded_steps,
    check_memory_is_recorded,
)
"""All checks."""


def _random_job(name: str, chance: random.Random, num_links: int, is_coarse: bool) -> Job:
    def number(low: float, high: float) -> float:
        return float(chance.randint(int(low), int(high))) if is_coarse else chance.uniform(low, high)

    groups = tuple(
        FlowGroup(
            f"group-{group}",
            tuple(
                _random_flow(FlowKey(name, f"group-{group}", flow), chance, num_links, number(0, 4) * _GBPS)
                for flow in range(chance.randint(0, 3))
            ),
        )
        for group in range(chance.randint(1, 2))
    )
    profile = Profile(number(0, 4), chance.choice((0.0, 0.5, 1.0)), number(0, 3))
    return Job(name, number(0, 4), chance.choice((1, 8, 16)), profile, groups)


def _random_flow(key: FlowKey, chance: random.Random, num_links: int, size_bytes: float) -> Flow:
    paths: list[Path] = []
    for _ in range(chance.randint(1, 3)):
        path = tuple(chance.sample(range(num_links), chance.randint(1, 3)))
        if path not in paths:
            paths.append(path)
    five_tuple = FiveTuple(Address(1), Address(2), UDP_PROTOCOL, chance.randint(49_152, 65_535), FLOW_DESTINATION_PORT)
    return Flow(key, five_tuple, size_bytes, chance.choice((0.0, 0.0, 0.5, 1.0)), Paths(paths), chance.choice(paths))


def _changed(before: Plan, after: Plan) -> list[object]:
    """Return the jobs and flows for which switches or hosts do something else; figures and reasons do not count."""
    then, now = ({job.name: job for job in plan.jobs} for plan in (before, after))
    jobs = [name for name in then.keys() | now.keys() if not _is_same(then.get(name), now.get(name))]
    keys = before.flows.keys() | after.flows.keys()
    return [*sorted(jobs), *sorted(key for key in keys if before.flows.get(key) != after.flows.get(key))]


def _is_same(one: JobPlan | None, other: JobPlan | None) -> bool:
    if one is None or other is None or (one.rank, one.level) != (other.rank, other.level):
        return False
    if one.time_shift_s is None or other.time_shift_s is None:
        return one.time_shift_s is other.time_shift_s
    return math.isclose(one.time_shift_s, other.time_shift_s, rel_tol=_CLOSE, abs_tol=_CLOSE)


def _scaled(snapshot: Snapshot, factor: float) -> Snapshot:
    links = Links(replace(link, rate_bps=factor * link.rate_bps) for link in snapshot.links)
    return _with_sizes(replace(snapshot, links=links), lambda size_bytes: factor * size_bytes)


def _noisy(snapshot: Snapshot, chance: random.Random) -> Snapshot:
    return _with_sizes(snapshot, lambda size_bytes: size_bytes * (1 + chance.uniform(-_NOISE, _NOISE)))


def _with_sizes(snapshot: Snapshot, changed: Callable[[float], float]) -> Snapshot:
    def with_sizes(group: FlowGroup) -> FlowGroup:
        return replace(group, flows=tuple(replace(flow, size_bytes=changed(flow.size_bytes)) for flow in group.flows))

    jobs = (replace(job, flow_groups=tuple(map(with_sizes, job.flow_groups))) for job in snapshot.jobs)
    return replace(snapshot, jobs=tuple(jobs))


def _steps(policy: Policy, snapshot: Snapshot) -> int:
    """Return how many lines of Python a decision runs, not counting imports."""
    decide(policy, snapshot)
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:  # noqa: ARG001
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        decide(policy, snapshot)
    finally:
        sys.settrace(before)
    return count


def _require(holds: bool, policy: Policy, seed: int, message: str) -> None:
    if not holds:
        raise AssertionError(_failure(policy, seed, message))


def _failure(policy: Policy, seed: int, message: str) -> str:
    return f"policy {policy.name!r}, random_snapshot({seed}): {message}"


def _named(flow: Flow) -> str:
    return f"flow {flow.key.flow} of group {flow.key.group!r} of job {flow.key.job!r}"


def _list(what: Sequence[object], most: int = 3) -> str:
    more = f" and {len(what) - most} more" if len(what) > most else ""
    return ", ".join(map(str, what[:most])) + more
