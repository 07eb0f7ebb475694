"""All metrics of a controller, by Prometheus' conventions: what each means, its labels and its unit.

What happens is counted where it happens, in the metrics of ``REGISTRY``, from the start of the process on:

    PLANS.labels("made").inc()

What is so at a time is a ``State``, which is read when Prometheus asks (``controller.web.metric_states``). Labels have
few values: names of tenants and switches go through ``TENANTS`` and ``SWITCHES``, which bound them.
"""

import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from controller.version import installed_version
from topologies.printable import printable

OTHER = "other"
"""The label of all tenants or switches beyond those that have labels of their own."""

_MOST_CHARACTERS = 100

prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]


class BoundedLabels:
    """The first ``most`` names that are asked for, each a label; all others have one together."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[str, str] = {}

    def of(self, name: str) -> str:
        """The label of a name, in printable characters."""
        known = self._known.get(name)
        if known is not None:
            return known
        if len(self._known) >= self._most:
            return OTHER
        self._known[name] = label = printable(name, _MOST_CHARACTERS)
        return label


TENANTS = BoundedLabels(200)
SWITCHES = BoundedLabels(2_000)

REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)

_FAST_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SLOW_S = (*_FAST_S, 30.0, 60.0)
_LAGS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)

BUILD = Gauge("trainyard_build_info", "The version that runs; always 1.", ["version", "python"], registry=REGISTRY)
BUILD.labels(installed_version(), platform.python_version()).set(1)

PLANNING = Histogram(
    "trainyard_planning_duration_seconds",
    "Time that a phase of a Plan took: taking the snapshot, deciding, drafting rules, writing them to switches.",
    ["phase"],
    buckets=_SLOW_S,
    registry=REGISTRY,
)
PLANS = Counter(
    "trainyard_plans",
    "Plans by outcome: made (in force), failed (the policy made none), refused (a switch rejected its part).",
    ["outcome"],
    registry=REGISTRY,
)
for phase in ("snapshot", "decide", "draft", "write"):
    PLANNING.labels(phase)
for outcome in ("made", "failed", "refused"):
    PLANS.labels(outcome)

UPDATES = Counter(
    "trainyard_switch_updates",
    "Entries that a switch was asked to insert, modify or delete, by how it answered.",
    ["switch", "kind", "outcome"],
    registry=REGISTRY,
)
DRIFTED = Counter(
    "trainyard_switch_drifted_entries",
    "Entries that somebody else had deleted, changed or added at a switch, and that were repaired.",
    ["switch"],
    registry=REGISTRY,
)
OPENFLOW_REFUSED = Counter(
    "trainyard_openflow_refused_connections",
    "OpenFlow connections that were refused in the handshake or cut off later, since the peer broke the rules.",
    ["reason"],
    registry=REGISTRY,
)
LEASES_ENDED = Counter("trainyard_leases_ended", "Jobs that were removed as their leases had ended.", registry=REGISTRY)
LEASES_EXTENDED = Counter(
    "trainyard_leases_extended_seconds",
    "Time by which all leases were extended, since the controller could hear nobody.",
    registry=REGISTRY,
)
LOOP_LAG = Histogram(
    "trainyard_event_loop_lag_seconds",
    "How late a timer is in the event loop that answers calls.",
    buckets=_LAGS_S,
    registry=REGISTRY,
)
CALLS = Counter(
    "trainyard_calls",
    "Calls by protocol (grpc, http), tenant (empty: none) and gRPC status, OK among them, once they have ended.",
    ["protocol", "tenant", "status"],
    registry=REGISTRY,
)
COMMITS = Histogram(
    "trainyard_database_commit_duration_seconds",
    "Time from asking for a transaction to its end, by outcome.",
    ["outcome"],
    buckets=_FAST_S,
    registry=REGISTRY,
)
TERMS = Counter("trainyard_leadership_terms", "Terms in which this controller began to lead.", registry=REGISTRY)
SCRAPES = Histogram(
    "trainyard_scrape_duration_seconds",
    "Time that making these metrics took.",
    buckets=_FAST_S,
    registry=REGISTRY,
)


@dataclass(frozen=True, slots=True)
class State:
    """A metric that is read when Prometheus asks for it; ``counts`` says whether it only rises."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    counts: bool = False

    def family(self, samples: Mapping[tuple[str, ...], float]) -> GaugeMetricFamily | CounterMetricFamily:
        """The metric with a value for each of these labels."""
        kind = CounterMetricFamily if self.counts else GaugeMetricFamily
        family = kind(self.name, self.help, labels=self.labels)
        for labels, value in samples.items():
            family.add_metric(labels, value)
        return family

    def value(self, value: float) -> GaugeMetricFamily | CounterMetricFamily:
        """The metric without labels."""
        return self.family({(): value})


def summed(samples: Iterable[tuple[tuple[str, ...], float]]) -> dict[tuple[str, ...], float]:
    """Samples by their labels; those of the same labels are added."""
    sums: dict[tuple[str, ...], float] = {}
    for labels, value in samples:
        sums[labels] = sums.get(labels, 0.0) + value
    return sums


LEADS = State("trainyard_is_leader", "1 where this controller leads and is ready to answer, 0 where it stands by.")
TERM = State("trainyard_leadership_term", "The term in which this controller writes to the database.")
POLICY = State("trainyard_policy_info", "The policy in force; always 1.", ("policy",))
PLAN_NUMBER = State("trainyard_plan_number", "The number of the Plan in force; 0 before the first.")
JOBS = State(
    "trainyard_jobs",
    "Registered jobs by level (empty: not planned yet) and where their profile is from.",
    ("level", "profile"),
)
LEVELS = State("trainyard_levels_in_use", "Levels that flows of the Plan in force have.")
FLOWS = State("trainyard_flows", "Flows of the Plan in force, by level.", ("level",))
STEERED = State("trainyard_steered_flows", "Flows of the Plan in force that leave the path of the hash.")
CUT_OFF = State("trainyard_cut_off_flows", "Flows of the Plan in force without a path that works.")
STREAMS = State("trainyard_directive_streams", "Streams of directives that jobs follow now.")
NEXT_LEASE_END = State("trainyard_next_lease_end_seconds", "Time until the earliest lease ends.")
CONDITIONS = State("trainyard_switches", "Switches by condition.", ("condition",))
CONDITION = State(
    "trainyard_switch_condition",
    "1 for the condition in which a switch is; the number of switches under the label other.",
    ("switch", "condition"),
)
CONTACT = State(
    "trainyard_switch_contact_seconds", "Time since a switch was reached, left, or taken away last.", ("switch",)
)
RULES = State("trainyard_switch_rules", "Rules that a switch is known to hold.", ("switch",))
PLANNED_RULES = State("trainyard_switch_planned_rules", "Rules of the Plan in force for a switch.", ("switch",))
CABLES = State("trainyard_cables", "Cables by state: used, drained, or why they are not used.", ("state",))
DRAINS = State("trainyard_drains", "Switches, cables and hosts that operators have drained.")
PAUSED = State("trainyard_planning_paused", "1 while planning is paused, 2 while all rules are released too, else 0.")
PINS = State("trainyard_pins", "Levels of jobs and paths of flows that operators have pinned.")
DIFFERENCES = State("trainyard_cable_differences", "Differences between fabric file and fabric, by kind.", ("kind",))
PAIRS = State("trainyard_probed_pairs", "Pairs of NICs that hosts probe.")
ACCEPTED = State("trainyard_probe_reports_accepted", "Reports of probes that passed all checks.", counts=True)
RECEIVED = State("trainyard_probes_received", "Probes that were reported, of pairs that are probed now.")
MISSING = State("trainyard_probes_missing", "Probes that were sent and never reported, of pairs that are probed now.")
DROPS = State(
    "trainyard_drops",
    "Reports and packets that the controller, and packets that hosts' agents (as they count), have dropped, by reason.",
    ("by", "reason"),
    counts=True,
)
DATABASE_UP = State("trainyard_database_up", "1 where the last write to the database succeeded, else 0.")
DATABASE_QUEUE = State("trainyard_database_queued_writes", "Transactions that wait for the thread that writes.")
AUDIT_QUEUE = State("trainyard_audit_queued_entries", "Entries of the audit trail that wait for the database.")
AUDIT_LOST = State(
    "trainyard_audit_lost_entries", "Entries that are not in the audit trail, as too many waited.", counts=True
)
RECORDED = State("trainyard_recorded_plan_number", "The number of the last Plan in the record.")
WORST_LAG = State("trainyard_event_loop_worst_lag_seconds", "The longest lag since this controller began to lead.")
