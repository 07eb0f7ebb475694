"""Advice for a job: which parallelism is the fastest on its cluster, and where the time of an iteration goes."""

from collections.abc import Collection

from experiments.advice.results import Advice
from experiments.advice.search import SIMULATIONS, advise_job
from policies.policy import Policy
from policies.registry import DEFAULT_POLICY, as_policy
from trainyard.scenarios import ScenarioLike, build_scenario
from workloads.combined.alternatives import VARIED
from workloads.combined_workload import CombinedWorkload
from workloads.scenario import Scenario


def advise(
    scenario: ScenarioLike,
    job: str | None = None,
    policy: Policy | str | None = None,
    *,
    simulate: int = SIMULATIONS,
    keep: Collection[str] = (),
) -> Advice:
    """Compare the ways to divide a job with combined parallelism, as if it had the fabric to itself.

    Args:
        scenario: A scenario, its mapping, or the path of its file. Other jobs only take their GPUs.
        job: The job; None: the only one with combined parallelism.
        policy: A policy or the name of a registered one; None: the scenario's own, else Crux.
        simulate: The most alternatives that are simulated; with 0 all times are predictions.
        keep: Keys of the workload, such as ``"zero"``, of which all alternatives have the job's own values.

    Raises:
        ScenarioError: The scenario cannot be used.
        PolicyError: No policy of that name is registered.
        ValueError: There is no such job or key, or no parallelism fits; the message says which.
    """
    accepted = build_scenario(scenario)
    chosen = as_policy(policy or accepted.policy or DEFAULT_POLICY)
    return advise_job(accepted, job_to_advise(accepted, job), chosen, simulations=simulate, kept=checked_keys(keep))


def job_to_advise(scenario: Scenario, name: str | None) -> str:
    """Return the name of the job; None asks for the only one. Raises ValueError where it cannot be advised."""
    combined = [job.name for job in scenario.jobs if isinstance(job.workload, CombinedWorkload)]
    if name is None:
        if len(combined) != 1:
            named = f" ({', '.join(combined)})" if combined else ""
            raise ValueError(
                f"job: expected a name, because {len(combined)} jobs have a workload of type combined{named}"
            )
        return combined[0]
    if name not in combined:
        raise ValueError(f"job: expected one with a workload of type combined ({', '.join(combined)}), got {name!r}")
    return name


def checked_keys(keys: Collection[str]) -> Collection[str]:
    """Return keys that alternatives can keep. Raises ValueError for another one."""
    if unknown := next((key for key in keys if key not in VARIED), None):
        raise ValueError(f"keep: expected some of {', '.join(VARIED)}, got {unknown!r}")
    return keys
