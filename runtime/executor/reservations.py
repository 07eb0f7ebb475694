"""What computations reserve in the memory of their host, in the order of the grants."""

from collections.abc import Mapping

from runtime.executor.reserved import Handles, Held
from runtime.executor.store import HostStore, handle_of
from runtime.messages import Failure
from runtime.store.buffers import Handle
from runtime.store.errors import StoreError


class Reservations:
    """Memory for computations.

    Hosts reserve in one order, that of the grants. So the first computation that has not ended always has its memory in
    the end, unless clients hold more than fits.
    """

    def __init__(self, store: HostStore) -> None:
        self._store = store

    def reserve(
        self,
        held: Held,
        handles: Handles,
        arguments: Mapping[int, int],
        results: Mapping[tuple[int, int], int],
    ) -> None:
        """Reserve memory for a group that was granted: outputs, and inputs that do not lie there already.

        ``held`` is told once there is room. A group that its device could never hold fails.
        """
        memory, group, client, execution = self._store.memory, held.group, held.client, held.execution
        outputs: list[tuple[Handle, int, int]] = []
        kept: list[int] = []
        own_bytes = group.received_bytes
        for value, shard, size_bytes in group.outputs:
            result = results.get((value.node, value.output))
            if result is not None:
                name = handles.by_value[value, shard] = handle_of(client, result)
                outputs.append((name, shard, size_bytes))
                kept.append(result)
            elif group.uses[value, shard]:
                name = handles.by_value[value, shard] = memory.new_handle(execution)
                handles.uses[name] = group.uses[value, shard]
                outputs.append((name, shard, size_bytes))
            else:
                own_bytes += size_bytes
        inputs: list[tuple[Handle, int]] = []
        for taken in group.taken:
            if taken.value.node in arguments:
                found: Handle | None = self._store.name_of(client, arguments[taken.value.node])
            else:
                found = handles.by_value.get((taken.value, taken.source))
            if found is not None and memory.holds(found, taken.source):
                inputs.append((found, taken.source))
            else:
                own_bytes += taken.size_bytes
        own = (own_bytes,) if own_bytes else ()
        if not (outputs or inputs or own):
            held.come()
            return
        try:
            held.reservation, has_room = memory.reserve(
                client, execution, group.device, outputs, inputs, own, held.come
            )
        except StoreError as error:
            held.failure = Failure("RefusedError", str(error))
            has_room = True
        else:
            for result in kept:
                self._store.keep(client, result)
        if has_room:
            held.come()

    def finish(self, held: Held) -> bool:
        """Note that a computation of a group has ended, or will not run; return whether that was the last one."""
        held.left -= 1
        if held.left == 0 and held.reservation is not None:
            self._store.memory.finish(held.client, held.execution, held.reservation)
            held.reservation = None
        return held.left == 0

    def release(self, held: Held, handles: Handles) -> None:
        """Release what only its execution holds, and nobody takes any more after a group has ended."""
        for taken in held.group.taken:
            handle = handles.by_value.get((taken.value, taken.source))
            if handle is not None and handle in handles.uses:
                handles.uses[handle] -= 1
                if handles.uses[handle] == 0:
                    del handles.uses[handle]
                    if self._store.memory.holds(handle):
                        self._store.memory.release(held.client, handle, held.execution)
