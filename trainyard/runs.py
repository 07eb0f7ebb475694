"""Runs of a scenario under one policy or several, on any back end."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.scenarios import results
from experiments.scenarios.backend import Backend, run_on, unsupported_on
from policies.enforcement import Enforcement
from policies.policy import Policy
from policies.registry import DEFAULT_POLICY, as_policy
from trainyard.frames import frame_of
from trainyard.progress import OnProgress
from trainyard.progress import progress as progress_bar
from trainyard.scenarios import ScenarioLike, build_scenario
from workloads.scenario import Scenario

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class RunResult(results.RunResult):
    """The result of a run of a scenario under a policy: utilisation, iteration times, tardiness, and how it was run."""

    def to_dict(self) -> dict[str, Any]:
        """Return what ``trainyard run -o json`` prints, but for the file, its hash, the seed and versions."""
        return results.run_object(self)

    def to_frame(self) -> "pd.DataFrame":
        """Return a pandas DataFrame with a row for each job. Raises ImportError where pandas is not installed."""
        return frame_of([{"policy": self.policy} | job for job in self.to_dict()["jobs"]])

    def plot(self) -> "Figure":
        """Return a figure of what every job computes and sends over a few iterations."""
        from experiments.report.figures import plot_timeline

        return plot_timeline(self)

    def plot_links(self) -> "Figure":
        """Return a figure of the load of the busiest links by level over time."""
        from experiments.report.figures import plot_link_loads

        return plot_link_loads(self)

    def plot_topology(self) -> "Figure":
        """Return a drawing of the fabric with the intensity and the load that its cables carry."""
        from experiments.report.figures import plot_topology

        return plot_topology(self)

    def save_perfetto(self, path: str | Path) -> None:
        """Write what happened over time, as ``trainyard run --perfetto`` does. Raises OSError."""
        from experiments.report.perfetto import write_perfetto

        write_perfetto([self], Path(path))


@dataclass(frozen=True)
class Comparison(Mapping[str, RunResult]):
    """The runs of one scenario under several policies, by the policy's name, in the order asked for."""

    runs: tuple[RunResult, ...]

    def __getitem__(self, policy: str) -> RunResult:
        for result in self.runs:
            if result.policy == policy:
                return result
        raise KeyError(policy)

    def __iter__(self) -> Iterator[str]:
        return (result.policy for result in self.runs)

    def __len__(self) -> int:
        return len(self.runs)

    def to_dict(self) -> dict[str, Any]:
        """Return the runs as mappings, by policy."""
        return {result.policy: result.to_dict() for result in self.runs}

    def to_frame(self) -> "pd.DataFrame":
        """Return a pandas DataFrame with a row for each policy. Raises ImportError where pandas is not installed."""
        keys = ("policy", "gpu_utilisation", "ideal_gpu_utilisation", "fluid_bound_gpu_utilisation")
        more = ("starved_jobs", "worst_speed", "total_tardiness_s", "num_rules")
        return frame_of([{key: getattr(result, key) for key in (*keys, *more)} for result in self.runs])

    def plot(self) -> "Figure":
        """Return a figure of the GPU utilisation of every policy, with the ideal and the fluid bound."""
        from experiments.report.figures import plot_utilisation

        return plot_utilisation(self.runs)

    def save_report(self, path: str | Path) -> None:
        """Write the page of pictures that ``trainyard run --report`` writes."""
        from experiments.report.page import runs_report

        runs_report([self.runs]).write(Path(path))

    def save_perfetto(self, path: str | Path) -> None:
        """Write what happened in all runs over time, as ``trainyard run --perfetto`` does. Raises OSError."""
        from experiments.report.perfetto import write_perfetto

        write_perfetto(self.runs, Path(path))


def run(
    scenario: ScenarioLike,
    policy: Policy | str | None = None,
    *,
    on: Backend | str = Backend.EMULATOR,
    enforcement: Enforcement | str = Enforcement.LEVELS,
    seed: int | None = None,
    real_time: bool = False,
    progress: bool | OnProgress = True,
) -> RunResult:
    """Run a scenario under a policy to the departure of its last job.

    It may be called where an event loop runs, as in a notebook: the run then has a thread of its own.

    Args:
        scenario: A scenario, its mapping, or the path of its file.
        policy: A policy or the name of a registered one; None: the scenario's own, else Crux.
        on: ``"emulator"`` executes the P4 program for every packet; ``"simulator"`` moves flows, and is much faster;
            ``"namespaces"`` and ``"mininet"`` run real programs and connections, in wall-clock time.
        enforcement: ``"levels"``: what switches can do; ``"ideal"``: the policy's own rates (simulator only).
        seed: Takes the place of the scenario's seed.
        real_time: Whether what passes the frames of real hosts asks for real-time priority.
        progress: Whether to show it, as a bar on terminals and in notebooks and elsewhere as a line every 30 s; or a
            function to call instead.

    Raises:
        ScenarioError: The scenario cannot be used.
        PolicyError: No policy of that name is registered.
        ValueError: The back end cannot run the scenario; the message says why.
        RunError: The run failed.
    """
    accepted = build_scenario(scenario)
    chosen = as_policy(policy or accepted.policy or DEFAULT_POLICY)
    return _run(_seeded(accepted, seed), chosen, Backend(on), Enforcement(enforcement), real_time, progress)


def compare(
    scenario: ScenarioLike,
    policies: Sequence[Policy | str],
    *,
    on: Backend | str = Backend.EMULATOR,
    enforcement: Enforcement | str = Enforcement.LEVELS,
    seed: int | None = None,
    real_time: bool = False,
    progress: bool | OnProgress = True,
) -> Comparison:
    """Run a scenario under each of these policies; arguments and errors are those of ``run``."""
    if isinstance(policies, str) or not policies:
        raise ValueError(f"policies: expected a sequence of at least one policy, got {policies!r}")
    accepted = _seeded(build_scenario(scenario), seed)
    chosen = [as_policy(policy) for policy in policies]
    names = [policy.name for policy in chosen]
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"policies: expected every policy once, {repeated!r} is there twice")
    return Comparison(
        tuple(_run(accepted, policy, Backend(on), Enforcement(enforcement), real_time, progress) for policy in chosen)
    )


def _seeded(scenario: Scenario, seed: int | None) -> Scenario:
    return scenario if seed is None else scenario.model_copy(update={"seed": seed})


def _run(
    scenario: Scenario,
    policy: Policy,
    backend: Backend,
    enforcement: Enforcement,
    real_time: bool,
    progress: bool | OnProgress,
) -> RunResult:
    if real_time and not backend.has_real_hosts:
        raise ValueError(f"real_time: expected on='namespaces' or 'mininet', got {backend.value!r}")
    if (problem := unsupported_on(scenario, backend, enforcement)) is not None:
        raise ValueError(f"{scenario.name}: {problem}")
    shown: AbstractContextManager[OnProgress]
    if callable(progress):
        shown = nullcontext(progress)
    else:
        shown = progress_bar(f"{scenario.name} under {policy.name}") if progress else nullcontext(_ignore)
    with shown as on_progress:
        result = _outside_event_loop(
            lambda: run_on(*(backend, scenario, policy, enforcement), is_real_time=real_time, on_progress=on_progress)
        )
    return RunResult(**{each.name: getattr(result, each.name) for each in fields(result)})


def _outside_event_loop(work: Callable[[], results.RunResult]) -> results.RunResult:
    """Do the work here or, where an event loop runs in this thread, in another one: a run starts its own loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    with ThreadPoolExecutor(1, "trainyard run") as executor:
        return executor.submit(work).result()


def _ignore(_: float, __: float) -> None:
    pass
