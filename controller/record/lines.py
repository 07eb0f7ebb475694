"""A record as lines of JSON: what ``trainyard dump`` writes and ``trainyard replay`` reads.

The first line says what it is. Lines of facts tell what is so from then on, ``null`` for what is so no longer; the line
of a Plan closes those that it was decided on and those that say what it was. Requests to switches follow their Plan.
The last line says how many stand before it, so that a file that was cut off is known as one.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from controller.record.decisions import Decisions, FindPolicy, RecordedDecision
from controller.record.facts import Body, FactKey, FactKind, RecordError
from controller.southbound.p4runtime.writer import WriteOutcome
from policies.registry import find_policy

VERSION = 1


class _Line(BaseModel):
    # Priorities may be infinite.
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


class HeaderLine(_Line):
    """What the file is."""

    format: Literal["trainyard-record"] = "trainyard-record"
    version: int = VERSION


class FactLine(_Line):
    """A fact that is so from the next plan on."""

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
    """The last line."""

    end: int


Line = HeaderLine | FactLine | PlanLine | WriteLine | EndLine
_LINE: TypeAdapter[Line] = TypeAdapter(HeaderLine | FactLine | PlanLine | WriteLine | EndLine)


def text_of(lines: Iterable[Line]) -> Iterator[str]:
    """The file, line by line: these between a header and an end."""
    number = 0
    for line in chain((HeaderLine(),), lines):
        number += 1
        yield line.model_dump_json() + "\n"
    yield EndLine(end=number).model_dump_json() + "\n"


def fact_line(key: FactKey, body: Body) -> FactLine:
    """The line of a fact."""
    return FactLine(fact=key.kind, key=key.key, body=body)


def read_decisions(name: str, text: Iterable[str], find: FindPolicy = find_policy) -> Iterator[RecordedDecision]:
    """The decisions of a file of this name; ``find`` finds their policies.

    Raises RecordError, naming the line, where it is no record, or not all.
    """
    decisions = Decisions(find)
    number, is_over = 0, False
    for number, line in enumerate(text, start=1):
        where = f"{name}:{number}"
        if is_over:
            raise RecordError(f"{where}: the record has ended before")
        match _parsed(line, where, is_first=number == 1):
            case FactLine(fact=kind, key=key, body=body):
                decisions.tell([(FactKey(kind, key), body)])
            case PlanLine(plan=plan, previous=previous, time_s=time_s):
                try:
                    decision = decisions.decided(plan, previous, time_s)
                except RecordError as error:
                    raise RecordError(f"{where}: {error}") from error
                yield decision
            case EndLine(end=lines):
                if lines != number - 1:
                    raise RecordError(f"{where}: {lines} lines were written before this one, and {number - 1} are here")
                is_over = True
    if not is_over:
        raise RecordError(f"{name}:{number + 1}: the record is cut off here: its last line is missing")


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
