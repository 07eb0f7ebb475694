"""Islands: programs of the runtime over many islands that share a fabric, under policies that know their flow groups.

No paper has this. The programs are those of tenants of a Pathways-like runtime, lowered by its own code.
"""

import statistics
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

from experiments.islands.programs import MICRO_BATCHES
from experiments.islands.run import MEASURED, WARM_UP, ClusterMeasured, TenantMeasured, measure
from experiments.islands.tenants import GBPS_PER_DEVICE, ISLANDS_PER_TOR, LARGEST_START_S, Cluster
from experiments.papers.evaluation import Evaluation, InvalidInputError, Option, check_policies
from experiments.report.findings import Bar, BarChart, Findings, FindingsTable
from experiments.report.numbers import count, percent, seconds

POLICIES = ("ecmp", "crux", "echelonflow", "trainyard")
ISLANDS_PER_TENANT = 8

ASSUMPTIONS = (
    "No paper has figures. Programs are those of three kinds of tenants in turn, on "
    f"{ISLANDS_PER_TENANT} islands each (experiments/islands/programs.py): a GPT in a 1F1B pipeline with "
    f"{MICRO_BATCHES} micro-batches, data parallelism with gradients summed island by island, a mixture of experts.",
    "The runtime lowers each program for its hosts, and derives its flow groups, its task graph and its profile. The "
    "controller's own code admits them.",
    f"An island has four hosts with a NIC each, of {GBPS_PER_DEVICE * 128:g} Gbit/s for 128 devices. A ToR serves "
    f"{ISLANDS_PER_TOR} islands of different tenants, and has half as much capacity upwards as downwards.",
    "Each tenant has its devices for itself: tenants share the fabric alone. Inside an island, communication takes no "
    "time. Calls take their stated times, all shards of one as long.",
    f"Tenants start within {LARGEST_START_S:g} s and run their programs again and again. The policy decides once, for "
    f"all. The window opens after {WARM_UP} runs of the slowest tenant, and is {MEASURED} of them long.",
    "The share of a tenant is its rate over that alone, with its flows on the best fractional paths. A seed is that of "
    "starts, hash and policy; seeds start at 1.",
    "Policies have eight levels. Runs are of the fluid model, which agrees with the simulator.",
)


@dataclass(frozen=True, slots=True)
class IslandsCase:
    """A cluster under a policy."""

    policy: str
    seed: int
    cluster: Cluster

    def __str__(self) -> str:
        return f"{self.cluster.islands} islands under {self.policy}, seed {self.seed}"


@dataclass(frozen=True, slots=True)
class PolicyMeasured:
    """A cluster under a policy; ``runs`` has one for each seed."""

    policy: str
    cluster: Cluster
    seeds: tuple[int, ...]
    runs: tuple[ClusterMeasured, ...]

    def mean(self, of: Callable[[ClusterMeasured], float]) -> float:
        """Return the mean over the seeds."""
        return statistics.mean(map(of, self.runs))

    def tenants(self) -> Iterator[tuple[TenantMeasured, tuple[float, ...]]]:
        """Yield each tenant with its shares, by seed."""
        for of_tenant in zip(*(run.tenants for run in self.runs), strict=True):
            yield of_tenant[0], tuple(each.share for each in of_tenant)

    def mean_share(self, kind: str | None = None) -> float:
        """Return the mean share over seeds and tenants, of one kind or all."""
        return statistics.mean(
            each.share for run in self.runs for each in run.tenants if kind is None or each.kind == kind
        )

    @property
    def worst_share(self) -> float:
        """The least share that a tenant has with any seed."""
        return min(each.share for run in self.runs for each in run.tenants)


def _kinds(measured: Sequence[PolicyMeasured]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.kind for each in measured[0].runs[0].tenants))


def _policies(measured: Sequence[PolicyMeasured]) -> FindingsTable:
    kinds = _kinds(measured)
    rows = tuple(
        (
            of.policy,
            *(percent(of.mean_share(kind)) for kind in kinds),
            *(percent(of.mean_share()), percent(of.worst_share)),
            *(percent(of.mean(lambda run: run.utilisation)), percent(of.mean(lambda run: run.ideal_utilisation))),
        )
        for of in measured
    )
    columns = ("Policy", *kinds, "All", "Worst tenant", "Devices compute", "If alone")
    return FindingsTable("Share of the rate alone, mean over tenants and seeds", columns, rows)


def _tenants(measured: Sequence[PolicyMeasured]) -> FindingsTable:
    by_policy = [dict(enumerate(of.tenants())) for of in measured]
    rows = tuple(
        (
            *(first.name, count(first.flows), seconds(first.compute_s), seconds(first.alone_s)),
            *(percent(statistics.mean(of[number][1])) for of in by_policy),
        )
        for number, (first, _) in by_policy[0].items()
    )
    columns = ("Tenant", "Flows", "Without communication", "Alone", *(of.policy for of in measured))
    return FindingsTable("Share of the rate alone, by tenant", columns, rows)


@dataclass(frozen=True)
class Islands(Evaluation[IslandsCase, ClusterMeasured, PolicyMeasured]):
    """The evaluation ``islands``."""

    unit = "runs"

    islands: Annotated[int, Option(f"Number of islands, a multiple of {ISLANDS_PER_TENANT}.", minimum=8)] = 64
    devices: Annotated[int, Option("Devices of an island, a multiple of 32.", minimum=32, maximum=4096)] = 512
    seeds: Annotated[int, Option("Number of seeds, starting at 1.", minimum=1)] = 3
    policy: Annotated[
        tuple[str, ...], Option("Policy; may be repeated. Default: ecmp, crux, echelonflow, trainyard.")
    ] = ()

    def __post_init__(self) -> None:
        check_policies(self.policy)
        for name, number, divisor in (("islands", self.islands, ISLANDS_PER_TENANT), ("devices", self.devices, 32)):
            if number % divisor:
                raise InvalidInputError([f"--{name}: expected a multiple of {divisor}, got {number}"])

    def cases(self) -> Sequence[IslandsCase]:
        """Return the cases seed by seed, so that an evaluation that ends early has results for every policy."""
        cluster = Cluster(self.islands, self.devices, ISLANDS_PER_TENANT)
        policies = tuple(dict.fromkeys(self.policy)) or POLICIES
        return [IslandsCase(policy, seed, cluster) for seed in range(1, self.seeds + 1) for policy in policies]

    @staticmethod
    def measure(case: IslandsCase) -> ClusterMeasured:
        """Run the tenants."""
        return measure(case.cluster, case.policy, case.seed)

    def group(self, case: IslandsCase) -> Hashable:
        """Report the seeds of a policy together."""
        return case.policy

    def combine(self, cases: Sequence[IslandsCase], results: Mapping[IslandsCase, ClusterMeasured]) -> PolicyMeasured:
        """Combine the runs of all seeds."""
        seeds, runs = tuple(case.seed for case in cases), tuple(results[case] for case in cases)
        return PolicyMeasured(cases[0].policy, cases[0].cluster, seeds, runs)

    def json_object(self, measured: PolicyMeasured) -> dict[str, object]:
        """Return the JSON object of a policy."""
        return {
            "evaluation": "islands",
            "policy": measured.policy,
            "islands": measured.cluster.islands,
            "devices": measured.cluster.devices,
            "seeds": measured.seeds,
            "share": measured.mean_share(),
            "worst_share": measured.worst_share,
            "utilisation": measured.mean(lambda run: run.utilisation),
            "ideal_utilisation": measured.mean(lambda run: run.ideal_utilisation),
            "tenants": [
                {**asdict(tenant), "share": statistics.mean(shares), "shares": shares}
                for tenant, shares in measured.tenants()
            ],
            "assumptions": ASSUMPTIONS,
        }

    def findings(self, measured: Sequence[PolicyMeasured]) -> Findings:
        """Return the findings of all policies."""
        cluster = measured[0].cluster
        bars = tuple(Bar(of.policy, percent(of.mean_share()), of.mean_share()) for of in measured)
        return Findings(
            title=f"{count(cluster.islands)} islands of {count(cluster.devices)} devices, {cluster.tenants} tenants",
            tables=(_policies(measured), _tenants(measured)),
            charts=(BarChart("Share of the rate alone, mean over tenants and seeds", bars),),
            assumptions=ASSUMPTIONS,
        )
