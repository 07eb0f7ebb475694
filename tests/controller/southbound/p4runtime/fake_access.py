"""Access to a switch in memory, and entries for it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from finsy import P4TableAction, P4TableEntry, P4TableMatch

from controller.southbound.p4runtime.entries import Entity, holds_same, key_of
from controller.southbound.p4runtime.states import State, Update
from controller.southbound.states import EntryKey, UpdateKind


def entry(table: str, number: int, action: str) -> P4TableEntry:
    field = "next_hop" if table == "next_hop" else "source_port"
    return P4TableEntry(table, match=P4TableMatch({field: number}), action=P4TableAction(action))


BASE = [entry("next_hop", 1, "forward")]
FLOW, OTHER_FLOW = entry("flow", 1, "steer"), entry("flow", 2, "steer")


class FakeAccess:
    """Access to a switch in memory; ``fail`` is raised by the next write."""

    def __init__(self, *held: Entity) -> None:
        self.held = {key_of(entity): entity for entity in held}
        self.requests: list[Sequence[Update]] = []
        self.fail: Exception | None = None
        self.num_reads = 0
        self.during_read: Callable[[], Awaitable[None]] = partial(asyncio.sleep, 0)
        self.after_read = self.during_read

    async def read(self, expected: State) -> dict[EntryKey, Entity]:
        self.num_reads += 1
        await self.during_read()
        found = {
            key: expected[key] if key in expected and holds_same(expected[key], entity) else entity
            for key, entity in self.held.items()
        }
        await self.after_read()
        return found

    async def write(self, updates: Sequence[Update]) -> None:
        if self.fail is not None:
            failure, self.fail = self.fail, None
            raise failure
        self.requests.append(updates)
        for update in updates:
            if update.kind is UpdateKind.DELETE:
                del self.held[key_of(update.entity)]
            else:
                self.held[key_of(update.entity)] = update.entity

    def holds(self, *entities: Entity) -> bool:
        return list(self.held.values()) == list(entities)
