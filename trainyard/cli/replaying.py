"""``trainyard replay``."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from policies.registry import PolicyError, find_policy, load_policy
from trainyard.cli.exits import ExitStatus, refuse
from trainyard.cli.inputs import AllowPolicyImportOption, load_policies

if TYPE_CHECKING:
    from controller.record.replay import Replayed

RecordArgument = Annotated[Path, typer.Argument(metavar="FILE", help="What trainyard dump has written.")]
PolicyOption = Annotated[
    str | None,
    typer.Option(
        "--policy",
        metavar="POLICY",
        help="Show what this policy would have decided instead: a name (see trainyard policies), or module:attribute.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object per Plan and line, nothing else.")]


def replay(
    file: RecordArgument,
    policy: PolicyOption = None,
    as_json: JsonOption = False,
    allow_policy_import: AllowPolicyImportOption = False,
) -> None:
    """Decide a controller's Plans again from its record; exit status 1 where one is not the same."""
    from controller.record import replay as replaying
    from controller.record.facts import RecordError
    from controller.record.lines import read_decisions

    verdicts: Counter[replaying.Verdict] = Counter()
    find = load_policy if allow_policy_import else find_policy
    try:
        decisions = read_decisions(str(file), _lines(file), find)
        if policy is None:
            outcomes = replaying.replay(decisions, find)
        else:
            (other,) = load_policies([policy])
            outcomes = replaying.replay_under(other, decisions)
        for replayed in outcomes:
            verdicts[replayed.verdict] += 1
            if as_json:
                print(json.dumps(_object(replayed)))
            else:
                _show(replayed)
    except RecordError as error:
        refuse((str(error),))
    except PolicyError as error:
        refuse((f"{file}: {error}; --policy decides under another, --allow-policy-import imports this one",))
    if not as_json:
        typer.echo(", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())) or "no plans")
    if policy is None and verdicts[replaying.Verdict.DIFFERENT]:
        raise typer.Exit(ExitStatus.FAILED)


def _lines(file: Path) -> Iterator[str]:
    from controller.record.facts import RecordError

    try:
        with file.open(encoding="utf-8") as lines:
            yield from lines
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{file}: cannot be read: {error}") from error


def _object(replayed: "Replayed") -> dict[str, Any]:
    from trainyard.cli.difference import difference_object

    recorded = replayed.recorded
    return {
        "plan": recorded.number,
        "time_s": recorded.snapshot.time_s,
        "policy": replayed.plan.policy,
        "verdict": replayed.verdict,
        "differs_in": list(replayed.differs_in),
        "difference": difference_object(recorded.plan, replayed.plan, recorded.fabric),
    }


def _show(replayed: "Replayed") -> None:
    from trainyard.cli.difference import difference_view

    recorded = replayed.recorded
    line = f"plan {recorded.number} at {recorded.snapshot.time_s:.3f} s: {replayed.verdict}"
    if not replayed.differs_in:
        typer.echo(line)
        return
    jobs = ", ".join(replayed.differs_in)
    if replayed.difference.is_empty:
        typer.echo(f"{line} for {jobs}, in ranks, orders or reasons alone")
        return
    typer.echo(f"{line} for {jobs}")
    Console().print(difference_view(recorded.plan, replayed.plan, recorded.fabric))
