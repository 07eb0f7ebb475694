"""Everything that is wrong with a scenario's document, each with its key path: single values, then the whole."""

from collections.abc import Collection

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from topologies.problem import Problem, as_mapping
from topologies.schema import schema_problem
from workloads.consistency import problems_of_the_whole
from workloads.scenario import Scenario
from workloads.sizes import problems_of_size


def find_problems(document: object, policies: Collection[str] | None = None) -> list[Problem]:
    """All problems of a scenario's document, those of its keys and values first; none: it can be planned and run.

    Which ``policies`` there are the caller knows; None takes any.
    """
    faults: list[ErrorDetails] = []
    scenario: Scenario | None = None
    try:
        scenario = Scenario.model_validate(document)
    except ValidationError as error:
        faults = error.errors()
    problems = [schema_problem(fault, document, Scenario) for fault in faults if not _is_consequence(fault)]
    faulty = {problem.location for problem in problems}
    problems += problems_of_the_whole(as_mapping(document), faulty, policies)
    # Only what is sound can be expanded.
    return problems if problems or scenario is None else list(problems_of_size(scenario))


def _is_consequence(fault: ErrorDetails) -> bool:
    """Pydantic calls a list too short whose items are all wrong; their own faults say it better."""
    return fault["type"] == "too_short" and bool(fault["input"])
