"""Executions: programs on their way through the schedulers and the hosts.

Each program goes to all of its hosts at once, in one message a host, before anything of it has run (Pathways, 4.5).
Each of its nodes is a gang, which the scheduler of its island grants; a host enqueues gangs in the order of the grants.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from runtime import messages
from runtime.lowering.assign import AT_CLIENT
from runtime.lowering.subprograms import LoweredProgram
from runtime.messages import Failure
from runtime.program import Value
from runtime.scheduling.cluster import ClusterScheduler
from runtime.scheduling.gangs import GangRequest
from runtime.server.accounts import Account, HeldArray, NumberedFunction, RegisteredProgram
from runtime.server.arguments import pieces_of_arguments
from runtime.server.dispatch import ParallelDispatch, SequentialDispatch
from runtime.server.hosts import Host

_LEAST_COST_S = 1e-6
_LEARNING = 0.2
"""How much of a function's mean duration the newest run is."""


@dataclass(eq=False)
class Execution:
    """A program that runs: its gangs by node, and how many hosts have still to end each, with when the last one did."""

    number: int
    account: Account
    registered: RegisteredProgram
    lowered: LoweredProgram
    gangs: Mapping[int, int]
    left: dict[int, tuple[int, float]]
    results: Sequence[int]

    def function(self, node: int) -> NumberedFunction:
        """Return the function of a node."""
        return self.registered.functions[self.registered.program.call(node).function]

    def hosts_of(self, node: int) -> Sequence[int]:
        """Return the hosts of a node."""
        return tuple(self.lowered.placement(node).shards_by_host)

    def makers_of(self, node: int) -> Sequence[int]:
        """Return the nodes whose results a node takes."""
        first = len(self.registered.program.arguments)
        return [each.value.node for each in self.registered.program.call(node).inputs if each.value.node >= first]

    def island(self, node: int) -> str:
        """Return the island of a node."""
        return self.lowered.placement(node).island


class Executions:
    """Starts executions, passes grants on, and ends executions with their results or with the cause."""

    def __init__(
        self, schedulers: ClusterScheduler, hosts: Mapping[int, Host], dispatch: ParallelDispatch | SequentialDispatch
    ) -> None:
        self._schedulers = schedulers
        self._hosts = hosts
        self._dispatch = dispatch
        self._running: dict[int, Execution] = {}
        self._of_gang: dict[int, tuple[Execution, int]] = {}
        self._granted: set[int] = set()
        self._numbers = count()
        self._gang_numbers = count()

    @property
    def running(self) -> int:
        """Executions that have not ended."""
        return len(self._running)

    def start(
        self,
        account: Account,
        registered: RegisteredProgram,
        epoch: int,
        message: messages.Execute,
        payload: memoryview,
    ) -> None:
        """Start a program. Where it cannot run, its results fail with the reason."""
        held = [None if handle < 0 else account.arrays[handle] for handle in message.arguments]
        failure = next((each.failure for each in held if each is not None and each.failure is not None), None)
        for node, (each, expected) in enumerate(zip(held, registered.program.arguments, strict=True)):
            if each is not None and each.spec != expected:
                wrong = f"{registered.program.name}: argument {node}: expected {expected}, got {each.spec}"
                failure = failure or Failure("RefusedError", wrong)
        layouts = [AT_CLIENT if each is None else each.layout for each in held]
        try:
            lowered = account.lowering.lowered(message.program, registered.program, epoch, account.slices, layouts)
            pieces = pieces_of_arguments(lowered, message.arguments, payload)
        except ValueError as error:
            failure = failure or Failure("RefusedError", str(error))
        else:
            lost = set(lowered.subprogram_of_host) - self._hosts.keys()
            if lost:
                failure = failure or Failure("LostError", f"{registered.program.name}: host {min(lost)} is gone")
            size_bytes = sum(_bytes_on_devices(lowered, value) for value in registered.program.results)
            excess = account.ledger.excess(len(message.results), size_bytes)
            if excess is not None:
                failure = failure or Failure("RefusedError", f"{registered.program.name}: {excess}")
        if failure is not None:
            for handle, value in zip(message.results, registered.program.results, strict=True):
                account.hold(handle, HeldArray(registered.program.spec(value), AT_CLIENT, None, failure))
            return
        gangs = {placed.node: next(self._gang_numbers) for placed in lowered.calls}
        for handle, value in zip(message.results, registered.program.results, strict=True):
            size_bytes = _bytes_on_devices(lowered, value)
            spec = registered.program.spec(value)
            account.hold(handle, HeldArray(spec, lowered.layout(value), gangs[value.node], None, size_bytes))
        left = {placed.node: (len(lowered.placement(placed.node).shards_by_host), 0.0) for placed in lowered.calls}
        execution = Execution(next(self._numbers), account, registered, lowered, gangs, left, message.results)
        self._running[execution.number] = execution
        account.executions.add(execution.number)
        self.pass_grants()  # what was granted before comes before
        self._submit(execution, [None if each is None else each.gang for each in held], message.need_ns)
        grants = self._new_grants()
        own = self._dispatch.is_parallel and all(each is execution for each, _ in grants)
        first = account.first_number(lowered)
        for host, index in lowered.subprogram_of_host.items():
            functions = ((each.number, each.registered) for each in registered.functions)
            self._hosts[host].load(first + index, lowered.subprograms[index], functions)
            self._send_run(execution, host, first + index, message, [node for _, node in grants] if own else (), pieces)
        if not own:
            self._dispatch.send(grants)

    def completed(self, reports: Iterable[tuple[int, int, float, float]]) -> None:
        """Note what a host has completed: execution, node, seconds of the longest shard, and since the last one."""
        now_s = time.monotonic()
        for number, node, duration_s, ago_s in reports:
            execution = self._running.get(number)
            if execution is None:
                continue
            left, ended_s = execution.left[node]
            ended_s = max(ended_s, now_s - ago_s)
            if left > 1:
                execution.left[node] = (left - 1, ended_s)
                continue
            function = execution.function(node)
            execution.account.ledger.device_s += duration_s * len(execution.lowered.placement(node).hosts)
            function.seconds += _LEARNING * (duration_s - function.seconds)
            del execution.left[node]
            self._end_gang(execution, node, ended_s)
            if not execution.left:
                execution.account.ledger.executions += 1
                self._forget(execution)
        self.pass_grants()

    def pass_grants(self) -> None:
        """Tell hosts what the schedulers have granted."""
        self._dispatch.send(self._new_grants())

    def abort(self, execution: Execution, failure: Failure) -> None:
        """End an execution whose results will never be there: they fail with the cause."""
        now_s = time.monotonic()
        ungranted = [gang for gang in execution.gangs.values() if gang in self._of_gang and gang not in self._granted]
        for gang in ungranted:
            self._of_gang.pop(gang, None)
        for dropped in self._drop(execution, ungranted):
            other = self._of_gang.pop(dropped, None)
            if other is not None:  # it takes a result of this execution
                self.abort(other[0], failure)
        for node in tuple(execution.left):
            if execution.gangs[node] in self._granted:
                self._end_gang(execution, node, now_s)
        execution.left.clear()
        self._forget(execution)
        for handle in execution.results:
            held = execution.account.arrays.get(handle)
            if held is not None:
                held.failure = held.failure or failure
        for host in execution.lowered.subprogram_of_host:
            if host in self._hosts:
                self._hosts[host].channel.send(messages.Abort(execution.number, failure))

    def abort_on(self, host: int, failure: Failure) -> None:
        """Abort all executions in which a host takes part."""
        for execution in tuple(self._running.values()):
            if execution.number in self._running and host in execution.lowered.subprogram_of_host:
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

    def _submit(self, execution: Execution, gangs_of_arguments: Sequence[int | None], need_ns: int) -> None:
        arguments = len(execution.registered.program.arguments)
        needs_s = _needs_s(execution, time.monotonic() + need_ns * 1e-9) if need_ns >= 0 else {}
        for placed in execution.lowered.calls:
            node = placed.node
            makers = {given.value.node for given in placed.call.inputs}
            after = {execution.gangs[each] if each >= arguments else gangs_of_arguments[each] for each in makers}
            number = execution.gangs[node]
            self._of_gang[number] = (execution, node)
            request = GangRequest(
                number,
                execution.account.label,
                execution.account.gangs[placed.call.slice],
                max(_LEAST_COST_S, execution.function(node).seconds),
                needs_s.get(node),
                tuple(gang for gang in after if gang is not None),
            )
            self._schedulers[execution.island(node)].submit(request)

    def _new_grants(self) -> list[tuple[Execution, int]]:
        grants = [self._of_gang[grant.number] for _, grant in self._schedulers.grants(time.monotonic())]
        self._granted.update(execution.gangs[node] for execution, node in grants)
        return grants

    def _send_run(
        self,
        execution: Execution,
        host: int,
        subprogram: int,
        message: messages.Execute,
        grants: Sequence[int],
        pieces: Mapping[int, Sequence[tuple[int, int, bytes]]],
    ) -> None:
        program = execution.registered.program
        arguments = {node: handle for node, handle in enumerate(message.arguments) if handle >= 0}
        results = tuple(
            (value.node, value.output, handle)
            for value, handle in zip(program.results, message.results, strict=True)
            if host in execution.lowered.placement(value.node).shards_by_host
        )
        mine = [node for node in grants if host in execution.lowered.placement(node).shards_by_host]
        own_pieces = pieces.get(host, ())
        run = messages.Run(
            execution.number,
            execution.account.number,
            subprogram,
            arguments,
            results,
            tuple(mine),
            tuple((edge, shard, len(data)) for edge, shard, data in own_pieces),
            execution.account.groups,
        )
        self._hosts[host].channel.send(run, b"".join(data for _, _, data in own_pieces))

    def _end_gang(self, execution: Execution, node: int, now_s: float) -> None:
        gang = execution.gangs[node]
        self._granted.discard(gang)
        self._of_gang.pop(gang, None)
        self._schedulers[execution.island(node)].completed(gang, now_s)

    def _drop(self, execution: Execution, gangs: Sequence[int]) -> list[int]:
        islands = {execution.island(node) for node, gang in execution.gangs.items() if gang in set(gangs)}
        return [dropped for island in islands for dropped in self._schedulers[island].drop(gangs)]

    def _forget(self, execution: Execution) -> None:
        self._running.pop(execution.number, None)
        self._dispatch.forget(execution.number)
        execution.account.executions.discard(execution.number)


def _bytes_on_devices(lowered: LoweredProgram, value: Value) -> int:
    """Return what a result takes on all of its devices together."""
    output = lowered.program.call(value.node).outputs[value.output]
    return output.sharding.shard_spec(output.spec).size_bytes * output.sharding.shards


def _needs_s(execution: Execution, need_s: float) -> dict[int, float]:
    """Return when the result of each node is needed, if those of the program are at ``need_s``.

    A node is needed when the first of those that take its results must start.
    """
    needs_s: dict[int, float] = {}
    for placed in reversed(execution.lowered.calls):
        latest_start_s = needs_s.setdefault(placed.node, need_s) - execution.function(placed.node).seconds
        for maker in execution.makers_of(placed.node):
            needs_s[maker] = min(needs_s.get(maker, need_s), latest_start_s)
    return needs_s
