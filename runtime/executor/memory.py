"""Memory of a host: budgets of devices and of the host itself (``runtime.store``), as computations need them.

On CPUs all of it is the same memory. So what is spilled only changes the account: nothing is copied.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from runtime.store.allocations import Allocation, Cancelled, Move, Ready
from runtime.store.buffers import Handle, InputShard, NewShard, Owner
from runtime.store.object_store import ObjectStore


@dataclass(eq=False, slots=True)
class Reservation:
    """What a computation has reserved: its allocation, and the buffer of inputs that come from elsewhere.

    Where it names no other buffers, it may have ``occupied_bytes`` of its device instead.
    """

    allocation: Allocation | None
    scratch: Handle | None
    device: int
    occupied_bytes: int = 0


class HostMemory:
    """The memory of a host. Owners are clients and their executions, by number."""

    def __init__(self, budgets_bytes: Mapping[int, int]) -> None:
        self._store = ObjectStore(budgets_bytes)
        self._memories = tuple(budgets_bytes)
        self._waiting: dict[Allocation, Callable[[], None]] = {}
        self._numbers = count()

    @property
    def used_bytes(self) -> dict[int, int]:
        """Bytes of the arrays in each memory."""
        return {memory: self._store.used_bytes(memory) for memory in self._memories}

    @property
    def stalled(self) -> int:
        """Computations that wait for memory."""
        return self._store.num_stalled

    def new_handle(self, execution: int | None) -> Handle:
        """Return a handle for what only an execution holds."""
        return Handle(f"execution {execution}", next(self._numbers))

    def holds(self, handle: Handle, shard: int | None = None) -> bool:
        """Return whether there is a buffer, with a shard where one is named, or will be."""
        if shard is None or handle not in self._store:
            return handle in self._store
        return self._store.has_shard(handle, shard)

    def reserve(
        self,
        client: int,
        execution: int | None,
        device: int,
        outputs: Sequence[tuple[Handle, int, int]],
        inputs: Sequence[tuple[Handle, int]],
        received_bytes: Sequence[int],
        on_ready: Callable[[], None],
    ) -> tuple[Reservation, bool]:
        """Reserve what a computation needs on its device, in the order of the calls.

        Args:
            client: Whose computation it is.
            execution: To which execution it belongs; None where the client itself holds what it makes.
            device: Where it runs.
            outputs: Handle, shard and bytes of each output; the execution holds them.
            inputs: Handle and shard of inputs that lie on the device, or were spilled from it.
            received_bytes: Sizes of the inputs that come from elsewhere.
            on_ready: Called once there is room, if there is none yet; perhaps before this returns.

        Returns:
            The reservation, and whether there is room now.

        Raises:
            StoreError: The device could never hold all of it, or it contradicts what is there.
        """
        if not outputs and not inputs:
            size_bytes = sum(received_bytes)
            if self._store.occupy(device, size_bytes):
                return Reservation(None, None, device, size_bytes), True
        scratch = None if execution is None or not received_bytes else self.new_handle(execution)
        new = [NewShard(handle, shard, size_bytes, device) for handle, shard, size_bytes in outputs]
        if scratch is not None:
            new += [NewShard(scratch, number, size_bytes, device) for number, size_bytes in enumerate(received_bytes)]
        taken = [InputShard(handle, shard, device) for handle, shard in dict.fromkeys(inputs)]
        allocation = self._store.allocate(Owner(str(client), execution), new, taken)
        reservation = Reservation(allocation, scratch, device)
        if allocation.is_ready:
            return reservation, True
        self._waiting[allocation] = on_ready
        self._carry_out()
        return reservation, False

    def finish(self, client: int, execution: int | None, reservation: Reservation) -> None:
        """Note that a computation has ended, or will not run; call it once, before its execution is dropped."""
        if reservation.allocation is None:
            self._store.vacate(reservation.device, reservation.occupied_bytes)
        else:
            self._waiting.pop(reservation.allocation, None)
            self._store.finish(reservation.allocation)
            if reservation.scratch is not None and reservation.scratch in self._store:
                self._store.release(reservation.scratch, Owner(str(client), execution))
        self._carry_out()

    def keep(self, client: int, handle: Handle) -> None:
        """Let a client hold a buffer, too."""
        self._store.retain(handle, Owner(str(client)))

    def release(self, client: int, handle: Handle, execution: int | None = None) -> None:
        """Let a client, or an execution of it, hold a buffer no more."""
        self._store.release(handle, Owner(str(client), execution))
        self._carry_out()

    def drop(self, client: int, execution: int | None = None) -> None:
        """Let a client, or an execution of it, hold nothing any more, and end what it waits for."""
        self._store.drop_owner(Owner(str(client), execution))
        self._carry_out()

    def _carry_out(self) -> None:
        while effects := self._store.take_effects():
            for effect in effects:
                match effect:
                    case Ready(allocation) if allocation in self._waiting:
                        self._waiting.pop(allocation)()
                    case Cancelled(allocation):
                        self._waiting.pop(allocation, None)
                    case Move():
                        self._store.moved(effect.handle, effect.shard)
