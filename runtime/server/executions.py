"""Executions: programs on their way through the schedulers and the hosts.

Each program goes to all of its hosts at once, in one message a host, before anything of it has run (Pathways, 4.5).
Each of its stretches is a gang, which the scheduler of its island grants; a host enqueues gangs in the order of the
grants.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

from runtime import messages
from runtime.frames import PIECE, Kind, prefix
from runtime.lowering.assign import AT_CLIENT
from runtime.messages import Failure
from runtime.program import Program
from runtime.scheduling.cluster import ClusterScheduler
from runtime.scheduling.gangs import GangRequest
from runtime.server.accounts import Account, HeldArray, Ledger
from runtime.server.arguments import Pieces
from runtime.server.dispatch import ParallelDispatch, SequentialDispatch
from runtime.server.hosts import Host
from runtime.server.plans import PlannedProgram, RegisteredProgram, Stretch
from runtime.store.buffers import HOST

if TYPE_CHECKING:
    from runtime.server.announcements import Announcements

_LEAST_COST_S = 1e-6
_ALONE = -1.0
"""A length of stretches that none of two calls has: sequential dispatch tells hosts of one call after the other."""


@dataclass(eq=False, slots=True)
class Gang:
    """A stretch of an execution: which hosts have still to end it, which could not, and when the last one did.

    ``occupied_s`` is for how long devices were occupied, as far as hosts have told, all of them together.
    """

    number: int
    execution: "Execution"
    stretch: Stretch
    left: set[int]
    failed: set[int] = field(default_factory=set)
    ended_s: float = 0.0
    occupied_s: float = 0.0
    is_granted: bool = False


@dataclass(eq=False, slots=True)
class Execution:
    """A program that runs: its gangs that have not ended by their first nodes, and its results with their nodes."""

    number: int
    account: Account
    plan: PlannedProgram
    gangs: dict[int, Gang] = field(default_factory=dict)
    results: list[tuple[int, HeldArray]] = field(default_factory=list)


class Executions:
    """Starts executions, passes grants on, and ends executions with their results or with the cause.

    ``on_end`` is told of each that has ended, with the ledger of its client; ``announcements``, if there are any, of
    each that starts or has ended.
    """

    def __init__(
        self,
        schedulers: ClusterScheduler,
        hosts: Mapping[int, Host],
        dispatch: ParallelDispatch | SequentialDispatch,
        on_end: Callable[[Ledger], None],
        announcements: "Announcements | None" = None,
    ) -> None:
        self._schedulers = schedulers
        self._hosts = hosts
        self._dispatch = dispatch
        self._on_end = on_end
        self._announcements = announcements
        self._running: dict[int, Execution] = {}
        self._gangs: dict[int, Gang] = {}
        self._numbers = count()
        self._gang_numbers = count()

    @property
    def running(self) -> int:
        """Executions that have not ended."""
        return len(self._running)

    def use(self, host: int) -> bool:
        """Return whether a host takes part in what has not ended."""
        return any(host in each.plan.hosts for each in self._running.values())

    def start(
        self,
        account: Account,
        registered: RegisteredProgram,
        epoch: int,
        message: messages.Execute,
        payload: memoryview,
    ) -> None:
        """Start a program. Where it cannot run, its results fail with the reason."""
        program = registered.program
        held = [None if handle < 0 else account.arrays[handle] for handle in message.arguments]
        planned = _failure_of(program, held) or self._planned(account, registered, epoch, message, held, payload)
        if isinstance(planned, Failure):
            for handle, value in zip(message.results, program.results, strict=True):
                account.hold(handle, HeldArray(program.spec(value), AT_CLIENT, None, planned))
            return
        plan, pieces = planned
        self.pass_grants()  # what was granted before comes before
        execution = Execution(next(self._numbers), account, plan)
        requests = self._requests(execution, held, message)
        if execution.gangs:
            self._running[execution.number] = execution
            account.executions.add(execution.number)
            account.ledger.running += 1
            if self._announcements is not None:
                self._announcements.start(execution, epoch)
        for island, request in requests:
            self._schedulers[island].submit(request)
        grants = self._new_grants()
        own = self._dispatch.is_parallel and all(each.execution is execution for each in grants)
        self._send_runs(execution, message, grants if own else (), pieces)
        if not own:
            self._dispatch.send(grants)

    def _planned(
        self,
        account: Account,
        registered: RegisteredProgram,
        epoch: int,
        message: messages.Execute,
        held: Sequence[HeldArray | None],
        payload: memoryview,
    ) -> tuple[PlannedProgram, Pieces] | Failure:
        """Return what a run of a program needs, with its arguments cut, or why it cannot run."""
        program = registered.program
        layouts = [AT_CLIENT if each is None else each.layout for each in held]
        try:
            lowered = account.lowering.lowered(message.program, program, epoch, account.slices, layouts)
            plan = account.plan(lowered, registered, epoch)
            pieces = plan.arguments.cut(message.arguments, payload)
        except ValueError as error:
            return Failure("RefusedError", str(error))
        if not plan.hosts <= self._hosts.keys():
            return Failure("LostError", f"{program.name}: host {min(plan.hosts - self._hosts.keys())} is gone")
        excess = account.ledger.excess(len(plan.results), plan.results_bytes)
        return (plan, pieces) if excess is None else Failure("RefusedError", f"{program.name}: {excess}")

    def completed(self, host: int, reports: Iterable[tuple[int, int, bool, float, float, float]]) -> None:
        """Note what a host has completed (``frames.COMPLETION``).

        A result is there when all hosts have told that hold a part of it; others of its stretch may tell later.

        How long it occupied devices is for hosts to say: when they told is no measure, for the server may be busy.
        """
        now_s = time.monotonic()
        for number, first, has_failed, device_s, occupied_s, ago_s in reports:
            execution = self._running.get(number)
            if execution is None:
                continue
            gang = execution.gangs[first]
            is_host = execution.plan.lowered.placement(first).devices[0] == HOST
            execution.account.ledger.charge(device_s, is_host=is_host)
            gang.ended_s = max(gang.ended_s, now_s - ago_s)
            gang.occupied_s += occupied_s
            gang.left.discard(host)
            if has_failed:
                gang.failed.add(host)
            for node, held in execution.results:
                if first <= node <= gang.stretch.last and not held.has_ended:  # it may have moved since
                    hosts = held.layout.placement.shards_by_host.keys()
                    if host in hosts and hosts.isdisjoint(gang.left):
                        held.end(is_there=hosts.isdisjoint(gang.failed))
            if not gang.left:
                del execution.gangs[first]
                self._end(gang, gang.ended_s, gang.occupied_s)
                if not execution.gangs:
                    execution.account.ledger.executions += 1
                    self._forget(execution)
        self.pass_grants()

    def pass_grants(self) -> None:
        """Tell hosts what the schedulers have granted."""
        grants = self._new_grants()
        if grants:
            self._dispatch.send(grants)

    def abort(self, execution: Execution, failure: Failure) -> None:
        """End an execution whose results will never be there: they fail with the cause."""
        now_s = time.monotonic()
        ungranted = [gang for gang in execution.gangs.values() if not gang.is_granted and gang.number in self._gangs]
        for gang in ungranted:
            self._gangs.pop(gang.number, None)
        numbers = [gang.number for gang in ungranted]
        for island in {gang.stretch.island for gang in ungranted}:
            for dropped in self._schedulers[island].drop(numbers):
                other = self._gangs.pop(dropped, None)
                if other is not None:  # it takes a result of this execution
                    self.abort(other.execution, failure)
        for gang in execution.gangs.values():
            if gang.is_granted:
                self._end(gang, now_s)
        execution.gangs.clear()
        self._forget(execution)
        for _, held in execution.results:
            if not held.has_ended:
                held.failure = failure
                held.end(is_there=False)
        for host in execution.plan.hosts:
            if host in self._hosts:
                self._hosts[host].channel.send(messages.Abort(execution.number, failure))

    def abort_on(self, host: int, failure: Failure) -> None:
        """Abort all executions in which a host takes part."""
        for execution in tuple(self._running.values()):
            if execution.number in self._running and host in execution.plan.hosts:
                self.abort(execution, failure)
        self.pass_grants()

    def abort_of(self, account: Account, failure: Failure) -> None:
        """Abort all executions of a client that is gone."""
        for number in tuple(account.executions):
            execution = self._running.get(number)
            if execution is not None:
                self.abort(execution, failure)
        self._schedulers.withdraw(account.label)
        self.pass_grants()

    def _requests(
        self, execution: Execution, held: Sequence[HeldArray | None], message: messages.Execute
    ) -> list[tuple[str, GangRequest]]:
        """Give an execution its gangs and its results; return what the schedulers of islands are asked for."""
        plan, account = execution.plan, execution.account
        starts_s = plan.starts_s(time.monotonic() + message.need_ns * 1e-9) if message.need_ns >= 0 else {}
        gang_of: dict[int, int | None] = {node: each.gang for node, each in enumerate(held) if each is not None}
        requests = []
        for stretch in plan.stretches() if self._dispatch.is_parallel else plan.stretches(_ALONE):
            number = next(self._gang_numbers)
            nodes = range(stretch.first, stretch.last + 1)
            gang = Gang(number, execution, stretch, set(stretch.hosts))
            self._gangs[number] = execution.gangs[stretch.first] = gang
            cost_s = max(_LEAST_COST_S, stretch.cost_s)
            need_s = min(starts_s[node] for node in nodes) + cost_s if starts_s else None
            earlier = (*stretch.makers, *stretch.before)
            after = tuple([each for node in earlier if (each := gang_of.get(node)) is not None])
            request = GangRequest(number, account.label, stretch.devices, cost_s, need_s, after)
            requests.append((stretch.island, request))
            for node in nodes:
                gang_of[node] = number
        for handle, result in zip(message.results, plan.results, strict=True):
            of_slice = plan.program.call(result.node).slice
            array = HeldArray(result.spec, result.layout, gang_of[result.node], None, result.size_bytes, of_slice)
            account.hold(handle, array)
            execution.results.append((result.node, array))
        return requests

    def _new_grants(self) -> list[Gang]:
        grants = [self._gangs[grant.number] for _, grant in self._schedulers.grants(time.monotonic())]
        for gang in grants:
            gang.is_granted = True
        return grants

    def _send_runs(
        self, execution: Execution, message: messages.Execute, grants: Sequence[Gang], pieces: Pieces
    ) -> None:
        """Tell each host of an execution: what all hosts of a subprogram are told is made once."""
        plan = execution.plan
        arguments = {node: handle for node, handle in enumerate(message.arguments) if handle >= 0}
        results = tuple(
            [
                (value.node, value.output, handle)
                for value, handle in zip(plan.program.results, message.results, strict=True)
            ]
        )
        granted = tuple([(gang.stretch.first, gang.stretch.last) for gang in grants])
        account = execution.account
        run = messages.Run(
            execution.number,
            account.number,
            0,
            arguments,
            results,
            granted,
            account.groups,
            message.is_awaited,
        )
        headers = messages.encoded_runs(run, plan.numbers)
        for (number, subprogram, hosts), header in zip(plan.subprograms, headers, strict=True):
            frame = prefix(Kind.MESSAGE, header, 0)
            for host in hosts:
                told = self._hosts[host]
                told.load(number, subprogram, plan.functions)
                told.channel.write(frame)
                for edge, shard, data in pieces.get(host, ()):
                    told.channel.send_frame(Kind.PIECE, PIECE.pack(execution.number, edge, shard, 0), data)

    def _end(self, gang: Gang, now_s: float, occupied_s: float | None = None) -> None:
        self._gangs.pop(gang.number, None)
        self._schedulers[gang.stretch.island].completed(gang.number, now_s, occupied_s)

    def _forget(self, execution: Execution) -> None:
        self._running.pop(execution.number, None)
        self._dispatch.forget(execution.number)
        if self._announcements is not None:
            self._announcements.end(execution.number)
        account = execution.account
        if execution.number in account.executions:
            account.executions.remove(execution.number)
            account.ledger.running -= 1
            self._on_end(account.ledger)


def _failure_of(program: Program, held: Sequence[HeldArray | None]) -> Failure | None:
    """Return why a program cannot run on arguments."""
    for each in held:
        if each is not None and each.failure is not None:
            return each.failure
    for node, (each, expected) in enumerate(zip(held, program.arguments, strict=True)):
        if each is not None and each.spec is not expected and each.spec != expected:
            return Failure("RefusedError", f"{program.name}: argument {node}: expected {expected}, got {each.spec}")
    return None
