"""Files with the entries of a switch, in the JSON that p4lang's tutorials use.

{"target": "bmv2", "p4info": "build/basic.p4.p4info.txtpb", "bmv2_json": "build/basic.json",
 "table_entries": [{"table": "MyIngress.ipv4_lpm", "match": {"hdr.ipv4.dstAddr": ["10.0.1.1", 32]},
                    "action_name": "MyIngress.ipv4_forward",
                    "action_params": {"dstAddr": "08:00:00:00:01:11", "port": 1}}],
 "multicast_group_entries": [{"multicast_group_id": 1, "replicas": [{"egress_port": 1, "instance": 1}]}],
 "clone_session_entries": [{"clone_session_id": 5, "replicas": [{"egress_port": 3, "instance": 1}]}]}

Every part may be missing; unknown keys are refused.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from finsy.proto import p4i, p4r
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from emulator.p4runtime.readable import EntryError, Readable, Replica
from topologies.documents import DocumentError, read_document
from topologies.problems import problem_of_error

_Number = Annotated[int, Field(strict=True, ge=0)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TableEntry(_Part):
    """An entry of a table, or its default action."""

    table: str
    match: dict[str, Any] | None = None
    default_action: bool = False
    action_name: str | None = None
    action_params: dict[str, Any] = {}
    priority: _Number | None = None


class _Replica(_Part):
    egress_port: _Number
    instance: _Number = 0

    @property
    def pair(self) -> Replica:
        return self.egress_port, self.instance


class MulticastGroup(_Part):
    """A multicast group."""

    multicast_group_id: _Number
    replicas: tuple[_Replica, ...]


class CloneSession(_Part):
    """A clone session; without a length it clones whole packets."""

    clone_session_id: _Number
    replicas: tuple[_Replica, ...]
    packet_length_bytes: _Number = 0


class EntryFile(_Part):
    """The entries of a switch, and the two files of its program, which may be named elsewhere."""

    target: Literal["bmv2"] = "bmv2"
    p4info: str | None = None
    bmv2_json: str | None = None
    table_entries: tuple[TableEntry, ...] = ()
    multicast_group_entries: tuple[MulticastGroup, ...] = ()
    clone_session_entries: tuple[CloneSession, ...] = ()


def read_entries(path: Path) -> EntryFile:
    """Read a file of entries. Raises DocumentError with all problems, each with its place."""
    document = read_document(path)
    if document.problems:
        raise DocumentError(document.messages(document.problems))
    try:
        return EntryFile.model_validate(document.contents)
    except ValidationError as error:
        problems = [problem_of_error(fault, document.contents, EntryFile) for fault in error.errors()]
        raise DocumentError(document.messages(problems)) from error


def places_of(entries: EntryFile) -> list[str]:
    """Return the place in its file of each entry, in the order of their updates."""
    return [
        f"{key}[{number}]"
        for key in ("table_entries", "multicast_group_entries", "clone_session_entries")
        for number in range(len(getattr(entries, key)))
    ]


def updates_of(entries: EntryFile, p4info: p4i.P4Info) -> list[p4r.Update]:
    """Return the updates that write a file's entries, in their order.

    Raises:
        EntryError: One line for each entry that the program cannot have, with its place.
    """
    readable = Readable(p4info)
    updates: list[p4r.Update] = []
    failures: list[str] = []
    for place, update in zip(places_of(entries), _writing(entries, readable), strict=True):
        try:
            updates.append(update())
        except EntryError as error:
            failures.append(f"{place}: {error}")
    if failures:
        raise EntryError("\n".join(failures))
    return updates


def _writing(entries: EntryFile, readable: Readable) -> Iterator[Callable[[], p4r.Update]]:
    for entry in entries.table_entries:
        yield partial(_table_update, readable, entry)
    for group in entries.multicast_group_entries:
        yield partial(_group_update, readable, group)
    for session in entries.clone_session_entries:
        yield partial(_session_update, readable, session)


def _table_update(readable: Readable, entry: TableEntry) -> p4r.Update:
    message = readable.table_entry(
        entry.table,
        {} if entry.default_action else entry.match or {},
        entry.action_name,
        entry.action_params,
        priority=entry.priority or 0,
        is_default=entry.default_action,
    )
    if entry.default_action:  # every table has one, which can only be changed
        return p4r.Update(type=p4r.Update.MODIFY, entity=p4r.Entity(table_entry=message))
    return _inserted(table_entry=message)


def _group_update(readable: Readable, group: MulticastGroup) -> p4r.Update:
    replicas = [replica.pair for replica in group.replicas]
    entry = readable.multicast_group(group.multicast_group_id, replicas)
    return _inserted(packet_replication_engine_entry=entry)


def _session_update(readable: Readable, session: CloneSession) -> p4r.Update:
    replicas = [replica.pair for replica in session.replicas]
    entry = readable.clone_session(session.clone_session_id, replicas, session.packet_length_bytes)
    return _inserted(packet_replication_engine_entry=entry)


def _inserted(**entity: Any) -> p4r.Update:
    return p4r.Update(type=p4r.Update.INSERT, entity=p4r.Entity(**entity))
