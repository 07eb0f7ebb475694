"""Results of worker processes, combined in the order of their cases."""

from collections.abc import Hashable, Iterator, Sequence
from typing import Generic

from experiments.papers.evaluation import CaseT, Evaluation, MeasuredT, ResultT


class Collector(Generic[CaseT, ResultT, MeasuredT]):
    """Collects results and combines each group of cases.

    A group is combined once all its cases, and all cases before the last of these, are measured. So the output does
    not depend on the number of worker processes.
    """

    def __init__(self, evaluation: Evaluation[CaseT, ResultT, MeasuredT], cases: Sequence[CaseT]) -> None:
        self._evaluation, self._cases = evaluation, cases
        self._found: dict[CaseT, ResultT] = {}
        self._num_in_order = 0
        self._groups: dict[Hashable, list[CaseT]] = {}
        for case in cases:
            self._groups.setdefault(evaluation.group(case), []).append(case)

    def add(self, case: CaseT, result: ResultT) -> Iterator[MeasuredT]:
        """Add a result; yields the groups that are now complete."""
        self._found[case] = result
        while self._num_in_order < len(self._cases) and (next_case := self._cases[self._num_in_order]) in self._found:
            self._num_in_order += 1
            group = self._evaluation.group(next_case)
            if next_case is self._groups[group][-1]:
                yield self._evaluation.combine(self._groups.pop(group), self._found)

    def rest(self) -> Iterator[MeasuredT]:
        """Yield the groups that are measured in part: call it when measuring ends."""
        for cases in self._groups.values():
            if measured := [case for case in cases if case in self._found]:
                yield self._evaluation.combine(measured, self._found)
