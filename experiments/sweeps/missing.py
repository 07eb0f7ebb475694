"""From a grid and an output to what is missing there, run and written line by line."""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing

from experiments.sweeps.case import Case, run_case
from experiments.sweeps.execution import Answers, Failure
from experiments.sweeps.output import Output
from experiments.sweeps.result_line import Measured, ResultLine

Execution = Callable[[Callable[[Case], Measured | Failure], Sequence[Case]], Answers[Case, Measured | Failure]]
"""Processes, or a cluster: see ``execution``."""


def missing(grid: Sequence[Case], output: Output) -> list[Case]:
    """What has still to run: what failed has, too."""
    lines = output.lines
    return [case for case in grid if (line := lines.get(case.asked.key)) is None or line.error is not None]


def run_cases(cases: Sequence[Case], output: Output, execution: Execution) -> Generator[ResultLine, None, None]:
    """Run these; each line once it is written. Closed early, what runs is ended, and what is written stays.

    Raises OutputError where a line cannot be written.
    """
    with closing(execution(run_case, cases)) as answers:
        for case, answer in answers:
            line = case.failed(answer.reason) if isinstance(answer, Failure) else case.finished(answer)
            output.add(line)
            yield line
