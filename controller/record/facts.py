"""Facts: the parts of which Snapshots and Plans are made up, each told once and true until it is told anew."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple


class FactKind(StrEnum):
    """What a fact is about; its key names a job where it is about one, else it is empty."""

    CONTROLLER = "controller"
    """How the controller is configured: all that a decision depends on beside jobs and telemetry."""
    JOB = "job"
    """A job of the Snapshot."""
    OPEN_GROUPS = "open_groups"
    """The Snapshot's open groups."""
    FOREIGN_LOADS = "foreign_loads"
    """What the Snapshot says that others than its jobs send on links."""
    LOADS = "loads"
    """Loads of links, in older records: no decision was made on them."""
    PROFILED = "profiled"
    """The job that is measured."""
    ORDER = "order"
    """What the Plan says of a job, and of the levels and orders of its flows."""
    PATHS = "paths"
    """The paths that the Plan gives to the flows of a job."""
    MEMORY = "memory"
    """What the Plan remembers of a job for the next decision."""
    SHARED_MEMORY = "prices"
    """What it remembers beside that; of ``trainyard``, whose was the first, the prices of links."""


class FactKey(NamedTuple):
    """Names a fact."""

    kind: FactKind
    key: str


Body = Any
"""JSON. None: there is no such fact."""

Facts = Mapping[FactKey, Body]


class RecordError(ValueError):
    """A record that cannot be read; the message says what of it."""
