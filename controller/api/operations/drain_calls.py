"""The calls by which operators drain switches, cables and hosts, and see how far that is."""

from collections.abc import AsyncIterator
from typing import Any

import grpc

from controller.access.identity import Role
from controller.api.calls import Caller
from controller.api.context import ServiceContext
from controller.api.operations import operations_pb2 as wire
from controller.api.operations.methods import DRAIN, LIST_DRAINS, UNDRAIN
from controller.api.operations.pages import Turns, pages
from controller.api.operations.stored import stored
from controller.links.drains import DrainKind, DrainTarget
from controller.planning.draining import DrainState
from controller.registry.errors import InvalidFieldError

_KINDS = {wire.SWITCH: DrainKind.SWITCH, wire.LINK: DrainKind.LINK, wire.HOST: DrainKind.HOST}
_WIRE_KINDS = {kind: number for number, kind in _KINDS.items()}


class DrainCalls:
    """Answers calls about drains; viewers may see them, and operators change them."""

    def __init__(self, context: ServiceContext, turns: Turns) -> None:
        self._calls = context.calls
        self._draining = context.draining
        self._clock = context.clock
        self._turns = turns

    def handlers(self) -> dict[str, "grpc.RpcMethodHandler[bytes, Any]"]:
        """The handlers of the methods, by name."""
        operator = (Role.OPERATOR,)
        return {
            # Not in the audit trail: who waits asks again and again.
            LIST_DRAINS.method.name: self._calls.streaming(LIST_DRAINS.method, (Role.VIEWER,), self._list),
            DRAIN.name: self._calls.unary(DRAIN, operator, self._drain, subject=_drained),
            UNDRAIN.name: self._calls.unary(UNDRAIN, operator, self._undrain, subject=_named),
        }

    async def _list(self, _: wire.ListRequest, caller: Caller) -> AsyncIterator[wire.DrainPage]:
        now_s = self._clock.now_s()
        states = [drain_state(state, now_s) for state in await self._draining.states()]
        async for page in pages(LIST_DRAINS, states, self._turns, is_pure=False):
            await self._calls.charge(caller, page.ByteSize())
            yield page

    async def _drain(self, request: wire.DrainRequest, caller: Caller) -> wire.DrainAnswer:
        target = self._find(request.target)
        by = caller.identity.name if caller.identity.is_known else ""
        is_changed = await stored(self._draining.drain(target, by, is_forced=request.force))
        return wire.DrainAnswer(name=target.name, is_changed=is_changed)

    async def _undrain(self, request: wire.DrainTarget, _: Caller) -> wire.DrainAnswer:
        target = self._find_drained(request)
        await stored(self._draining.undrain(target))
        return wire.DrainAnswer(name=target.name, is_changed=True)

    def _find(self, target: wire.DrainTarget) -> DrainTarget:
        kind = _KINDS.get(target.kind)
        if kind is None:
            raise InvalidFieldError(f"target.kind: is one of {', '.join(DrainKind)}")
        other = target.other if target.HasField("other") else None
        parallel = target.parallel if target.HasField("parallel") else None
        return self._draining.targets.find(kind, target.name, other, parallel)

    def _find_drained(self, target: wire.DrainTarget) -> DrainTarget:
        """The same; what is drained has been found before, and may not be in the topology any longer."""
        for drain in self._draining.drains:
            if (_WIRE_KINDS[drain.target.kind], drain.target.name) == (target.kind, target.name):
                return drain.target
        return self._find(target)


def drain_state(state: DrainState, now_s: float) -> wire.DrainState:
    """The state of a drain as a message."""
    drain = state.drain
    return wire.DrainState(
        kind=_WIRE_KINDS[drain.target.kind],
        name=drain.target.name,
        is_forced=drain.is_forced,
        since_ago_s=max(0.0, now_s - drain.since_s),
        by=drain.by,
        is_safe=not state.waits_for,
        waits_for=state.waits_for,
        jobs=state.jobs,
        quiet_s=state.quiet_s,
    )


def _named(target: wire.DrainTarget) -> str:
    kind = str(_KINDS.get(target.kind, target.kind))
    parallel = f"--parallel {target.parallel}" if target.HasField("parallel") else ""
    return " ".join(word for word in (kind, target.name, target.other, parallel) if word)


def _drained(request: wire.DrainRequest) -> str:
    return _named(request.target) + " --force" * request.force
