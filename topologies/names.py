"""Names of nodes, jobs and flow groups, and the characters allowed in them."""

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
