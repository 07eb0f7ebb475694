"""Names of nodes, jobs and flow groups, and the characters allowed in them."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from topologies.printable import MAX_NAME_LENGTH as MAX_NAME_LENGTH


def is_plain(name: str) -> bool:
    """Tell whether a terminal shows the name unchanged and JOB/GROUP/FLOW can be split where it is a part."""
    return name.isprintable() and "/" not in name


def _plain(name: str) -> str:
    if not is_plain(name):
        raise ValueError("expected printable characters and no slash")
    return name


PlainName = Annotated[str, Field(min_length=1, max_length=MAX_NAME_LENGTH), AfterValidator(_plain)]
"""A name in a configuration file."""

NaturalKey = tuple[tuple[str, int, str], ...]

_PART = re.compile("([^0-9]*)([0-9]*)")


def natural_key(name: str) -> NaturalKey:
    """Return what sorts names with their numbers by value: leaf-9 comes before leaf-10.

    Names that differ in leading zeros alone are in the order of their characters.
    """
    parts = _PART.findall(name)
    return (*((text, len(digits.lstrip("0")), digits.lstrip("0")) for text, digits in parts), (name, 0, ""))
