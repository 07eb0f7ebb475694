"""Addresses of servers, as files have them."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

_SERVER = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+):(\d{1,5})", re.ASCII)


def check_server_address(text: str) -> str:
    """Return an address that is HOST:PORT. Raises ValueError, whose message names neither field nor address."""
    matched = _SERVER.fullmatch(text)
    if matched is None or not 1 <= int(matched[1]) <= 65_535:
        raise ValueError("expected HOST:PORT with a port from 1 to 65535")
    return text


ServerAddress = Annotated[str, Field(max_length=300), AfterValidator(check_server_address)]
