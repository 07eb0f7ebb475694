"""Names and summaries of all evaluations. Importing this module imports none of them."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from experiments.papers.evaluation import Evaluation


@dataclass(frozen=True, slots=True)
class EvaluationEntry:
    """An evaluation by name; ``location`` is its module in this package and its class, ``module:Class``."""

    name: str
    summary: str
    location: str

    def load(self) -> type[Evaluation[Any, Any, Any]]:
        """Import and return the class."""
        module, _, name = self.location.partition(":")
        found: type[Evaluation[Any, Any, Any]] = getattr(import_module(f"{__package__}.{module}"), name)
        return found


EVALUATIONS = (
    EvaluationEntry(
        "crux-testbed",
        "Crux's testbed (Figures 19 to 22): utilisation and iteration times under ecmp, crux and trainyard.",
        "crux_testbed:CruxTestbed",
    ),
    EvaluationEntry(
        "crux-microbench",
        "Crux's microbenchmark (Figure 16): paths, priorities and compression of several policies against the optimum.",
        "crux_microbench:CruxMicrobenchmark",
    ),
    EvaluationEntry(
        "crux-trace",
        "Crux's simulation of a trace (Figures 23 and 24): utilisation and slowdowns under eight policies.",
        "crux_trace:CruxTrace",
    ),
    EvaluationEntry(
        "crux-trace-loads",
        "A trace at offered loads: the gap to the fluid bound, and the share of crux's gap that each policy closes.",
        "trace_loads:TraceLoads",
    ),
    EvaluationEntry(
        "crux-schedulers",
        "Crux beside job schedulers (Figure 25): utilisation under each, with ecmp and with crux.",
        "crux_schedulers:CruxSchedulers",
    ),
    EvaluationEntry(
        "trace-sensitivity",
        "Sensitivity of a trace's result: ecmp and crux with one assumption at a time changed.",
        "trace_sensitivity:TraceSensitivity",
    ),
    EvaluationEntry(
        "coflow",
        "The coflow benchmark, from github.com/coflow/coflow-benchmark: completion times under fair, FIFO, Varys and "
        "Sincronia.",
        "coflow:CoflowBenchmark",
    ),
    EvaluationEntry(
        "churn",
        "Rules, paths and levels changed per arrival and departure of jobs, with and without damping.",
        "churn:Churn",
    ),
    EvaluationEntry(
        "robustness",
        "Utilisation under wrong job profiles, jitter, late decisions and few levels, for each policy.",
        "robustness:Robustness",
    ),
    EvaluationEntry(
        "echelon",
        "EchelonFlow beside fair sharing and coflows: iteration time, tardiness and excess tardiness of jobs that "
        "share a cable, and small cases against the optimum.",
        "echelon:Echelon",
    ),
    EvaluationEntry(
        "netsense",
        "NetSenseML's tables and figures: throughput and time to accuracy of compressed gradients, in virtual time.",
        "netsense:NetSenseEvaluation",
    ),
    EvaluationEntry(
        "islands",
        "Programs of the runtime over 64 islands of 512 devices that share a fabric: rates under each policy.",
        "islands:Islands",
    ),
)
