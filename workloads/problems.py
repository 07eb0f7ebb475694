"""Everything that is wrong with a scenario's document, each with its key path: single values, then the whole."""

import re
import reprlib
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from workloads.consistency import problems_of_the_whole
from workloads.problem import Location, Problem, as_mapping
from workloads.scenario import Scenario
from workloads.sizes import problems_of_size

_EXPECTED = {
    "missing": "missing; this key is required",
    "model_type": "expected a mapping",
    "model_attributes_type": "expected a mapping",
    "tuple_type": "expected a list",
    "invalid_key": "expected text as a key; quote it",
}
_PYDANTIC_BEGINNING = re.compile("Input should be|String should have")


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
    problems = [_schema_problem(fault, document) for fault in faults if not _is_consequence(fault)]
    faulty = {problem.location for problem in problems}
    problems += problems_of_the_whole(as_mapping(document), faulty, policies)
    # Only what is sound can be expanded.
    return problems if problems or scenario is None else list(problems_of_size(scenario))


def _is_consequence(fault: ErrorDetails) -> bool:
    """Pydantic calls a list too short whose items are all wrong; their own faults say it better."""
    return fault["type"] == "too_short" and bool(fault["input"])


def _schema_problem(fault: ErrorDetails, document: object) -> Problem:
    location = _without_tags(fault["loc"], document)
    if fault["type"] in ("union_tag_invalid", "union_tag_not_found"):
        tag = fault["ctx"]["discriminator"].strip("'")
        given = fault["ctx"].get("tag")
        expected = f"expected one of {fault['ctx']['expected_tags']}, got {given!r}" if given else _EXPECTED["missing"]
        return Problem((*location, tag), expected)
    if fault["type"] == "extra_forbidden":
        return Problem(location, f"unknown key; expected one of {', '.join(_known_keys(fault['loc']))}")
    text = _EXPECTED.get(fault["type"])
    if text is None:
        text = _PYDANTIC_BEGINNING.sub("expected", fault["msg"].removeprefix("Value error, "))
    given = fault["input"]
    shown = fault["type"] != "missing" and isinstance(given, str | int | float)
    return Problem(location, f"{text}, got {reprlib.repr(given)}" if shown else text)


def _without_tags(location: Location, document: object) -> Location:
    """The location less the names of union members, which Pydantic puts in and the document does not have."""
    kept: list[str | int] = []
    here = document
    for step in location:
        if isinstance(here, Mapping):
            if step not in here and step in (here.get("kind"), here.get("type")):
                continue
            here = here.get(step)
        elif isinstance(here, Sequence) and isinstance(step, int) and step < len(here):
            here = here[step]
        kept.append(step)
    return tuple(kept)


def _known_keys(location: Location) -> list[str]:
    """Keys of the mapping that a key at this location (as Pydantic gives it) would belong to."""
    models: list[type[BaseModel]] = [Scenario]
    for step in location[:-1]:
        if isinstance(step, str):
            fields = [model.model_fields[step] for model in models if step in model.model_fields]
            models = [member for field in fields for member in _models_in(field.annotation)] or [
                model for model in models if _has_tag(model, step)
            ]
    return sorted({key for model in models for key in model.model_fields})


def _models_in(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models_in(argument)]


def _has_tag(model: type[BaseModel], tag: str) -> bool:
    annotations = (field.annotation for field in model.model_fields.values())
    return any(tag in get_args(annotation) for annotation in annotations if get_origin(annotation) is Literal)
