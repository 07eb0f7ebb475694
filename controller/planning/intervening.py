"""Pause and resume planning, withdraw all rules, pin levels and paths: what operators ask of a running controller."""

import logging
import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from controller.clock import Clock
from controller.events import BurstLog, EventKind, log_event
from controller.links.link_log import listed
from controller.planning.interventions import HandPin, Interventions, Pause
from controller.planning.pin_requests import PinChecker, UnfitPinError, UnknownPinError
from controller.planning.pinned_plan import held_pins
from controller.planning.planner import Planner
from controller.profiling.measured import ProfilingResults
from controller.registry.errors import InvalidFieldError
from controller.registry.jobs import RegisteredJob
from controller.registry.registry import Registry
from controller.southbound.southbound import Southbound, SouthboundError, SwitchCondition
from policies.pins import PathPin, Pin
from topologies.printable import quoted

_LOG = logging.getLogger(__name__)

LONGEST_PIN_S = 7 * 86_400.0
"""A pin that somebody has forgotten is gone after a week."""
MOST_PINS = 1_000
MOST_REASON = 500
"""Characters of a reason to pause."""


@dataclass(frozen=True, slots=True)
class PinState:
    """A pin, and why it does not hold now; empty where it does."""

    pin: HandPin
    problem: str


class Intervening:
    """Carries out what operators decide by hand.

    Args:
        planner: Makes Plans, and has the interventions.
        registry: The jobs.
        southbound: The switches.
        clock: The time.
        profiling: The measurements of jobs that report no profile.
    """

    def __init__(
        self,
        planner: Planner,
        registry: Registry,
        southbound: Southbound,
        clock: Clock,
        profiling: ProfilingResults,
    ) -> None:
        self._planner = planner
        self._registry = registry
        self._southbound = southbound
        self._clock = clock
        self._log = BurstLog(_LOG)
        self._checker = PinChecker(planner, registry, profiling)

    @property
    def pause_state(self) -> Pause | None:
        """Since when and why planning is paused; None: it is not."""
        return self._interventions.pause

    @property
    def _interventions(self) -> Interventions:
        return self._planner.interventions

    async def pause(self, by: str, reason: str = "") -> bool:
        """Make no Plan from now on; returns False where that is so already. Raises InvalidFieldError, StoreError."""
        is_changed = await self._interventions.begin_pause(by, _checked_reason(reason), is_released=False)
        await self._planner.carried_out()
        if is_changed:
            log_event(
                *(_LOG, logging.WARNING, EventKind.PAUSED, "planning is paused%s%s", *_words(by, reason)),
                by=by,
                reason=reason,
            )
        return is_changed

    async def release(self, by: str, reason: str = "") -> tuple[bool, tuple[str, ...]]:
        """The same, and withdraw all rules and levels; base routing stays.

        Returns whether that is new, and the switches that do it later, each with its condition.
        """
        is_changed = await self._interventions.begin_pause(by, _checked_reason(reason), is_released=True)
        with suppress(SouthboundError):  # the switch's condition says so; it is tried again
            await self._planner.release()
        if is_changed:
            log_event(
                *(_LOG, logging.WARNING, EventKind.RELEASED, "all rules are released%s%s", *_words(by, reason)),
                by=by,
                reason=reason,
            )
        behind = (each for each in self._southbound.statuses() if each.condition is not SwitchCondition.CAUGHT_UP)
        return is_changed, tuple(f"{each.name} ({each.condition})" for each in behind)

    async def resume(self) -> bool:
        """Make Plans again, the first one at once; returns False where planning was not paused. Raises StoreError."""
        is_changed = await self._interventions.end_pause()
        if is_changed:
            self._planner.mark_changed()
            log_event(_LOG, logging.INFO, EventKind.RESUMED, "planning is resumed")
        return is_changed

    async def pin(self, name: str, level: int | None, path: str | None, for_s: float, by: str) -> PinState:
        """Pin the level of JOB, or the path of JOB/GROUP/NUMBER.

        Raises:
            UnknownPinError: There is no such job or flow.
            UnfitPinError: It cannot be pinned now.
            InvalidFieldError: It can never be pinned so.
            StoreError: It cannot be kept.
        """
        now_s = self._clock.now_s()
        if (level is None) == (path is None):
            raise InvalidFieldError("level: a pin has a level or a path")
        if not math.isfinite(for_s) or for_s > LONGEST_PIN_S:
            raise InvalidFieldError(f"for_s: a pin holds for {LONGEST_PIN_S:.0f} s (7 days) at most, not {for_s:g} s")
        if for_s <= 0:
            raise InvalidFieldError(f"for_s: a pin for {for_s:g} s has expired already")
        if level is not None:
            self._checker.check_level(name, level)
        if path is not None:
            path = self._checker.check_path(name, path, now_s)
        pins = self._interventions.pins
        if len(pins) >= MOST_PINS and name not in {pin.target for pin in pins}:
            raise UnfitPinError(f"{MOST_PINS:,} pins are there, and no more can be; unpin some")
        pin = HandPin(name, level, path, now_s, now_s + for_s, by)
        await self._interventions.pin(pin)
        self._planner.mark_changed()
        what = path if level is None else f"level {level}"
        words = "%s: pinned to %s for %.0f s%s", name, what, for_s, f" by {by}" if by else ""
        self._log.tell(EventKind.PINNED, *words, target=name, by=by)
        return PinState(pin, self._problem(pin, self._held))

    async def unpin(self, name: str) -> None:
        """Have the policy decide again. Raises UnknownPinError and StoreError."""
        if not await self._interventions.unpin(name):
            pins = self._interventions.pins
            raise UnknownPinError(f"nothing is pinned for {quoted(name)}; {_pinned(pins)}")
        self._planner.mark_changed()
        self._log.tell(EventKind.UNPINNED, "%s: no longer pinned", name, target=name)

    def pin_states(self) -> Iterator[PinState]:
        """Yield the pins, and whether each holds in the Plan in force; a thousand take a while."""
        held = self._held
        for pin in self._interventions.pins:
            yield PinState(pin, self._problem(pin, held))

    def pin_state(self, target: str) -> PinState | None:
        """The pin of a job or a flow, and whether it holds in the Plan in force; None where it has none."""
        pin = next((pin for pin in self._interventions.pins if pin.target == target), None)
        return None if pin is None else PinState(pin, self._problem(pin, self._held))

    @property
    def _held(self) -> frozenset[Pin]:
        decision = self._planner.decision
        return frozenset(() if decision is None else held_pins(decision.snapshot))

    def _problem(self, pin: HandPin, held: frozenset[Pin]) -> str:
        """Why a pin does not hold; empty where it does."""
        job = self._registry.job(pin.job)
        if job is None:
            return "no job of the name is registered now"
        try:
            on_fabric = pin.on(self._registry.fabric)
        except ValueError as error:
            return f"the topology does not have its path: {error}"
        if isinstance(on_fabric, PathPin):
            problem = self._path_problem(on_fabric, job)
        else:
            problem = "the job is being measured" if self._checker.is_measured_now(job) else ""
        if problem or on_fabric in held:
            return problem
        return "waits for the next Plan" if self.pause_state is None else "waits until planning is resumed"

    def _path_problem(self, pin: PathPin, job: RegisteredJob) -> str:
        if not any(group.name == pin.flow.group and pin.flow.flow < len(group.flows) for group in job.flow_groups):
            return "the job has no such flow now"
        return self._checker.path_problem(pin.flow, pin.path, self._clock.now_s())


def _words(by: str, reason: str) -> tuple[str, str]:
    return f" by {by}" if by else "", f": {reason}" if reason else ""


def _checked_reason(reason: str) -> str:
    if len(reason) > MOST_REASON or not reason.isprintable():
        raise InvalidFieldError(f"reason: expected one line of at most {MOST_REASON} printable characters")
    return reason


def _pinned(pins: tuple[HandPin, ...]) -> str:
    return f"pinned: {listed(pin.target for pin in pins) or 'nothing'}"
