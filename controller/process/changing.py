"""Have a running controller go over to another configuration, without a restart."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

from controller.background import run_in_thread
from controller.config import BaseRouting, ControllerConfig
from controller.errors import StoreError
from controller.links.drains import Drain
from controller.links.link_health import links_of
from controller.planning.interventions import HandPin
from controller.process.active_controller import ActiveController
from controller.process.core import ControllerCore
from controller.process.ready_policy import UnreadyPolicyError, ready_policy
from controller.registry.errors import CommitError
from controller.registry.jobs import RegisteredJob
from controller.reload.errors import ReloadError
from controller.reload.fabric_check import cable_problems, cut_off_problems, refit_jobs, switch_problems
from controller.reload.keys import KeyChanges
from controller.reload.refit import refitted_drains, refitted_pins
from controller.reload.words import fabric_lines
from controller.southbound.southbound import SouthboundError
from policies.policy import Policy
from topologies.ecmp import hash_multipliers
from topologies.fabric_match import FabricMatch
from topologies.routing import Routing

_LOG = logging.getLogger(__name__)

_IN_FORCE_LIMIT_S = 10.0
"""How long to wait for the Plan that follows."""
_PAUSED = "planning is paused: the first Plan goes by this once it is resumed"
_NOT_IN_FORCE = "no Plan of it is in force everywhere yet; trainyard show switches says what it waits for"


@dataclass(frozen=True, slots=True)
class ChangingController:
    """An active controller as something that goes over to other configurations; see Changing."""

    active: ActiveController

    @property
    def config(self) -> ControllerConfig:
        """The configuration in force."""
        return self.active.config

    async def change(self, config: ControllerConfig, changes: KeyChanges) -> Sequence[str]:
        """See Changing."""
        return await self.active.see_through(change_to(self.active, config, changes))


async def change_to(active: ActiveController, config: ControllerConfig, changes: KeyChanges) -> Sequence[str]:
    """Have a controller go over to a configuration, which differs in these keys; returns what has changed, in words.

    Raises:
        ReloadError: It cannot, or a switch refuses what the new fabric needs; it goes on as before.
    """
    lines, before, refusing = [*changes.at_once], active.config, active.refusals.keys()
    if changes.has_new_fabric:
        lines += await _FabricChange(active, config).carry_out()
    else:
        policy, known = active.core.policy, active.config
        if (config.policy, config.num_levels) != (known.policy, known.num_levels):
            active.tell(f"compiling policy {config.policy}")
            policy = await compiled_policy(config, active.core.planner.routing.whole)
        async with active.core.planner.between_plans():
            active.core.use(config, policy)
            active.config = config
    if active.core.planner.interventions.pause is not None:
        return [*lines, _PAUSED]
    active.tell("waiting for the Plan that follows to be in force")
    is_in_force = await active.in_force(_IN_FORCE_LIMIT_S, refusing if changes.has_new_fabric else None)
    refusals = [words for switch, words in active.refusals.items() if switch not in refusing]
    if changes.has_new_fabric and refusals:
        await _go_back(active, before, refusals)
    if not is_in_force:
        return [*lines, _NOT_IN_FORCE]
    contained = active.core.planner.policy
    failure = f"policy: {contained.name} has made no Plan of it, and the one before stays: {contained.problem}"
    return [*lines, failure] if contained.problem else lines


async def _go_back(active: ActiveController, before: ControllerConfig, refusals: Sequence[str]) -> NoReturn:
    """Go back to the configuration before, as switches refuse entries of the new one. Raises ReloadError."""
    _LOG.warning("going back to the fabric before, as a switch refuses: %s", "; ".join(refusals))
    problems = [f"topology: {words}" for words in refusals]
    active.is_going_back = True
    try:
        await _FabricChange(active, before).carry_out()
    except Exception as error:
        active.is_going_back = False
        if not isinstance(error, ReloadError):
            raise
        raise ReloadError(*problems, *(f"going back has failed: {each}" for each in error.problems)) from error
    active.is_going_back = False
    await active.in_force(_IN_FORCE_LIMIT_S)
    raise ReloadError(*problems)


async def compiled_policy(config: ControllerConfig, routing: Routing) -> Policy:
    """Return the policy of a configuration, ready for the next Plan. Raises ReloadError."""
    _LOG.info("reloading: compiling policy %s", config.policy)
    try:
        return await ready_policy(config, routing)
    except UnreadyPolicyError as error:
        raise ReloadError(f"policy: {error}") from error


async def routing_of(config: ControllerConfig) -> Routing:
    """Return the routing of a configuration's fabric."""

    def build() -> Routing:
        fabric = config.topology.build()
        return Routing(fabric, hash_multipliers(fabric.switches, config.hash_seed))

    return await run_in_thread(build, "topology")


class _FabricChange:
    """Has a controller go over to a fabric with other cables, hosts or switches.

    First flows leave the cables that go, as where these are drained. Switches are given what the new fabric needs
    besides, so that one that refuses keeps the fabric as it is. Then another core takes over, for which the cables
    that come are set aside. So switches hold the same for both fabrics at that moment, but for what only one of them
    has. In the end flows use the new cables, as where these were drained.
    """

    def __init__(self, active: ActiveController, config: ControllerConfig) -> None:
        self._active = active
        self._config = config
        self._before = active.core
        self._unused = active.core.draining.aside

    async def carry_out(self) -> Sequence[str]:
        """Go over; returns what has changed, in words. Raises ReloadError, and then nothing has."""
        before, config = self._before, self._config
        self._require_planning()
        if config.base_routing is BaseRouting.OTHER:
            raise ReloadError("topology: cannot change where others write base routing; restart the controller")
        self._active.tell("checking the new fabric")
        routing = await routing_of(config)
        self._match = match = FabricMatch(before.planner.routing.fabric, routing.fabric)
        if problems := await run_in_thread(lambda: list(self._problems()), "topology"):
            raise ReloadError(*problems)
        self._active.tell(f"compiling policy {config.policy}")
        await compiled_policy(config, routing)
        aside = match.coming | match.cables_of(before.draining.aside)
        core = await run_in_thread(partial(self._active.new_core, config, routing, aside), "topology")
        kept = await self._switch(core)
        return [*fabric_lines(match), *kept]

    def _problems(self) -> Iterator[str]:
        """Yield all that keeps the controller from going over now."""
        before, match = self._before, self._match
        yield from switch_problems(match, self._active.config.switch_addresses, self._config.switch_addresses)
        yield from cable_problems(match)
        _, problems = refit_jobs(match, before.registry.jobs)
        yield from problems
        dead = before.planner.routing.dead
        yield from cut_off_problems(match, {link // 2 for link in dead})

    async def _switch(self, core: ControllerCore) -> Sequence[str]:
        """Have the other core take over; returns the drains and pins that have ended, in words. Raises ReloadError."""
        before, match, active = self._before, self._match, self._active
        interventions = before.planner.interventions
        aside = self._unused
        if match.leaving:
            before.draining.set_aside(aside | match.leaving)
        is_stopped = False
        try:
            active.tell("waiting for flows to leave the cables that go")
            await self._leave_cables()
            active.tell("trying what the new fabric needs on the switches")
            await self._try_switches(core)
            active.tell("going over to the new fabric")
            async with before.draining.unchanged() as drains, interventions.unchanged():
                async with before.planner.between_plans():
                    active.stop()
                    is_stopped = True
                await active.stopped()
                self._require_planning()
                self._require_left()
                jobs = await run_in_thread(self._jobs, "topology")
                kept = refitted_drains(drains, match)
                staying = [drain for drain in kept.values() if drain is not None]
                pins = refitted_pins(interventions.pins, match)
                core.take_over(before, match, self._config, jobs.values(), staying)
                interventions.take_over(pins)
                before.draining.end()
        except Exception:
            if match.leaving:
                before.draining.set_aside(before.draining.aside - (match.leaving - aside))
            if is_stopped:
                active.start()
            await self._keep_switches()
            raise
        await active.go_over(core, self._config)
        try:
            await core.draining.keep(kept)
            await interventions.keep(pins)
        except StoreError as error:
            _LOG.error("drains and pins of the fabric before stay in the database: %s", error)
        return [*_drain_lines(kept), *_pin_lines(pins)]

    def _require_planning(self) -> None:
        if self._before.planner.interventions.pause is not None:
            raise ReloadError(
                "topology: planning is paused, so that flows cannot move; resume it first (trainyard resume)"
            )

    async def _leave_cables(self) -> None:
        """Have all flows leave the cables that go. Raises ReloadError."""
        if self._match.leaving <= self._unused:
            return  # no flow has ever used them
        try:
            try:
                await self._before.planner.settle()
            except SouthboundError:
                # A switch that refuses entries of these cables takes those without.
                await self._before.planner.settle()
        except SouthboundError as error:
            raise ReloadError(f"topology: flows cannot leave the cables that would go: {error}") from error
        except CommitError:
            pass  # it is about leases; the Plan is made
        self._require_left()

    async def _try_switches(self, core: ControllerCore) -> None:
        """Have no switch refuse what the new fabric needs besides. Raises ReloadError."""
        try:
            await self._active.southbound.try_fabric(self._config.switch_addresses, core.planner.routing.whole)
        except SouthboundError as error:
            raise ReloadError(f"topology: {error}") from error

    async def _keep_switches(self) -> None:
        try:
            await self._active.southbound.keep_fabric()
        except SouthboundError as error:
            _LOG.error("entries of a fabric that is not used stay for now: %s", error)

    def _require_left(self) -> None:
        if not links_of(self._match.leaving) <= self._before.planner.routing.dead:
            raise ReloadError(
                "topology: no Plan without the cables that would go has come into force; the controller's log says why"
            )

    def _jobs(self) -> Mapping[str, RegisteredJob]:
        jobs, problems = refit_jobs(self._match, self._before.registry.jobs)
        if problems:
            raise ReloadError(*problems)
        return jobs


def _drain_lines(kept: Mapping[Drain, Drain | None]) -> Iterator[str]:
    for drain, staying in kept.items():
        if staying is None:
            yield f"topology: the drain of {drain.target} has ended, as the topology does not have it any longer"


def _pin_lines(pins: Mapping[HandPin, HandPin | None]) -> Iterator[str]:
    for pin, staying in pins.items():
        if staying is None:
            yield f"topology: the pin of {pin.target} has ended, as the topology does not have its path any longer"
