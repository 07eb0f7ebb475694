"""The base class of evaluations: options, cases, the measurement of one case, and the findings from all of them.

A subclass is a frozen dataclass whose fields are the options of ``trainyard evaluate NAME``::

    @dataclass(frozen=True)
    class Coins(Evaluation[int, bool, bool]):
        seeds: Annotated[int, Option("Number of seeds, starting at 1.", minimum=1)] = 10

        def cases(self) -> Sequence[int]:
            return range(1, self.seeds + 1)

        @staticmethod
        def measure(case: int) -> bool:
            return random.Random(case).random() < 0.5

        def combine(self, cases: Sequence[int], results: Mapping[int, bool]) -> bool:
            return results[cases[0]]

with ``json_object`` and ``findings``. ``catalogue`` lists all evaluations with their names and summaries.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

if TYPE_CHECKING:
    from experiments.report.findings import Findings
    from experiments.scenarios.results import RunResult

CaseT = TypeVar("CaseT")
ResultT = TypeVar("ResultT")
MeasuredT = TypeVar("MeasuredT")


@dataclass(frozen=True, slots=True)
class Option:
    """Turns a field into a command-line option: ``load_to`` becomes ``--load-to``.

    A field that is a tuple becomes an option that may be repeated; without it the field is an empty tuple. ``minimum``
    and ``maximum`` are inclusive.
    """

    help: str
    minimum: int | None = None
    maximum: int | None = None
    metavar: str | None = None


@dataclass(frozen=True, slots=True)
class Argument:
    """Turns a field into a positional argument."""

    metavar: str
    help: str


class InvalidInputError(ValueError):
    """Options or input files that an evaluation cannot use, with one message for each problem."""

    def __init__(self, messages: Iterable[str]) -> None:
        self.messages = tuple(messages)
        super().__init__("; ".join(self.messages))


class Evaluation(ABC, Generic[CaseT, ResultT, MeasuredT]):
    """An evaluation with its options set.

    Cases are measured in worker processes, so cases and results are pickled, and ``measure`` is a static method. A
    case is hashable; ``str(case)`` names it in error messages. The results of a group of cases are combined into one
    measured object, which becomes a line of JSON and a part of the findings.
    """

    unit: ClassVar[str] = "cases"
    """What the progress bar counts."""

    @abstractmethod
    def cases(self) -> Sequence[CaseT]:
        """Return the cases in the order in which they start and are reported.

        Raises:
            InvalidInputError: An input file cannot be read, or does not go with the options.
        """

    @staticmethod
    @abstractmethod
    def measure(case: CaseT) -> ResultT:
        """Measure one case. An exception ends the evaluation, once the finished cases are reported."""

    def notices(self) -> Iterable[str]:
        """Return what the user should know before the first case starts. Raises InvalidInputError."""
        return ()

    def group(self, case: CaseT) -> Hashable:
        """Return the key of the case's group. Each case is a group of its own unless this is overridden."""
        return case

    @abstractmethod
    def combine(self, cases: Sequence[CaseT], results: Mapping[CaseT, ResultT]) -> MeasuredT:
        """Combine the results of a group.

        Args:
            cases: The measured cases of the group: all of them unless the evaluation ended early.
            results: The results of these cases and of all earlier ones.
        """

    @abstractmethod
    def json_object(self, measured: MeasuredT) -> dict[str, object]:
        """Return the JSON object of one group."""

    def summary_object(self, measured: Sequence[MeasuredT]) -> dict[str, object] | None:  # noqa: ARG002
        """Return a last JSON object over all groups, or None where there is none."""
        return None

    @abstractmethod
    def findings(self, measured: Sequence[MeasuredT]) -> "Findings":
        """Return tables, charts and assumptions for one or more groups."""

    def pictures(self, measured: Sequence[MeasuredT]) -> "Sequence[Sequence[RunResult]]":  # noqa: ARG002
        """Return runs to draw on the report page, those of one scenario together."""
        return ()


def require_known(option: str, names: Iterable[str], known: Collection[str]) -> None:
    """Raise InvalidInputError where an option has a value that is not among the known ones."""
    if unknown := sorted(set(names) - set(known)):
        raise InvalidInputError(f"{option}: expected one of {', '.join(known)}, got {name!r}" for name in unknown)


def require_positive(option: str, *numbers: float) -> None:
    """Raise InvalidInputError where an option has a number that is infinite or not above 0."""
    if wrong := [number for number in numbers if not 0 < number < float("inf")]:
        raise InvalidInputError(f"{option}: expected a number above 0, got {number}" for number in wrong)


def check_policies(policies: Iterable[str]) -> None:
    """Raise InvalidInputError where one of these names is not that of a registered policy."""
    from policies.registry import PolicyError, find_policy

    problems = []
    for policy in policies:
        try:
            find_policy(policy)
        except PolicyError as error:
            problems.append(f"--policy: {error}")
    if problems:
        raise InvalidInputError(problems)
