"""The calls by which operators pause planning, withdraw all rules, and pin levels and paths."""

from collections.abc import AsyncIterator
from typing import Any

import grpc

from controller.access.identity import Role
from controller.api.calls import Caller
from controller.api.context import ServiceContext
from controller.api.operations import operations_pb2 as wire
from controller.api.operations.methods import LIST_PINS, PAUSE, PIN, RELEASE, RESUME, UNPIN
from controller.api.operations.pages import Turns, pages
from controller.api.operations.stored import stored
from controller.planning.intervening import Intervening, PinState
from controller.planning.interventions import Pause


class InterventionCalls:
    """Answers calls about pauses and pins; viewers may see them, and operators change them."""

    def __init__(self, context: ServiceContext, turns: Turns) -> None:
        self._calls = context.calls
        self._intervening = intervening_of(context)
        self._clock = context.clock
        self._turns = turns

    def handlers(self) -> dict[str, "grpc.RpcMethodHandler[bytes, Any]"]:
        """The handlers of the methods, by name."""
        operator, unary = (Role.OPERATOR,), self._calls.unary
        return {
            PAUSE.name: unary(PAUSE, operator, self._pause, subject=lambda request: request.reason),
            RESUME.name: unary(RESUME, operator, self._resume, subject=lambda _: ""),
            RELEASE.name: unary(RELEASE, operator, self._release, subject=lambda request: request.reason),
            LIST_PINS.method.name: self._calls.streaming(LIST_PINS.method, (Role.VIEWER,), self._list),
            PIN.name: unary(PIN, operator, self._pin, subject=_pinned),
            UNPIN.name: unary(UNPIN, operator, self._unpin, subject=lambda request: request.name),
        }

    async def _pause(self, request: wire.PauseRequest, caller: Caller) -> wire.PauseAnswer:
        is_changed = await stored(self._intervening.pause(_name(caller), request.reason))
        return self._answer(is_changed)

    async def _resume(self, _: wire.ResumeRequest, __: Caller) -> wire.PauseAnswer:
        return self._answer(await stored(self._intervening.resume()))

    async def _release(self, request: wire.PauseRequest, caller: Caller) -> wire.PauseAnswer:
        is_changed, behind = await stored(self._intervening.release(_name(caller), request.reason))
        return self._answer(is_changed, behind)

    def _answer(self, is_changed: bool, behind: tuple[str, ...] = ()) -> wire.PauseAnswer:
        pause = self._intervening.pause_state
        state = None if pause is None else pause_state(pause, self._clock.now_s())
        return wire.PauseAnswer(is_changed=is_changed, pause=state, behind=behind)

    async def _list(self, _: wire.ListRequest, caller: Caller) -> AsyncIterator[wire.PinPage]:
        now_s = self._clock.now_s()
        states = (pin_state(state, now_s) for state in self._intervening.pin_states())
        async for page in pages(LIST_PINS, states, self._turns, is_pure=False):
            await self._calls.charge(caller, page.ByteSize())
            yield page

    async def _pin(self, request: wire.PinRequest, caller: Caller) -> wire.PinState:
        level = request.level if request.HasField("level") else None
        path = request.path if request.HasField("path") else None
        state = await stored(self._intervening.pin(request.name, level, path, request.for_s, _name(caller)))
        return pin_state(state, self._clock.now_s())

    async def _unpin(self, request: wire.UnpinRequest, _: Caller) -> wire.UnpinAnswer:
        await stored(self._intervening.unpin(request.name))
        return wire.UnpinAnswer()


def intervening_of(context: ServiceContext) -> Intervening:
    """What carries out the decisions of operators in a controller."""
    return Intervening(context.planner, context.registry, context.southbound, context.clock, context.profiling)


def pause_state(pause: Pause, now_s: float) -> wire.PauseState:
    """A pause as a message."""
    return wire.PauseState(
        since_ago_s=max(0.0, now_s - pause.since_s), by=pause.by, reason=pause.reason, is_released=pause.is_released
    )


def pin_state(state: PinState, now_s: float) -> wire.PinState:
    """A pin as a message."""
    pin = state.pin
    return wire.PinState(
        name=pin.target,
        level=pin.level,
        path=pin.path,
        since_ago_s=max(0.0, now_s - pin.since_s),
        left_s=max(0.0, pin.until_s - now_s),
        by=pin.by,
        holds=not state.problem,
        problem=state.problem,
    )


def _name(caller: Caller) -> str:
    return caller.identity.name if caller.identity.is_known else ""


def _pinned(request: wire.PinRequest) -> str:
    what = f"--level {request.level}" if request.HasField("level") else f"--path {request.path}"
    return f"{request.name} {what} --for {request.for_s:g}s"
