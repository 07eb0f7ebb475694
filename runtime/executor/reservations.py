"""What computations reserve in the memory of their host, in the order of the grants."""

from collections.abc import Callable

from runtime.executor.computations import Computation
from runtime.executor.executions import Execution
from runtime.executor.store import HostStore, handle_of
from runtime.lowering.subprograms import Receipt
from runtime.messages import Failure
from runtime.program import Value
from runtime.store.buffers import Handle
from runtime.store.errors import StoreError


class Reservations:
    """Memory for computations.

    Hosts reserve in one order, that of the grants. So the first computation that has not ended always has its memory in
    the end, unless clients hold more than fits.
    """

    def __init__(self, store: HostStore) -> None:
        self._store = store

    def reserve(self, execution: Execution, computation: Computation, come: Callable[[], None]) -> None:
        """Reserve memory for a computation that was granted: outputs, and inputs that do not lie there already.

        Calls ``come`` once there is room. A computation that its device could never hold fails.
        """
        memory, node, shard = self._store.memory, computation.node, computation.shard
        plan = execution.loaded.plan
        outputs = []
        for output, made in enumerate(plan.calls[node].outputs):
            value = Value(node, output)
            result = execution.results.get((node, output))
            name = memory.new_handle(execution.number) if result is None else handle_of(execution.client, result)
            execution.handles[value, shard] = name
            if result is None:
                in_place = (plan.receipts.get((send.edge, send.piece.destination)) for send in plan.local(value, shard))
                execution.uses[name] = 1 + sum(each is not None and each.is_in_place for each in in_place)
            outputs.append((name, shard, made.sharding.shard_spec(made.spec).size_bytes))
        inputs, received_bytes = [], []
        for edge in plan.inputs[node]:
            receipt = plan.receipts[edge, shard]
            found = self._handle_in_place(execution, receipt)
            if found is None:
                received_bytes.append(receipt.size_bytes)
            else:
                inputs.append(found)
        try:
            computation.reservation, has_room = memory.reserve(
                execution.client,
                execution.number,
                computation.device,
                outputs,
                inputs,
                received_bytes,
                come,
            )
        except StoreError as error:
            failure = Failure("RefusedError", f"{computation.function.name}: {error}")
            computation.failure = computation.failure or failure
            has_room = True
        else:
            for output in range(len(outputs)):
                result = execution.results.get((node, output))
                if result is not None:
                    self._store.keep(execution.client, result)
        if has_room:
            come()

    def _handle_in_place(self, execution: Execution, receipt: Receipt) -> tuple[Handle, int] | None:
        """Return the handle of an input that lies on the device of its computation, and the shard of it."""
        if not receipt.is_in_place:
            return None
        value = receipt.edge.value
        source = receipt.edge.resharding.sources(receipt.shard)[0]
        if value.node in execution.arguments:
            found: Handle | None = handle_of(execution.client, execution.arguments[value.node])
        else:
            found = execution.handles.get((value, source))
        return (found, source) if found is not None and self._store.memory.holds(found, source) else None

    def finish(self, computation: Computation) -> None:
        """Note that a computation has ended, or will not run."""
        if computation.reservation is not None:
            self._store.memory.finish(computation.client, computation.execution, computation.reservation)
            computation.reservation = None

    def release(self, execution: Execution, computation: Computation) -> None:
        """Release what only this execution holds, and nobody takes any more after a computation has ended."""
        plan = execution.loaded.plan
        used = [
            execution.handles.get((Value(computation.node, output), computation.shard))
            for output in range(len(plan.calls[computation.node].outputs))
        ]
        for edge in plan.inputs[computation.node]:
            receipt = plan.receipts[edge, computation.shard]
            if receipt.is_in_place:
                source = receipt.edge.resharding.sources(receipt.shard)[0]
                used.append(execution.handles.get((receipt.edge.value, source)))
        for handle in used:
            if handle is not None and handle in execution.uses:
                execution.uses[handle] -= 1
                if execution.uses[handle] == 0:
                    del execution.uses[handle]
                    if self._store.memory.holds(handle):
                        self._store.memory.release(execution.client, handle, execution.number)
