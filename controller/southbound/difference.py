"""Compute the updates from what a switch holds to what it should hold, in an order that never breaks forwarding."""

from collections import defaultdict
from collections.abc import Callable

from controller.southbound.states import EntryKind, EntryT, Stage, State, Update, UpdateKind


def difference(
    held: State[EntryT], desired: State[EntryT], holds_same: Callable[[EntryT, EntryT], bool]
) -> tuple[Stage[EntryT], ...]:
    """Return the fewest updates that turn ``held`` into ``desired``, make before break.

    Entries are written before those that refer to them, and deletions come last, in reverse order. Nothing refers to
    flow rules, so all their updates make one stage. The default entry of a table can only be modified, and stays where
    ``desired`` has none. ``holds_same`` tells whether two entries with the same key do the same.
    """
    writes: defaultdict[EntryKind, list[Update[EntryT]]] = defaultdict(list)
    deletions: defaultdict[EntryKind, list[Update[EntryT]]] = defaultdict(list)
    for key, entry in desired.items():
        current = held.get(key)
        if current is None:
            update_kind = UpdateKind.MODIFY if key.kind is EntryKind.SETTING else UpdateKind.INSERT
            writes[key.kind].append(Update(update_kind, entry))
        elif current is not entry and not holds_same(current, entry):
            writes[key.kind].append(Update(UpdateKind.MODIFY, entry))
    for key, entry in held.items():
        if key not in desired and key.kind is not EntryKind.SETTING:
            deletions[key.kind].append(Update(UpdateKind.DELETE, entry))
    *kinds, last = EntryKind
    stages = [writes[kind] for kind in kinds]
    stages.append(writes[last] + deletions[last])
    stages += [deletions[kind] for kind in reversed(kinds)]
    return tuple(tuple(stage) for stage in stages if stage)
