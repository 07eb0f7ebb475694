"""IdleTimeoutNotification: entries that nobody has hit for their timeout (P4Runtime specification, section 16.4)."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from finsy.proto import p4r

from emulator.ageing import IdleEntry
from emulator.p4runtime.roles import Permissions
from emulator.p4runtime.target import EntryMetadata, Target
from emulator.p4runtime.translate import encode_key

_MOST_ENTRIES = 1000
"""Entries of a notification: gRPC clients refuse more than 4 MiB."""
_PS_PER_NS = 1000


def notifications(
    target: Target, idle: Iterable[IdleEntry], permissions: Permissions
) -> Iterator[p4r.IdleTimeoutNotification]:
    """Return what a role is told of entries, in the order in which they became idle, those of one moment together.

    Timestamps are nanoseconds of the fabric's time.
    """
    tables = {
        table.name: table
        for table in target.schema.tables.values()
        if permissions.covers(p4r.Entity(table_entry=p4r.TableEntry(table_id=table.id)))
    }
    for time_ps, entries in groupby(idle, lambda entry: entry.time_ps):
        messages = []
        for entry in entries:
            if entry.table not in tables:
                continue
            message = encode_key(tables[entry.table], entry.key)
            metadata = target.notes.entries.get((entry.table, entry.key), EntryMetadata())
            message.metadata = metadata.metadata
            message.controller_metadata = metadata.controller_metadata
            message.idle_timeout_ns = metadata.idle_timeout_ns
            messages.append(message)
        for first in range(0, len(messages), _MOST_ENTRIES):
            some = messages[first : first + _MOST_ENTRIES]
            yield p4r.IdleTimeoutNotification(table_entry=some, timestamp=time_ps // _PS_PER_NS)
