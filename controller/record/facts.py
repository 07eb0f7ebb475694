"""Facts: the parts of Snapshots and Plans, each recorded when it changes and valid until it changes again."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from controller.errors import DaemonError


class FactKind(StrEnum):
    """The kinds of facts. The key of a fact about a job is the name of the job; of others it is empty."""

    CONTROLLER = "controller"
    """The configuration that decisions depend on."""
    JOB = "job"
    """A job of the Snapshot."""
    OPEN_GROUPS = "open_groups"
    """The Snapshot's open groups."""
    FOREIGN_LOADS = "foreign_loads"
    """The Snapshot's loads of links by traffic other than that of its jobs."""
    LOADS = "loads"
    """Loads of links in older records; no decision depended on them."""
    PROFILED = "profiled"
    """The job that is being measured."""
    PINS = "pins"
    """What operators have decided by hand."""
    ORDER = "order"
    """The Plan's decision for a job, with the levels and orders of its flows."""
    PATHS = "paths"
    """The paths that the Plan gives to the flows of a job."""
    MEMORY = "memory"
    """The policy's memory of a job, for the next decision."""
    SHARED_MEMORY = "prices"
    """The rest of the policy's memory. Its value is a word of the first policy that had one, for prices of links."""


class FactKey(NamedTuple):
    """Identifies a fact."""

    kind: FactKind
    key: str


Body = Any
"""A value of JSON; None where there is no such fact."""

Facts = Mapping[FactKey, Body]


class RecordError(DaemonError, ValueError):
    """A record that cannot be read; the message says why."""
