"""What a server is started with."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IslandSettings:
    """An island: so many hosts, each with so many devices."""

    name: str
    hosts: int
    devices_per_host: int


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What a server is started with.

    ``tokens`` are the names of clients by the token that each shows; ``secret`` is what executors show. ``folder`` is
    where the sockets of executors lie.
    """

    address: str
    folder: str
    islands: tuple[IslandSettings, ...]
    tokens: Mapping[str, str]
    secret: str
    look_ahead_s: float
