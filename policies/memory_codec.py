"""How a record keeps what a policy remembers between Plans (``Plan.memory``)."""

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
    """A Plan's memory as JSON values; a record stores each part only where it has changed.

    ``shared`` is about no single job. ``by_job`` is by the names of jobs of the Snapshot. The memory is None where
    ``shared`` is None and ``by_job`` empty.
    """

    shared: Json = None
    by_job: Mapping[str, Json] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is remembered."""
        return self.shared is None and not self.by_job


class MemoryCodec(Protocol):
    """Turns a policy's memory into JSON values and back, to the bit, so that a replay decides the same."""

    def encode(self, memory: Any) -> EncodedMemory:
        """Return the memory as JSON values; ``memory`` is a ``Plan.memory`` of the same policy, never None."""
        ...

    def decode(self, encoded: EncodedMemory, plan: "Plan", snapshot: "Snapshot") -> object:
        """Return the memory that ``encode`` was given; ``plan`` is its Plan without it, ``snapshot`` the Plan's own."""
        ...


class JsonMemoryCodec:
    """For a memory that is a JSON value itself: what a policy has that names no codec of its own."""

    def encode(self, memory: Any) -> EncodedMemory:
        """Return a copy of the memory. Raises TypeError or ValueError where it is no JSON value."""
        return EncodedMemory(json.loads(json.dumps(memory)))

    def decode(self, encoded: EncodedMemory, plan: "Plan", snapshot: "Snapshot") -> object:  # noqa: ARG002
        """Return the memory."""
        return encoded.shared
