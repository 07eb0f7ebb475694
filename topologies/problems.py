"""Problems of a configuration document, each with its key path, and their conversion from and to Pydantic errors."""

import re
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError, ValidationError

from topologies.printable import printable, quoted

_LONGEST = 300
"""The most characters of a key or value that a message quotes."""

Location = tuple[str | int, ...]
"""Keys and positions from the top of a document."""

_EXPECTED = {
    "missing": "missing; this key is required",
    "model_type": "expected a mapping",
    "model_attributes_type": "expected a mapping",
    "tuple_type": "expected a list",
    "invalid_key": "expected text as a key; quote it",
}
_PYDANTIC_BEGINNING = re.compile("Input should be|String should have")


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem at a location of a document.

    ``message`` says what is expected there; ``given`` is the value found, or None if no single value is wrong.
    """

    location: Location
    message: str
    given: str | float | None = None

    def __str__(self) -> str:
        path = "".join(map(_step, self.location)).lstrip(".")
        text = self.message if self.given is None else f"{self.message}, got {printable(repr(self.given), _LONGEST)}"
        return f"{path}: {text}" if path else text


def _step(step: str | int) -> str:
    return f"[{step}]" if isinstance(step, int) else f".{printable(step, _LONGEST)}"


def as_mapping(value: object) -> Mapping[str, Any]:
    """Return the value if it is a mapping, else an empty mapping."""
    return value if isinstance(value, Mapping) else {}


def as_list(value: object) -> Sequence[Any]:
    """Return the value if it is a list, else an empty list."""
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def problem_of_error(error: ErrorDetails, document: object, schema: type[BaseModel]) -> Problem:
    """Convert an error of Pydantic, from validating a document against a schema."""
    location = _without_tags(error["loc"], document)
    if error["type"] in ("union_tag_invalid", "union_tag_not_found"):
        tag = error["ctx"]["discriminator"].strip("'")
        given = error["ctx"].get("tag")
        if not given:
            return Problem((*location, tag), _EXPECTED["missing"])
        return Problem((*location, tag), f"expected one of {error['ctx']['expected_tags']}, got {quoted(str(given))}")
    if error["type"] == "extra_forbidden":
        return Problem(location, f"unknown key; expected one of {', '.join(_known_keys(error['loc'], schema))}")
    if error["type"] == "too_short":
        least = error["ctx"]["min_length"]
        items = "item" if least == 1 else "items"
        return Problem(location, f"expected at least {least} {items}, got {error['ctx']['actual_length']}")
    text = _EXPECTED.get(error["type"])
    if text is None:
        text = _PYDANTIC_BEGINNING.sub("expected", error["msg"].removeprefix("Value error, "))
    given = error["input"]
    shown = error["type"] != "missing" and isinstance(given, str | int | float)
    return Problem(location, f"{text}, got {reprlib.repr(given)}" if shown else text)


def validation_error(
    of: BaseModel | type[BaseModel], problems: Sequence[Problem], others: Sequence[ErrorDetails] = ()
) -> ValidationError:
    """Return the error for a validator to raise so that each problem has its own location, after other errors."""
    title = of.__name__ if isinstance(of, type) else type(of).__name__
    lines = [
        InitErrorDetails(type=other["type"], loc=other["loc"], input=other["input"], ctx=other.get("ctx", {}))
        for other in others
    ]
    lines += [
        InitErrorDetails(
            type=PydanticCustomError("topology", "{problem}", {"problem": problem.message}),
            loc=problem.location,
            input=problem.given,
        )
        for problem in problems
    ]
    return ValidationError.from_exception_data(title, lines)


def _without_tags(location: Location, document: object) -> Location:
    """Remove the names of union members from a location; Pydantic adds them and the document lacks them."""
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
    """Return the keys of the mapping to which a key at this location (as Pydantic gives it) would belong."""
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
