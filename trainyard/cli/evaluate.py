"""``trainyard evaluate NAME``: one command for every evaluation in ``experiments.papers.catalogue``.

The options of a command are the fields of the evaluation's class, which is imported only when its command runs or shows
its own help.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import MISSING, fields
from functools import partial
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, ClassVar, cast, get_args, get_origin, get_type_hints

import typer

from experiments.papers.catalogue import EVALUATIONS, EvaluationEntry
from experiments.papers.collector import Collector
from experiments.papers.evaluation import Argument, Evaluation, InvalidInputError, Option
from experiments.report.findings import Findings
from experiments.report.style import FigureFormat
from experiments.sweeps import processes
from experiments.sweeps.processes import Failure
from trainyard.cli.answers import Answer, OutputFormat, OutputOption, Writer
from trainyard.cli.exits import fail, refuse, tell, terminable
from trainyard.cli.lazy_group import LazyCommand, LazyGroup, command_group
from trainyard.cli.options import FigureFormatOption, FiguresOption, ReportOption, WorkersOption
from trainyard.cli.output import PrintableConsole, number_table
from trainyard.cli.report_files import ReportFiles
from trainyard.progress import counted

COMMON_PARAMETERS = (
    Parameter("workers", Parameter.KEYWORD_ONLY, default=None, annotation=WorkersOption),
    Parameter("output", Parameter.KEYWORD_ONLY, default=OutputFormat.TABLE, annotation=OutputOption),
    Parameter("report", Parameter.KEYWORD_ONLY, default=None, annotation=ReportOption),
    Parameter("figures", Parameter.KEYWORD_ONLY, default=None, annotation=FiguresOption),
    Parameter("figure_format", Parameter.KEYWORD_ONLY, default=FigureFormat.SVG, annotation=FigureFormatOption),
)
"""The options that every evaluation has beside its own."""


def _command(entry: EvaluationEntry) -> Callable[..., None]:
    """Import an evaluation and return a function that has its options as parameters."""
    evaluation = entry.load()
    declared: Any = fields(cast(Any, evaluation))
    hints = get_type_hints(evaluation, include_extras=True)
    types: dict[str, tuple[Any, Any]] = {field.name: get_args(hints[field.name])[:2] for field in declared}
    repeated = {name for name, (type_, _) in types.items() if get_origin(type_) is tuple}

    def evaluate(
        *,
        workers: int | None,
        output: OutputFormat,
        report: Path | None,
        figures: Path | None,
        figure_format: FigureFormat,
        **options: Any,
    ) -> None:
        # A value that is given twice counts once.
        options |= {name: tuple(dict.fromkeys(options[name] or ())) for name in repeated}
        try:
            files = ReportFiles(report, figures, figure_format)
            _evaluate(evaluation(**options), workers, files, Writer(output))
        except InvalidInputError as error:
            refuse(*error.messages)

    parameters = [
        *(_parameter(field.name, types[field.name], field.default) for field in declared),
        *COMMON_PARAMETERS,
    ]
    evaluate.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    evaluate.__doc__ = entry.summary
    evaluate.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return evaluate


def _parameter(name: str, annotation: tuple[Any, Option | Argument], default: Any) -> Parameter:
    """Return the parameter that Typer turns into the option or argument of a field."""
    type_, declared = annotation
    if get_origin(type_) is tuple:
        # Typer shows no default where it is None.
        type_, default = list[get_args(type_)[0]] | None, None  # type: ignore[misc]
    info: Any
    if isinstance(declared, Argument):
        info = typer.Argument(metavar=declared.metavar, help=declared.help)
    else:
        flag, least, most = f"--{name.replace('_', '-')}", declared.minimum, declared.maximum
        info = typer.Option(flag, help=declared.help, metavar=declared.metavar, min=least, max=most)
    default = Parameter.empty if default is MISSING else default
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[type_, info])


def _evaluate(evaluation: Evaluation[Any, Any, Any], workers: int | None, files: ReportFiles, writer: Writer) -> None:
    """Measure all cases; where the command is ended early, it reports the finished cases before."""
    files.prepare()
    for notice in evaluation.notices():
        tell(notice)
    cases = evaluation.cases()
    collector = Collector(evaluation, cases)
    measured: list[Any] = []

    def keep(groups: Iterable[Any]) -> None:
        for group in groups:
            measured.append(group)
            document = evaluation.json_object(group)
            writer.write(Answer(document, [document]))

    try:
        for case, result in _measure(evaluation, cases, workers):
            keep(collector.add(case, result))
    finally:
        keep(collector.rest())
        if measured:
            if (summary := evaluation.summary_object(measured)) is not None:
                writer.write(Answer(summary, [summary]))
            findings = evaluation.findings(measured)
            # The page first: a reader of the tables that goes away, as ``head`` does, ends the command.
            try:
                files.save_findings(findings, evaluation.pictures(measured))
            finally:
                if writer.is_for_people:
                    _print_findings(findings)


def _measure(
    evaluation: Evaluation[Any, Any, Any], cases: Sequence[Any], workers: int | None
) -> Iterator[tuple[Any, Any]]:
    """Yield cases with their results as worker processes finish them; ends the command where a case fails."""
    answers = processes.on_processes(evaluation.measure, cases, workers or processes.num_cores())
    with terminable(), counted(evaluation.unit, len(cases)) as advance, closing(answers):
        for case, answer in answers:
            if isinstance(answer, Failure):
                fail(f"{case}: {answer.reason}")
            advance()
            yield case, answer


def _print_findings(findings: Findings) -> None:
    """Print tables and assumptions."""
    console = PrintableConsole()
    console.print(findings.title, style="bold", markup=False, highlight=False)
    for table in findings.tables:
        shown = number_table(table.title, *table.columns, left=("Policy", "Model", "Variant"))
        for row in table.rows:
            shown.add_row(*row)
        console.print(shown)
    for assumption in findings.assumptions:
        console.print(f"- {assumption}", markup=False, highlight=False)


class Evaluations(LazyGroup):
    """The evaluations, each a command."""

    lazy_commands: ClassVar[Mapping[str, LazyCommand]] = {
        entry.name: LazyCommand(partial(_command, entry), entry.summary) for entry in EVALUATIONS
    }


evaluate = command_group(
    "Repeat published experiments, and print the results beside the published figures.", Evaluations
)
