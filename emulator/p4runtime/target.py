"""A switch with a pipeline: the target of reads and writes."""

from dataclasses import dataclass, field

from finsy.proto import p4r

from emulator.entries import EntryKey
from emulator.p4runtime.digests import Digests
from emulator.p4runtime.pipeline import Pipeline
from emulator.p4runtime.schema import Schema
from emulator.p4runtime.update_log import UpdateLog
from emulator.replication import Replicator
from emulator.switch import EmulatedSwitch


@dataclass(frozen=True, slots=True)
class EntryMetadata:
    """Metadata that a controller stores with a table entry, and how it described an action set."""

    metadata: bytes = b""
    controller_metadata: int = 0
    idle_timeout_ns: int = 0
    selection_mode: p4r.ActionProfileActionSet.ActionSelectionMode.ValueType = (
        p4r.ActionProfileActionSet.DEFAULT_MODE_DETERMINED_BY_ACTION_SELECTOR
    )
    size_semantics: p4r.ActionProfileActionSet.SizeSemantics.ValueType = (
        p4r.ActionProfileActionSet.DEFAULT_SIZE_DETERMINED_BY_ACTION_SELECTOR
    )


@dataclass(slots=True)
class ControllerNotes:
    """Values that are returned to controllers as written, although no packet depends on them.

    Entries are by table and key, with key ``None`` for the default entry; groups by profile and id; multicast groups
    and clone sessions by kind and number, with ports in canonical form.
    """

    entries: dict[tuple[str, EntryKey | None], EntryMetadata] = field(default_factory=dict)
    group_max_sizes: dict[tuple[str, int], int] = field(default_factory=dict)
    replications: dict[tuple[Replicator, int], p4r.PacketReplicationEngineEntry] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Target:
    """A switch, its pipeline, and the controllers' notes since the pipeline was set."""

    switch: EmulatedSwitch
    pipeline: Pipeline
    notes: ControllerNotes = field(default_factory=ControllerNotes)
    digests: Digests = field(default_factory=Digests)
    log: UpdateLog | None = None
    """What has been carried out, where a commit is to repeat it."""

    @property
    def schema(self) -> Schema:
        """Objects of the pipeline's P4Info."""
        return self.pipeline.schema
