"""Codecs for what a policy remembers between Plans (``Plan.memory``): how a record keeps it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from policies.plan import Plan
    from policies.snapshot import Snapshot

Json = Any
"""A JSON value: None, a bool, a number, a string, a list, or a dict with strings for keys."""


@dataclass(frozen=True, slots=True)
class EncodedMemory:
    """A Plan's memory as JSON values. A record stores each part only when it changes.

    Attributes:
        shared: What belongs to no single job.
        by_job: What belongs to one job each, by name.
    """

    shared: Json = None
    by_job: Mapping[str, Json] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether this stands for no memory (None)."""
        return self.shared is None and not self.by_job


class MemoryCodec(Protocol):
    """Turns a policy's memory into JSON values and back. The round trip is exact, so that a replay decides the same."""

    def encode(self, memory: Any) -> EncodedMemory:
        """Return a ``Plan.memory`` of the same policy, which is not None, as JSON values."""
        ...

    def decode(self, encoded: EncodedMemory, plan: "Plan", snapshot: "Snapshot") -> object:
        """Return the memory that ``encode`` was given.

        Args:
            encoded: What ``encode`` returned.
            plan: The Plan without its memory.
            snapshot: The Snapshot of the Plan.
        """
        ...


class JsonMemoryCodec:
    """The codec of policies that name no other: for a memory that is a JSON value itself."""

    def encode(self, memory: Any) -> EncodedMemory:
        """Return a copy of the memory.

        Raises:
            TypeError: The memory is not a JSON value.
            ValueError: The memory is not a JSON value.
        """
        return EncodedMemory(json.loads(json.dumps(memory)))

    def decode(self, encoded: EncodedMemory, plan: "Plan", snapshot: "Snapshot") -> object:  # noqa: ARG002
        """Return the memory."""
        return encoded.shared
