"""Names of nodes, jobs and flow groups: what may stand in them."""

from typing import Annotated

from pydantic import AfterValidator, Field

MAX_NAME_LENGTH = 256


def is_plain(name: str) -> bool:
    """Whether a terminal shows a name as it is, and JOB/GROUP/FLOW can be taken apart where it is a part."""
    return name.isprintable() and "/" not in name


def _plain(name: str) -> str:
    if not is_plain(name):
        raise ValueError("expected printable characters and no slash")
    return name


PlainName = Annotated[str, Field(min_length=1, max_length=MAX_NAME_LENGTH), AfterValidator(_plain)]
"""A name in a file."""
