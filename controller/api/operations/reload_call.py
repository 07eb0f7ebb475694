"""The call by which an operator has the controller read its configuration again, also one that stands by."""

from collections.abc import Awaitable, Callable, Sequence

import grpc

from controller.access.identity import Role
from controller.api.calls import Caller, Calls
from controller.api.operations import operations_pb2 as wire
from controller.api.operations.methods import RELOAD, SERVICE
from controller.background import to_its_end
from controller.reload.errors import ReloadError
from topologies.printable import printable

_MOST_PROBLEMS = 1_000
_MOST_CHARACTERS = 1_000


def reload_handler(calls: Calls, reload: Callable[[], Awaitable[Sequence[str]]]) -> grpc.GenericRpcHandler:
    """The handler of the call, for a gRPC server. ``reload`` returns what has changed, or raises ReloadError."""

    async def carried_out(caller: Caller) -> wire.ReloadAnswer:
        try:
            changes, problems = _lines(await reload()), []
        except ReloadError as error:
            changes, problems = [], _lines(error.problems)
        if calls.record is not None and caller.identity.is_known:
            outcome = "refused" if problems else "done"
            recorded = (printable("; ".join(lines), _MOST_CHARACTERS) for lines in (changes, problems))
            calls.record(caller.identity, RELOAD.name, next(recorded), outcome, next(recorded))
        return wire.ReloadAnswer(changes=changes, problems=problems)

    async def answer(_: wire.ReloadRequest, caller: Caller) -> wire.ReloadAnswer:
        return await to_its_end(carried_out(caller))  # no other reload begins before, also where the caller goes

    return grpc.method_handlers_generic_handler(SERVICE, {RELOAD.name: calls.unary(RELOAD, (Role.OPERATOR,), answer)})


def _lines(lines: Sequence[str]) -> list[str]:
    shown = [printable(line, _MOST_CHARACTERS) for line in lines[:_MOST_PROBLEMS]]
    return [*shown, f"and {len(lines) - _MOST_PROBLEMS:,} more"] if len(lines) > _MOST_PROBLEMS else shown
