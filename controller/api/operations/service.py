"""The gRPC service ``trainyard.operations.v1.Operations``, by which operators inspect a running controller."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import grpc

from controller.access.identity import Role
from controller.api.calls import Caller
from controller.api.context import ServiceContext
from controller.api.operations import operations_pb2 as wire
from controller.api.operations.cable_states import cable_states
from controller.api.operations.drain_calls import DrainCalls
from controller.api.operations.explanations import Explanations, decision_about, explanation_of
from controller.api.operations.intervention_calls import InterventionCalls, pause_state
from controller.api.operations.methods import (
    EXPLAIN,
    LIST_CABLES,
    LIST_CANDIDATES,
    LIST_CONTROLLERS,
    LIST_DROPS,
    LIST_FLOWS,
    LIST_JOBS,
    LIST_LEVELS,
    LIST_LINKS,
    LIST_LOADS,
    LIST_RULES,
    LIST_SWITCHES,
    SERVICE,
    WITHDRAW,
    Listing,
    StateT,
)
from controller.api.operations.pages import Turns, pages
from controller.api.operations.parts import parts
from controller.api.operations.states import (
    flow_states,
    job_states,
    level_states,
    link_states,
    profile_state,
    rule_states,
    switch_states,
)
from controller.api.operations.telemetry_states import drop_states, load_states, pair_states
from controller.background import to_its_end
from controller.registry.errors import CommitError, InvalidFieldError
from controller.registry.jobs import RegisteredJob

_VIEWER = (Role.VIEWER,)
_MOST_JOBS_OF_A_CALL = 1_000
"""Jobs in one call."""


class OperationsService:
    """Answers operators and viewers."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._calls = context.calls
        self._turns = Turns()
        self._drains = DrainCalls(context, self._turns)
        self._interventions = InterventionCalls(context, self._turns)
        self._explanations = Explanations(context.planner.routing.fabric)
        self._registry = context.registry
        self._planner = context.planner
        self._southbound = context.southbound
        self._clock = context.clock
        self._telemetry = context.telemetry
        self._profiling = context.profiling
        self._store = context.store
        self._watchdog = context.watchdog
        self._discoverer = context.discoverer
        self._reloading = context.reloading
        self._name = context.name

    def handler(self) -> grpc.GenericRpcHandler:
        """The handler of all methods, for a gRPC server."""
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                LIST_JOBS.method.name: self._listing(LIST_JOBS, self._jobs),
                LIST_FLOWS.method.name: self._listing(LIST_FLOWS, self._flows, is_pure=True),
                LIST_LEVELS.method.name: self._listing(LIST_LEVELS, self._levels, is_pure=True),
                LIST_RULES.method.name: self._listing(LIST_RULES, self._rules, is_pure=True),
                LIST_SWITCHES.method.name: self._listing(LIST_SWITCHES, self._switches),
                LIST_LINKS.method.name: self._listing(LIST_LINKS, self._links),
                LIST_CABLES.method.name: self._listing(LIST_CABLES, self._cables),
                LIST_CANDIDATES.method.name: self._listing(LIST_CANDIDATES, self._candidates),
                LIST_LOADS.method.name: self._listing(LIST_LOADS, self._loads),
                LIST_DROPS.method.name: self._listing(LIST_DROPS, self._drops),
                LIST_CONTROLLERS.method.name: self._listing(LIST_CONTROLLERS, self._controllers),
                WITHDRAW.name: self._calls.unary(
                    WITHDRAW,
                    (Role.OPERATOR,),
                    self._withdraw,
                    subject=_named,
                ),
                EXPLAIN.name: self._calls.streaming(
                    EXPLAIN, _VIEWER, self._explain, subject=lambda request: request.name
                ),
                **self._drains.handlers(),
                **self._interventions.handlers(),
            },
        )

    def _jobs(self) -> Iterable[wire.JobState]:
        return job_states(self._registry.jobs, self._lease_s, self._profile, self._planner.decision)

    def _flows(self) -> Iterable[wire.FlowState]:
        decision = self._planner.decision
        return flow_states(decision, self._registry.fabric) if decision else ()

    def _levels(self) -> Iterable[wire.LevelState]:
        decision = self._planner.decision
        return level_states(decision) if decision else ()

    def _rules(self) -> Iterable[wire.RuleState]:
        decision = self._planner.decision
        return rule_states(decision, self._registry.fabric) if decision else ()

    def _switches(self) -> Iterable[wire.SwitchState]:
        return switch_states(self._southbound.statuses(), self._planner.decision)

    def _links(self) -> Iterable[wire.LinkState]:
        now_s = self._clock.now_s()
        links, fabric = self._planner.links, self._registry.fabric
        drained = links.drained_links(now_s)
        return link_states(links.dead_cables(now_s), drained, self._telemetry.overruled, fabric, now_s)

    def _cables(self) -> Iterable[wire.CableState]:
        found = self._discoverer
        dead = self._planner.links.dead_links(self._clock.now_s())
        return () if found is None else cable_states(found.differences, found.now_s, dead)

    def _candidates(self) -> Iterable[wire.PairState]:
        return pair_states(self._telemetry.pairs_in_turn(self._clock.now_s()), self._registry.fabric)

    def _loads(self) -> Iterable[wire.LoadState]:
        return load_states(self._telemetry, self._registry.fabric, self._clock.now_s())

    def _drops(self) -> Iterable[wire.DropState]:
        return drop_states(self._telemetry, {} if self._discoverer is None else self._discoverer.rejected)

    def _controllers(self) -> Iterable[wire.ControllerState]:
        decision, store = self._planner.decision, self._store
        policy, pause = self._planner.policy, self._planner.interventions.pause
        step = self._reloading.step
        state = wire.ControllerState(
            name=self._name,
            plan_number=0 if decision is None else decision.number,
            policy=policy.name,
            failed_decisions=policy.num_failures,
            policy_problem=policy.problem,
            refusals=[
                wire.Refusals(tenant=tenant, status=status, calls=calls)
                for (tenant, status), calls in sorted(self._calls.refusals.items())
            ],
            worst_stall_s=self._watchdog.worst_stall_s,
            stalls=self._watchdog.stalls,
            long_stalls=self._watchdog.long_stalls,
            pause=None if pause is None else pause_state(pause, self._clock.now_s()),
            reload=None if step is None else wire.ReloadState(step=step.words, for_s=step.for_s),
        )
        if store is not None:
            database = store.database
            state.MergeFrom(
                wire.ControllerState(
                    term=store.term,
                    database=database.name.removeprefix("database "),
                    database_problem=database.health.problem,
                    recorded_plan_number=self._planner.recorded_number,
                    lost_writes=store.trail.num_lost,
                )
            )
        return (state,)

    async def _explain(self, request: wire.ExplainRequest, caller: Caller) -> AsyncIterator[wire.ExplanationPart]:
        explainer = await self._explanations.of(decision_about(request.name, self._context))
        async with self._turns.turn():
            explanation = explanation_of(request.name, explainer, self._context)
            found = await asyncio.to_thread(lambda: list(parts(explanation())))
        for part in found:
            await self._calls.charge(caller, part.ByteSize())
            yield part

    async def _withdraw(self, request: wire.WithdrawRequest, caller: Caller) -> wire.Withdrawal:
        if len(request.jobs) > _MOST_JOBS_OF_A_CALL:
            raise InvalidFieldError(f"jobs: one call has room for {_MOST_JOBS_OF_A_CALL:,}")
        withdrawn = self._registry.withdraw(tuple(dict.fromkeys(request.jobs)), caller.identity.name)
        committed = self._registry.commit()

        async def commit() -> None:
            try:
                await committed
            except CommitError:
                self._registry.readmit(withdrawn)
                raise
            self._planner.mark_changed()
            self._registry.log.withdrawn((job.request.name for job in withdrawn), caller.identity.name)

        await to_its_end(commit())
        return wire.Withdrawal(flow_groups=[len(job.flow_groups) for job in withdrawn])

    def _profile(self, job: RegisteredJob) -> wire.ProfileState:
        return profile_state(job, self._profiling, self._clock.now_s())

    def _lease_s(self, job: RegisteredJob) -> float:
        return max(0.0, self._registry.lease_end_s(job.request.name) - self._clock.now_s())

    def _listing(
        self, listing: Listing[StateT], states: Callable[[], Iterable[StateT]], *, is_pure: bool = False
    ) -> "grpc.RpcMethodHandler[bytes, Any]":
        """A handler that streams pages of states; ``is_pure`` as for ``pages``."""

        async def answer(_: wire.ListRequest, caller: Caller) -> AsyncIterator[Any]:
            async for page in pages(listing, states(), self._turns, is_pure=is_pure):
                await self._calls.charge(caller, page.ByteSize())
                yield page

        return self._calls.streaming(listing.method, _VIEWER, answer, subject=lambda _: "")


def _named(request: wire.WithdrawRequest) -> str:
    return ", ".join(request.jobs[:_MOST_JOBS_OF_A_CALL])
