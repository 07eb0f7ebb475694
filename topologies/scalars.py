"""The scalars of YAML documents: text, numbers, true, false and null."""

import re
import unicodedata
from typing import Any

import yaml
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from topologies.printable import printable

MOST_DIGITS = 100
"""The longest number, in characters."""

_TAG = "tag:yaml.org,2002:"
_TEXT = {_TAG + "str", "!"}
_LINE_BREAKS = "\n\t"


class ScalarError(ValueError):
    """A scalar that cannot be used; the message says why."""


class _Resolver(Resolver):
    """YAML 1.1, but 2.6e9 is a number as in YAML 1.2; PyYAML requires a sign in the exponent."""


_Resolver.add_implicit_resolver(
    _TAG + "float",
    re.compile(r"[-+]?(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)[eE][-+]?\d+$"),
    list("-+.0123456789"),
)
_RESOLVER: Any = _Resolver()
_CONSTRUCTOR = SafeConstructor()
_CONSTRUCT = {
    _TAG + "null": _CONSTRUCTOR.construct_yaml_null,
    _TAG + "bool": _CONSTRUCTOR.construct_yaml_bool,
    _TAG + "int": _CONSTRUCTOR.construct_yaml_int,
    _TAG + "float": _CONSTRUCTOR.construct_yaml_float,
}


def scalar_of(event: yaml.ScalarEvent) -> str | int | float | bool | None:
    """Return the value of a scalar.

    Raises:
        ScalarError: Its tag is not one of these types or does not suit it, it is a number of more than
            ``MOST_DIGITS``, or text with control characters other than line breaks and tabs.
    """
    text: str = event.value
    tag = event.tag
    if tag is None:
        # Others than these (dates, merge keys) are text where a value is expected.
        tag = _RESOLVER.resolve(yaml.ScalarNode, text, event.implicit)
        tag = tag if tag in _CONSTRUCT else _TAG + "str"
    elif tag not in _CONSTRUCT and tag not in _TEXT:
        raise ScalarError(f"the tag {printable(tag, 80)} is not supported")
    if tag in _TEXT:
        return _checked(text)
    if len(text) > MOST_DIGITS:
        raise ScalarError(f"expected a number of at most {MOST_DIGITS} characters, got {len(text):,}")
    try:
        value: int | float | bool | None = _CONSTRUCT[tag](yaml.ScalarNode(tag, text))
    except (ValueError, LookupError) as error:
        raise ScalarError(f"expected {tag.removeprefix(_TAG)}, got {printable(repr(text), 80)}") from error
    return value


def _checked(text: str) -> str:
    if not text.isprintable():
        for character in text:
            if unicodedata.category(character) in ("Cc", "Cs") and character not in _LINE_BREAKS:
                raise ScalarError(f"expected text without control characters, got {character!r} in it")
    return text
