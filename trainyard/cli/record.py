"""``trainyard dump`` and ``trainyard replay``: the record of a controller's decisions."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from controller.errors import StoreError
from controller.record.facts import RecordError
from controller.record.replay import Replayed, Verdict, replay_under
from controller.record.replay import replay as replay_decisions
from policies.registry import PolicyError, find_policy, load_policy
from topologies.files import FileError, read_lines
from topologies.printable import printable
from trainyard.cli.answers import Answer, OutputFormat, OutputOption, Writer
from trainyard.cli.exits import ExitStatus, fail, refuse, tell
from trainyard.cli.inputs import load_policies
from trainyard.cli.options import AllowPolicyImportOption, DatabaseOption
from trainyard.cli.output import PrintableConsole, date_and_time
from trainyard.cli.plan import difference_object, difference_view
from trainyard.cli.stored import opened_to_read

if TYPE_CHECKING:
    from sqlalchemy import Connection

FromOption = Annotated[int, typer.Option("--from", metavar="N", min=0, help="Number of the first Plan.")]
ToOption = Annotated[int | None, typer.Option("--to", metavar="N", min=0, help="Number of the last Plan.")]
OutOption = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", dir_okay=False, help="File to write. Default: standard output."),
]
RecordArgument = Annotated[Path, typer.Argument(metavar="FILE", help="Record that trainyard dump has written.")]
PolicyOption = Annotated[
    str | None,
    typer.Option(
        "--policy",
        metavar="POLICY",
        help="Show what this policy would have decided instead: a name that trainyard policies lists, or "
        "module:attribute.",
    ),
]


def dump(
    database: DatabaseOption = "trainyard.db", first: FromOption = 0, last: ToOption = None, out: OutOption = None
) -> None:
    """Write the record of a controller's decisions as lines of JSON; the controller may be running."""
    # The store brings SQLAlchemy and gRPC, which --help and bad options do not wait for.
    from controller.store.facts import LAST_PLAN_NUMBER

    opened = opened_to_read(database)
    final = LAST_PLAN_NUMBER if last is None else last
    try:
        opened.read(lambda connection: _dump(opened.name, first, final, out, connection))
    except StoreError as error:
        fail(str(error))
    except BrokenPipeError:
        raise  # the reader of a pipe has read enough
    except OSError as error:
        fail(f"{out or 'standard output'}: cannot be written: {error.strerror}")
    finally:
        opened.close()


def _dump(name: str, first: int, last: int, out: Path | None, connection: "Connection") -> None:
    from controller.record.lines import text_of
    from controller.store.facts import LAST_PLAN_NUMBER, plan_numbers, record_lines

    recorded = plan_numbers(0, LAST_PLAN_NUMBER, connection)
    if recorded is None and (first, last) != (0, LAST_PLAN_NUMBER):
        refuse(f"{name}: no Plan is recorded")
    if recorded is not None:
        oldest, newest = recorded
        if plan_numbers(first, last, connection) is None:
            missing = f"from {first} on" if last == LAST_PLAN_NUMBER else f"from {first} to {last}"
            before, after = plan_numbers(0, first - 1, connection), plan_numbers(last + 1, LAST_PLAN_NUMBER, connection)
            gap = f" and lacks {before[1] + 1} to {after[0] - 1}" if before and after and first <= last else ""
            refuse(f"{name}: has no Plans {missing}; its record goes from {oldest} to {newest}{gap}")
        if newest < last < LAST_PLAN_NUMBER:
            tell(f"the record ends with Plan {newest}")
    _write(text_of(record_lines(first, last, connection)), out)


def _write(lines: Iterable[str], out: Path | None) -> None:
    if out is None:
        for line in lines:
            typer.echo(line, nl=False)
    else:
        with out.open("w", encoding="utf-8") as file:
            file.writelines(lines)


def replay(
    file: RecordArgument,
    policy: PolicyOption = None,
    output: OutputOption = OutputFormat.TABLE,
    allow_policy_import: AllowPolicyImportOption = False,
) -> None:
    """Decide the Plans of a record again; exit status 1 where a Plan differs."""
    # Reading records brings gRPC, which --help and bad options do not wait for.
    from controller.record.lines import read_decisions

    verdicts: Counter[Verdict] = Counter()
    writer = Writer(output)
    find = load_policy if allow_policy_import else find_policy
    try:
        decisions = read_decisions(str(file), _lines(file), find)
        if policy is None:
            outcomes = replay_decisions(decisions, find)
        else:
            (other,) = load_policies([policy])
            outcomes = replay_under(other, decisions)
        for replayed in outcomes:
            verdicts[replayed.verdict] += 1
            if writer.is_for_people:
                _show(replayed)
            else:
                document = _object(replayed)
                writer.write(Answer(document, [document]))
    except RecordError as error:
        refuse(str(error))
    except PolicyError as error:
        refuse(f"{file}: {error}; decide under another with --policy, or allow it with --allow-policy-import")
    if writer.is_for_people:
        typer.echo(", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())) or "no Plans")
    if policy is None and verdicts[Verdict.DIFFERENT]:
        raise typer.Exit(ExitStatus.FAILED)


def _lines(file: Path) -> Iterator[str]:
    try:
        yield from read_lines(file)
    except FileError as error:
        raise RecordError(str(error)) from error


def _object(replayed: Replayed) -> dict[str, Any]:
    recorded = replayed.recorded
    return {
        "plan": recorded.number,
        "time_s": recorded.snapshot.time_s,
        "policy": replayed.plan.policy,
        "verdict": replayed.verdict,
        "differs_in": list(replayed.differs_in),
        "difference": difference_object(recorded.plan, replayed.plan, recorded.fabric),
    }


def _show(replayed: Replayed) -> None:
    recorded = replayed.recorded
    line = f"Plan {recorded.number} at {date_and_time(recorded.snapshot.time_s)}: {replayed.verdict}"
    if not replayed.differs_in:
        typer.echo(line)
        return
    jobs = printable(", ".join(replayed.differs_in))
    if replayed.difference.is_empty:
        typer.echo(f"{line} for {jobs}, only in ranks, orders or reasons")
        return
    typer.echo(f"{line} for {jobs}")
    PrintableConsole().print(difference_view(recorded.plan, replayed.plan, recorded.fabric))
