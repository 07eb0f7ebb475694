"""A switch that has been given a pipeline: what entities are written to and read from."""

from dataclasses import dataclass, field

from finsy.proto import p4r

from emulator.entries import EntryKey
from emulator.p4runtime.pipeline import Pipeline
from emulator.p4runtime.schema import Schema
from emulator.replication import Replicator
from emulator.switch import EmulatedSwitch


@dataclass(frozen=True, slots=True)
class EntryMetadata:
    """The two cookies that a controller may leave with a table entry, and how it said an action set is picked from."""

    metadata: bytes = b""
    controller_metadata: int = 0
    selection_mode: p4r.ActionProfileActionSet.ActionSelectionMode.ValueType = (
        p4r.ActionProfileActionSet.DEFAULT_MODE_DETERMINED_BY_ACTION_SELECTOR
    )
    size_semantics: p4r.ActionProfileActionSet.SizeSemantics.ValueType = (
        p4r.ActionProfileActionSet.DEFAULT_SIZE_DETERMINED_BY_ACTION_SELECTOR
    )


@dataclass(slots=True)
class ControllerNotes:
    """What a controller gets back as it wrote it although no packet ever sees it.

    Entries are by table and key, ``None`` being the key of the default entry; groups of a profile by profile and id;
    multicast groups and clone sessions by kind and number, ports in canonical form.
    """

    entries: dict[tuple[str, EntryKey | None], EntryMetadata] = field(default_factory=dict)
    group_max_sizes: dict[tuple[str, int], int] = field(default_factory=dict)
    replications: dict[tuple[Replicator, int], p4r.PacketReplicationEngineEntry] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Target:
    """A switch, its pipeline and what its controllers noted since the pipeline was set."""

    switch: EmulatedSwitch
    pipeline: Pipeline
    notes: ControllerNotes = field(default_factory=ControllerNotes)

    @property
    def schema(self) -> Schema:
        """The objects of the pipeline's P4Info."""
        return self.pipeline.schema
