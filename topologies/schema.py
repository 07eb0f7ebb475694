"""What a schema finds wrong with a document, in our words and with the document's own key paths."""

import re
import reprlib
from collections.abc import Mapping, Sequence
from typing import Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from topologies.problem import Location, Problem

_EXPECTED = {
    "missing": "missing; this key is required",
    "model_type": "expected a mapping",
    "model_attributes_type": "expected a mapping",
    "tuple_type": "expected a list",
    "invalid_key": "expected text as a key; quote it",
}
_PYDANTIC_BEGINNING = re.compile("Input should be|String should have")


def schema_problem(fault: ErrorDetails, document: object, schema: type[BaseModel]) -> Problem:
    """A fault that Pydantic found when it held a document against a schema."""
    location = _without_tags(fault["loc"], document)
    if fault["type"] in ("union_tag_invalid", "union_tag_not_found"):
        tag = fault["ctx"]["discriminator"].strip("'")
        given = fault["ctx"].get("tag")
        expected = f"expected one of {fault['ctx']['expected_tags']}, got {given!r}" if given else _EXPECTED["missing"]
        return Problem((*location, tag), expected)
    if fault["type"] == "extra_forbidden":
        return Problem(location, f"unknown key; expected one of {', '.join(_known_keys(fault['loc'], schema))}")
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


def _known_keys(location: Location, schema: type[BaseModel]) -> list[str]:
    """Keys of the mapping that a key at this location (as Pydantic gives it) would belong to."""
    models: list[type[BaseModel]] = [schema]
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
