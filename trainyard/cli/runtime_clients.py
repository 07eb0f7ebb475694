"""The file of ``trainyard runtime`` that says who may connect: a line for each client.

A line holds name, weight and token, and where wanted ``operator``, ``bytes=N``, ``arrays=N`` and ``programs=N``, its
quota, and ``reads=NAME,…``, the clients whose published arrays it may read.
"""

import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from trainyard.cli.exits import refuse

if TYPE_CHECKING:
    from runtime.server.settings import ClientSettings

_QUOTAS = ("bytes", "arrays", "programs")
_OPTIONS = "operator, bytes=N, arrays=N, programs=N or reads=NAME,…"
_FORM = f"expected a new name, a weight and a token, then {_OPTIONS} where wanted"


def write_first_client(path: Path) -> None:
    """Make a file with the client ``default``, an operator; or end the command."""
    try:
        path.touch(mode=0o600, exist_ok=False)
        path.write_text(f"default 1 {secrets.token_hex()} operator\n", encoding="ascii")
    except OSError as error:
        refuse(f"{path}: cannot be written: {error.strerror}")


def read_clients(path: Path) -> "dict[str, ClientSettings]":
    """Return the clients of a file by name, or end the command."""
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        refuse(f"{path}: cannot be read: {error.strerror if isinstance(error, OSError) else 'it is no ASCII text'}")
    found: dict[str, ClientSettings] = {}
    for number, line in enumerate(lines, start=1):
        if not line.split():
            continue
        try:
            client = _client(line.split())
        except ValueError as error:
            refuse(f"{path}:{number}: {error}")
        if client.name in found:
            refuse(f"{path}:{number}: {_FORM}")
        found[client.name] = client
    return found


def _client(words: list[str]) -> "ClientSettings":
    from runtime.server.settings import ClientSettings, Quota

    try:
        name, weight, token, *options = words
        weight_number = float(weight)
        quota: dict[str, int] = {}
        reads: tuple[str, ...] = ()
        for option in options:
            key, _, value = option.partition("=")
            if key in _QUOTAS and key not in quota:
                quota[key] = int(value)
            elif key == "reads" and value:
                reads += tuple(value.split(","))
            elif option != "operator":
                raise ValueError(option)
    except ValueError:
        raise ValueError(_FORM) from None
    limits = Quota(*map(quota.get, _QUOTAS))
    return ClientSettings(name, token, weight_number, limits, "operator" in options, reads)
