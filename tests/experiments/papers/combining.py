"""Results combined as they are when all cases are measured."""

from collections.abc import Mapping, Sequence

from experiments.papers.collector import Collector
from experiments.papers.evaluation import CaseT, Evaluation, MeasuredT, ResultT


def combine_all(
    evaluation: Evaluation[CaseT, ResultT, MeasuredT], results: Mapping[CaseT, ResultT]
) -> Sequence[MeasuredT]:
    """Return the groups of an evaluation with these cases and results."""
    collector = Collector(evaluation, list(results))
    return [measured for case, result in results.items() for measured in collector.add(case, result)]
