"""Problems of a configuration document, each with its key path, and their conversion from and to Pydantic errors."""

import re
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
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
_NAMING_KEYS = ("name", "host", "switch", "type")
"""The first of these keys that the member of a list has says which one it is, else that of its ends."""
_KEYS_OF_ENDS = ("ends", "endpoints", "link")
_PLAIN = re.compile(r"[\w:/.-]{1,64}")
_TOLD = "told"
"""The key by which an error of Pydantic carries the problem that a validator has found."""

OTHER_PLACE = "{other}"
"""Where a message shows a problem's other place."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem at a location of a document.

    ``message`` says what is expected there; ``given`` is the value found, or None if no single value is wrong. A
    message about two places has ``OTHER_PLACE`` where it shows the second one, which is ``other``.
    """

    location: Location
    message: str
    given: str | float | None = None
    other: Location | None = None

    def text_in(self, document: object) -> str:
        """Return the problem in a line, with the names that members of lists have in a document."""
        where = place(self.location, document)
        text = self.said(lambda location: place(location, document))
        return f"{where}: {text}" if where else text

    def said(self, shown: Callable[[Location], str]) -> str:
        """Return what is wrong, without the location; ``shown`` shows the other place."""
        text = self.message if self.other is None else self.message.replace(OTHER_PLACE, shown(self.other), 1)
        return text if self.given is None else f"{text}, got {printable(repr(self.given), _LONGEST)}"

    def __str__(self) -> str:
        return self.text_in(None)


def place(location: Location, document: object = None) -> str:
    """Return a location as messages show it: ``switches[0] leaf, ports[1] swp2, gbps``.

    Members of lists have their names beside their positions, cables their ends, where they are in the document.
    """
    text, here, separator = "", document, ""
    for step, following in zip_longest(location, location[1:]):
        if isinstance(step, int):
            members = as_list(here)
            here = members[step] if step < len(members) else None
            name = _name_of(here, following)
            text += f"[{step}] {name}" if name else f"[{step}]"
            separator = ", " if name else "."
        else:
            here = as_mapping(here).get(step)
            text += f"{separator}{printable(step, _LONGEST)}"
            separator = "."
    return text


def _name_of(member: object, key_in_question: str | int | None) -> str:
    """Return the words that say which member of a list this is; nothing where it has none, or they are in question."""
    keys = {key: value for key, value in as_mapping(member).items() if key != key_in_question}
    name = next((keys[key] for key in _NAMING_KEYS if key in keys), None)
    if isinstance(name, str) and name:
        return _word(name)
    ends = next((as_list(keys[key]) for key in _KEYS_OF_ENDS if key in keys), ())
    return " to ".join(map(_word, ends)) if len(ends) == 2 and all(isinstance(end, str) for end in ends) else ""


def _word(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else quoted(name)


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
    other = None
    told = error.get("ctx", {}).get(_TOLD)
    if isinstance(told, Problem) and told.other is not None:
        text, other = told.message, (*location[: len(location) - len(told.location)], *told.other)
    given = error["input"]
    shown = error["type"] != "missing" and isinstance(given, str | int | float)
    return Problem(location, f"{text}, got {reprlib.repr(given)}" if shown else text, other=other)


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
            type=PydanticCustomError(
                "topology",
                "{problem}",
                {"problem": replace(problem, given=None).said(place), _TOLD: problem},
            ),
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
