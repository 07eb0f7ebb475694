"""Differences between a P4Info and the BMv2 JSON that it describes: refused, or logged where they do no harm."""

import logging

from emulator.p4runtime.errors import RequestError, invalid_argument

LOG = logging.getLogger(__name__)
"""Log of differences that do no harm."""


def disagreement(where: str, what: str) -> RequestError:
    """Return the error, INVALID_ARGUMENT, that names an object and how it differs."""
    return invalid_argument(f"the P4Info does not agree with the BMv2 JSON: {where}: {what}")
