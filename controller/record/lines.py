"""A record as lines of JSON, which ``trainyard dump`` writes and ``trainyard replay`` reads.

The first line names the format. Lines of facts follow, each valid from there on; the body ``null`` ends a fact. The
line of a Plan comes after the facts of its Snapshot and of the Plan itself. Requests to switches follow their Plan.
The last line has the number of lines before it, so that a truncated file is detected.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from controller.record.decisions import DecisionDecoder, FindPolicy, RecordedDecision
from controller.record.facts import Body, FactKey, FactKind, RecordError
from controller.southbound.write_outcomes import WriteOutcome
from policies.registry import find_policy
from policies.validation import check_plan, check_snapshot

VERSION = 1


class _Line(BaseModel):
    # Priorities may be infinite.
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


class HeaderLine(_Line):
    """The first line: the format of the file and its version."""

    format: Literal["trainyard-record"] = "trainyard-record"
    version: int = VERSION


class FactLine(_Line):
    """A fact that holds from the next Plan on."""

    fact: FactKind
    key: str
    body: Any


class PlanLine(_Line):
    """A Plan that came into force."""

    plan: int = Field(ge=1)
    previous: int = Field(ge=0)
    time_s: float


class WriteLine(_Line):
    """A request to a switch."""

    switch: str
    plan: int
    time_s: float
    inserted: int
    modified: int
    deleted: int
    outcome: WriteOutcome
    problem: str


class EndLine(_Line):
    """The last line, with the number of lines before it."""

    end: int


Line = HeaderLine | FactLine | PlanLine | WriteLine | EndLine
_LINE: TypeAdapter[Line] = TypeAdapter(HeaderLine | FactLine | PlanLine | WriteLine | EndLine)


def text_of(lines: Iterable[Line]) -> Iterator[str]:
    """Yield the text of a file with these lines, between a header and an end."""
    number = 0
    for line in chain((HeaderLine(),), lines):
        number += 1
        yield line.model_dump_json() + "\n"
    yield EndLine(end=number).model_dump_json() + "\n"


def fact_line(key: FactKey, body: Body) -> FactLine:
    """Make the line of a fact."""
    return FactLine(fact=key.kind, key=key.key, body=body)


def read_decisions(name: str, text: Iterable[str], find: FindPolicy = find_policy) -> Iterator[RecordedDecision]:
    """Decode the decisions of a file; ``name`` is for messages, and ``find`` finds their policies.

    Raises RecordError, naming the line, where the text is no record, or is truncated.
    """
    decoder = DecisionDecoder(find)
    number, is_over = 0, False
    for number, line in enumerate(text, start=1):
        where = f"{name}:{number}"
        if is_over:
            raise RecordError(f"{where}: the record has ended before")
        match _parsed(line, where, is_first=number == 1):
            case FactLine(fact=kind, key=key, body=body):
                decoder.apply([(FactKey(kind, key), body)])
            case PlanLine(plan=plan, previous=previous, time_s=time_s):
                try:
                    decision = decoder.decision(plan, previous, time_s)
                    _check(decision)
                except RecordError as error:
                    raise RecordError(f"{where}: {error}") from error
                yield decision
            case EndLine(end=lines):
                if lines != number - 1:
                    raise RecordError(f"{where}: {lines} lines were written before this one, and {number - 1} are here")
                is_over = True
    if not is_over:
        raise RecordError(f"{name}:{number + 1}: the record is cut off here: its last line is missing")


def _check(decision: RecordedDecision) -> None:
    """Raise RecordError for a decision that no controller can have recorded: anybody may have written the file."""
    try:
        check_snapshot(decision.snapshot)
        check_plan(decision.plan, decision.snapshot)
    except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError) as error:
        raise RecordError(f"plan {decision.number} cannot be: {type(error).__name__}: {error}") from error


def _parsed(line: str, where: str, *, is_first: bool) -> Line:
    try:
        parsed = _LINE.validate_json(line)
    except ValidationError as error:
        what = "no record of Trainyard" if is_first else "no line of a record, or one that was cut off"
        raise RecordError(f"{where}: {what}") from error
    if isinstance(parsed, HeaderLine) != is_first:
        raise RecordError(f"{where}: " + ("no record of Trainyard" if is_first else "another record begins here"))
    if isinstance(parsed, HeaderLine) and parsed.version != VERSION:
        raise RecordError(f"{where}: a record of version {parsed.version}, and this Trainyard reads version {VERSION}")
    return parsed
